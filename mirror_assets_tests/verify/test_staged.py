"""Each blocking check on staged parts, failing on the damage that it is there for.

Every value that a landing file can have is shown, also those that Python has no type for.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from mirror_assets.landing.format import Column, SliceRecord
from mirror_assets.landing.names import AttemptFolder
from mirror_assets.landing.staged_parts import count_markers
from mirror_assets.landing.state import next_position
from mirror_assets.markers import ROW_MARKER
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS, check_staged
from mirror_assets.pipeline.land_slice import stage_range
from mirror_assets.redaction import shown_key
from mirror_assets.verify.staged import StagedSlice, key_presence, readable_rows, schema_compatibility
from mirror_assets.zones import LocalStore
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.landing.staging import INCARNATION, stage

_LONG = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1])
_INT = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-(2**31), 2**31 - 1, 3_700_000, -800_000])


@pytest.fixture(scope="module")
def _staged(
    spark: SparkSession, _waiting_orders: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, SliceRecord]:
    lab = Lab(spark, tmp_path_factory.mktemp("staged") / "lab")
    shutil.copytree(_waiting_orders, lab.root)
    (record,) = stage_range(lab.context, [key(2, 5)])
    assert record is not None
    return lab.root, record


@pytest.fixture
def staged(spark: SparkSession, _staged: tuple[Path, SliceRecord], tmp_path: Path) -> tuple[Lab, SliceRecord]:
    """A slice of four commits in one part, staged behind the landed snapshot."""
    root, record = _staged
    lab = Lab(spark, tmp_path / "lab")
    shutil.copytree(root, lab.root)
    copied = lab.store.head(_path(record))
    assert copied is not None
    (part,) = record.parts
    return lab, record.model_copy(update={"parts": (part.model_copy(update={"etag": copied.etag}),)})


def _path(record: SliceRecord) -> str:
    return AttemptFolder(TABLE, record.generation, record.attempt).part(record.parts[0].name)


def _part(lab: Lab, record: SliceRecord) -> Path:
    return lab.store.local_path(_path(record))


def _failures(lab: Lab, record: SliceRecord) -> dict[str, str]:
    return {result.check: result.message for result in check_staged(lab.context, record) if not result.passed}


def _rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def _with(table: pa.Table, name: str, values: pa.ChunkedArray | pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


def test_an_undamaged_slice_passes_every_check(staged: tuple[Lab, SliceRecord]) -> None:
    lab, record = staged
    results = check_staged(lab.context, record)
    assert {result.check for result in results} == set(BLOCKING_CHECKS)
    assert all(result.passed for result in results)
    assert [result.metadata for result in results if result.check == "parts_unchanged"] == [{"parts": 1}]
    assert [result.metadata["commits_compared"] for result in results if result.check == "row_order"] == [4]


def _other_schema(change: Callable[[pa.Table], pa.Table]) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: change(rows.filter(pc.is_valid(rows["name"])))


_NONE, _THREE = pa.scalar(None, pa.int32()), pa.scalar(3, pa.int32())
_LAST = {"marker_values": ".*is not its last column"}
# What is done to the part, and what these checks say of it.
_DAMAGES: dict[str, tuple[Callable[[pa.Table], pa.Table], dict[str, str]]] = {
    "reversed": (lambda t: t.take(list(range(t.num_rows))[::-1]), {"row_order": ".*id=1"}),
    "another value": (
        lambda t: _with(t, "amount", pc.if_else(pc.equal(t["id"], 77), 9.0, t["amount"])),
        {"row_order": ".*key «id=77»", "parts_unchanged": r".*/part-\S+ was changed after it was staged"},
    ),
    "a key of NULL": (  # and no value of a column that is no key
        lambda t: _with(t, "id", pc.if_else(pc.equal(t["id"], 77), _NONE, t["id"])),
        {"key_presence": r"(?!.*new).*'id' is NULL in 1 row of commits 2 to 5, such as row \d+ of [^ ]+parquet$"},
    ),
    "no key": (
        lambda t: t.drop_columns("id"),
        {"key_presence": ".*has no key column 'id'", "schema_compatibility": ".*has columns"},
    ),
    "no such marker": (
        lambda t: _with(t, ROW_MARKER, pc.add(t[ROW_MARKER], _THREE)),
        {"marker_values": ".*(is 3 in row|is 5 in row)"},
    ),
    "long markers": (
        lambda t: _with(t, ROW_MARKER, t[ROW_MARKER].cast(pa.int64())),
        {"marker_values": ".*is not int32"},
    ),
    "markers first": (lambda t: t.select([ROW_MARKER, "id", "name", "amount"]), _LAST),
    "no markers": (lambda t: t.drop_columns(ROW_MARKER), _LAST),
    "another type": (
        _other_schema(lambda t: _with(t, "amount", t["amount"].cast(pa.float32()))),
        {"schema_compatibility": ".*column 'amount' is float, not double"},
    ),
    "another name": (
        _other_schema(lambda t: t.rename_columns(["id", "nom", "amount", ROW_MARKER])),
        {"schema_compatibility": ".*has columns"},
    ),
    "a required column": (
        _other_schema(lambda t: t.cast(t.schema.set(1, pa.field("name", pa.string(), nullable=False)))),
        {"schema_compatibility": ".*column 'name' is REQUIRED"},
    ),
}


@pytest.mark.parametrize(("change", "found"), _DAMAGES.values(), ids=_DAMAGES)
def test_a_damaged_part_fails_the_check_for_it(
    staged: tuple[Lab, SliceRecord], change: Callable[[pa.Table], pa.Table], found: dict[str, str]
) -> None:
    lab, record = staged
    _rewrite(_part(lab, record), change)
    failures = _failures(lab, record)
    for check, message in found.items():
        assert re.match(message, failures[check]), failures
    if "row_order" in found:
        assert set(failures) == {"parts_unchanged", "row_order"}


@pytest.mark.parametrize("damage", [lambda part: part.unlink(), lambda part: part.write_bytes(part.read_bytes()[:-9])])
def test_a_part_that_cannot_be_read_is_named(staged: tuple[Lab, SliceRecord], damage: Callable[[Path], object]) -> None:
    lab, record = staged
    damage(_part(lab, record))
    failures = _failures(lab, record)
    assert set(failures) == set(BLOCKING_CHECKS)
    assert record.parts[0].name in failures["parts_unchanged"]
    assert failures["row_order"] == "skipped: parts_unchanged failed"


def test_a_column_that_landed_in_another_spelling_is_named(staged: tuple[Lab, SliceRecord]) -> None:
    lab, record = staged
    landed = (Column(name="id", type="int"), Column(name="Name", type="string"))
    found = schema_compatibility(StagedSlice(lab.store, record, lab.store), landed)
    assert "column 'name' differs from 'Name', which has landed, in case only" in found.message


def test_a_key_twice_in_a_commit_is_found(lab: Lab) -> None:
    lab.mirror()
    lab.sql("UPDATE {t} SET amount = 1 WHERE id < 3")
    (record,) = stage_range(lab.context, [key(2, 2)])
    assert record is not None
    _rewrite(_part(lab, record), lambda t: pa.concat_tables([t, t.slice(0, 1)]))
    failures = _failures(lab, record)
    assert "row_conservation" not in failures  # counted when it was staged
    assert "no longer has the rows by marker" in failures["marker_values"]
    assert "skipped" in failures["key_uniqueness"]
    (part,) = record.parts
    counted = part.model_copy(update={"markers": count_markers(lab.store, _path(record))})
    failures = _failures(lab, record.model_copy(update={"parts": (counted,)}))
    assert "has 2 rows in 1 commit" in failures["key_uniqueness"]
    assert "3 rows" not in failures["key_uniqueness"]


def test_a_key_of_null_is_found_where_footers_have_no_statistics(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    record = stage(store, next_position(None, epoch=1, incarnation=INCARNATION), last=7)
    part = store.local_path(record.folder.part(record.parts[0].name))
    for ids, problems in (([1, 2], 0), ([None, 2], 1)):
        rows = _with(pq.read_table(part), "id", pa.array(ids, pa.int64()))
        pq.write_table(rows, part, write_statistics=False)
        assert len(key_presence(StagedSlice(store, record, store)).problems) == problems


def test_a_snapshot_must_have_no_marker(lab: Lab) -> None:
    (record,) = stage_range(lab.context, [key(0, 1)])
    assert record is not None
    assert _failures(lab, record) == {}
    zeros = pa.array([0] * 10, pa.int32())
    _rewrite(_part(lab, record), lambda t: t.append_column(ROW_MARKER, zeros))
    assert "must have no" in _failures(lab, record)["marker_values"]


def test_an_int96_timestamp_is_found(lab: Lab) -> None:
    lab.sql("ALTER TABLE {t} ADD COLUMNS (at TIMESTAMP)")
    (record,) = stage_range(lab.context, [key(0, 2)])
    assert record is not None
    path = _part(lab, record)
    pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=True)
    message = _failures(lab, record)["schema_compatibility"]
    assert "INT96" in message or "timestamp[ns" in message


def test_a_row_that_is_not_in_any_part_is_found(staged: tuple[Lab, SliceRecord]) -> None:
    lab, record = staged
    part = record.parts[0]
    fewer = part.model_copy(update={"markers": part.markers.model_copy(update={"inserts": part.markers.inserts - 1})})
    failures = _failures(lab, record.model_copy(update={"parts": (fewer,)}))
    assert "by the log" in failures["row_conservation"]
    assert "were read" in failures["row_conservation"]


def test_a_type_that_differs_from_what_landed_is_found(staged: tuple[Lab, SliceRecord]) -> None:
    lab, record = staged
    columns = tuple(c.model_copy(update={"type": "string"}) if c.name == "amount" else c for c in record.columns)
    failures = _failures(lab, record.model_copy(update={"columns": columns}))
    assert "double has landed before" in failures["schema_compatibility"]


def _text(values: list[bytes | None]) -> pa.Array:
    """Return texts with these bytes, which Spark writes as they are."""
    return pa.array(values, pa.binary()).view(pa.string())


_KINDS: dict[str, tuple[st.SearchStrategy[object], Callable[[list[object]], pa.Array]]] = {
    "int": (_INT, lambda values: pa.array(values, pa.int32())),
    "bigint": (_LONG, lambda values: pa.array(values, pa.int64())),
    "double": (st.floats(allow_nan=False), lambda values: pa.array(values, pa.float64())),
    "boolean": (st.booleans(), lambda values: pa.array(values, pa.bool_())),
    "decimal": (
        st.integers(-(10**37), 10**37).map(lambda number: Decimal(number).scaleb(-10)),
        lambda values: pa.array(values, pa.decimal128(38, 10)),
    ),
    "string": (st.binary(max_size=9), _text),  # type: ignore[dict-item]
    "binary": (st.binary(max_size=9), lambda values: pa.array(values, pa.binary())),
    "date": (_INT, lambda values: pa.array(values, pa.int32()).cast(pa.date32())),
    "timestamp": (_LONG, lambda values: pa.array(values, pa.int64()).cast(pa.timestamp("us", tz="UTC"))),
    "timestamp_ntz": (_LONG, lambda values: pa.array(values, pa.int64()).cast(pa.timestamp("us"))),
    "timestamp_ns": (_LONG, lambda values: pa.array(values, pa.int64()).cast(pa.timestamp("ns"))),
}


@pytest.mark.parametrize("kind", _KINDS)
@given(data=st.data())
def test_any_value_is_shown_and_different_ones_stay_different(kind: str, data: st.DataObject) -> None:
    values, made = _KINDS[kind]
    drawn = data.draw(st.lists(st.none() | values, unique_by=repr, max_size=8))
    rows = readable_rows(pa.table({"key": pa.chunked_array([made(drawn)])}))
    assert len({repr(row) for row in rows}) == len(drawn)
    assert all(shown_key(row).startswith("«key=") for row in rows)


def test_dates_and_times_are_shown_in_full() -> None:
    days = pa.array([3_700_000, -800_000, 0], pa.int32()).cast(pa.date32())
    moments = pa.array([3_700_000 * 86_400_000_000, 0, 1], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    rows = readable_rows(pa.table({"day": days, "at": moments}))
    assert [row["day"] for row in rows] == ["12100-04-04", "-0221-09-04", "1970-01-01"]
    assert rows[0]["at"] == "12100-04-04 00:00:00.000000"
