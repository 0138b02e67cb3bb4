"""Each rule of a landing file and its `_metadata.json`, broken: the table fails, names the file, and recovers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirror_assets.landing.names import landing_name
from mirror_assets.markers import ROW_MARKER
from mirror_assets.monitoring import TableState
from mirror_assets.standin.landed_file import canonical_type
from mirror_assets_tests.standin.publisher import Publisher, bag, pairs, parquet

_GOOD = pairs((1, "a"), (2, "b"))


def _marked(values: pa.Array) -> bytes:
    return parquet(_GOOD.append_column(ROW_MARKER, values))


def _damaged() -> bytes:
    """A footer that is fine, over a data page that is not what its checksum says."""
    sink = pa.BufferOutputStream()
    pq.write_table(pairs(*[(n, f"row {n}") for n in range(100)]), sink, compression="none", write_page_checksum=True)
    data = sink.getvalue().to_pybytes()
    return bytes(data.replace(b"row 50", b"row 5x"))


_BAD: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "empty": (lambda: b"", "file_empty", "0 bytes"),
    "no parquet": (lambda: b"hello", "file_invalid", "not a valid Parquet file"),
    "truncated": (lambda: parquet(_GOOD)[:-9], "file_invalid", "not a valid Parquet file"),
    "damaged page": (_damaged, "file_invalid", "not a valid Parquet file"),
    "marker 3": (lambda: _marked(pa.array([0, 3])), "marker_invalid", "values [3]"),
    "marker 5": (lambda: _marked(pa.array([5, 1])), "marker_invalid", "values [5]"),
    "marker negative": (lambda: _marked(pa.array([0, -1])), "marker_invalid", "values [-1]"),
    "marker NULL": (lambda: _marked(pa.array([0, None])), "marker_invalid", "NULL in 1 rows"),
    "marker text": (lambda: _marked(pa.array(["0", "1"])), "marker_invalid", "has type string"),
    "no key": (lambda: parquet(pa.table({"v": ["a"]})), "key_column_missing", "['k']"),
    "only markers": (lambda: parquet(pa.table({ROW_MARKER: [0]})), "file_invalid", "no data column"),
    "twice": (lambda: parquet(_GOOD.append_column("V", _GOOD["v"])), "column_repeated", "['V', 'v']"),
    "other case": (lambda: parquet(_GOOD.rename_columns(["k", "V"])), "column_repeated", "only by case"),
    "wider": (lambda: parquet(pa.table({"k": pa.array([1], pa.int32())})), "type_changed", "from int64 to int32"),
    "other type": (lambda: parquet(pa.table({"k": [1], "v": [1]})), "type_changed", "from string to int64"),
    "nested": (lambda: parquet(pa.table({"k": [1], "n": [[1]]})), "type_unsupported", "list"),
    "unsigned": (lambda: parquet(pa.table({"k": [1], "n": pa.array([1], pa.uint32())})), "type_unsupported", "uint32"),
    "untyped": (lambda: parquet(pa.table({"k": [1], "n": pa.nulls(1)})), "type_unsupported", "null"),
}


@pytest.mark.parametrize("case", _BAD)
def test_bad_file_stops_the_table_until_it_is_replaced(publisher: Publisher, case: str) -> None:
    make, code, why = _BAD[case]
    publisher.declare()
    publisher.land(1, _GOOD)
    publisher.land_bytes(2, make())
    publisher.land(3, pairs((3, "c")))
    status = publisher.poll()
    assert (status.state, status.error_code, status.applied_number) == (TableState.FAILED, code, 1)
    assert status.message is not None
    assert landing_name(2) in status.message
    assert why in status.message
    assert publisher.poll() == status, "the failure holds"
    publisher.land(2, pairs((9, "z")))
    after = publisher.poll()
    assert (after.state, after.error_code, after.message, after.applied_number) == (
        TableState.REPLICATING,
        None,
        None,
        3,
    )
    assert bag(publisher.rows()) == bag(pairs((1, "a"), (2, "b"), (9, "z"), (3, "c")))


def test_int96_timestamps_are_refused(publisher: Publisher) -> None:
    publisher.declare()
    sink = pa.BufferOutputStream()
    rows = pa.table({"k": [1], "at": pa.array([1], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, sink, use_deprecated_int96_timestamps=True)
    publisher.land_bytes(1, sink.getvalue().to_pybytes())
    assert publisher.poll().error_code == "type_unsupported"


@pytest.mark.parametrize("marker", [1, 2, 4])
def test_changes_need_declared_keys(publisher: Publisher, marker: int) -> None:
    publisher.declare(keys=None)
    publisher.land(1, _GOOD, [0, 0])
    publisher.land(2, _GOOD, [0, marker])
    status = publisher.poll()
    assert (status.error_code, status.applied_number) == ("marker_needs_keys", 1)
    publisher.declare(["k"])
    assert publisher.poll().applied_number == 2, "keys may be declared later, once"


def test_marker_counts_wherever_it_stands_and_whatever_its_width(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a"), (2, "b")))
    publisher.land(2, pa.table({"v": ["x", "y"], ROW_MARKER: pa.array([1, 2], pa.uint8()), "k": [1, 2]}))
    assert publisher.poll().state is TableState.REPLICATING
    assert bag(publisher.rows()) == bag(pairs((1, "x")))


def test_file_without_marker_is_all_upserts_where_that_is_declared(publisher: Publisher) -> None:
    publisher.declare(isUpsertDefaultRowMarker=True)
    publisher.land(1, pairs((1, "a"), (1, "b"), (2, "c")))
    publisher.land(2, pairs((2, "d")))
    publisher.poll()
    assert bag(publisher.rows()) == bag(pairs((1, "b"), (2, "d")))


def test_a_column_landed_not_null_cant_be_dropped(publisher: Publisher) -> None:
    required = pa.schema([("k", pa.int64()), pa.field("v", pa.string(), nullable=False)])
    publisher.declare()
    publisher.land(1, _GOOD.cast(required))
    publisher.land(2, pa.table({"k": [1]}), [2])
    publisher.land(3, pa.table({"k": [1]}), [4])
    status = publisher.poll()
    assert (status.error_code, status.applied_number) == ("schema_merge_failure", 2), "deletes need only keys"
    publisher.land(3, pairs((1, None)), [4])
    assert publisher.poll().error_code == "schema_merge_failure", "the rule outlives the poll that made the column"
    publisher.land(3, pairs((1, "c")), [4])
    assert publisher.poll().state is TableState.REPLICATING


def test_type_change_inside_one_poll_is_seen(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.land(2, pa.table({"k": [2], "new": [1]}))
    publisher.land(3, pa.table({"k": [3], "new": ["x"]}))
    status = publisher.poll()
    assert (status.error_code, status.applied_number, status.mirror_rows) == ("type_changed", 2, 2)


_AT = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)
_VALUES = pa.table(
    {
        "k": pa.array([1, 2, 3]),
        "i8": pa.array([-128, None, 127], pa.int8()),
        "i16": pa.array([1, None, 2], pa.int16()),
        "f32": pa.array([float("nan"), -0.0, None], pa.float32()),
        "f64": pa.array([float("nan"), -0.0, float("-inf")], pa.float64()),
        "text": pa.array(["", "é\n\u0000", None]),
        "raw": pa.array([b"", b"\x00\xff", None]),
        "flag": pa.array([True, None, False]),
        "day": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
        "at": pa.array([datetime(1, 1, 1, tzinfo=timezone.utc), None, _AT], pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(1, 1, 1), None, datetime(9999, 12, 31)], pa.timestamp("us")),  # noqa: DTZ001, without zone on purpose
        "money": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal128(38, 2)),
    }
)


def test_values_of_every_type_survive_append_and_rewrite(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, _VALUES.slice(0, 2))
    publisher.land(2, _VALUES.slice(2, 1))
    publisher.poll()
    assert bag(publisher.rows()) == bag(_VALUES)
    publisher.land(3, _VALUES.slice(0, 1), [2])
    publisher.poll()
    assert bag(publisher.rows()) == bag(_VALUES.slice(1, 2)), "what is left was rewritten"
    columns = pa.table(publisher.delta().get_add_actions(flatten=True)).column_names
    assert [name for name in columns if name.startswith(("min", "max"))] == [], "readers could skip NaN by them"


@pytest.mark.parametrize("name", ["a b", "a,b;{}()=\t", "é中", "a.b", "a`b", "a%20b", 'a"b'])
def test_any_column_name_works_as_key_and_as_value(publisher: Publisher, name: str) -> None:
    publisher.declare([name])
    publisher.land(1, pa.table({name: [1, 2], f"{name}2": ["a", "b"]}))
    publisher.poll()
    publisher.land(2, pa.table({name: [1], f"{name}2": ["c"]}), [1])
    publisher.poll()
    assert bag(publisher.rows()) == bag(pa.table({name: [1, 2], f"{name}2": ["c", "b"]}))


def test_new_columns_are_null_before_and_dropped_ones_after(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a"), (2, "a")))
    publisher.poll()
    publisher.land(2, pa.table({"k": [2, 3], "new": [1.5, 2.5]}), [1, 0])
    publisher.poll()
    left = pa.table({"k": [1, 2, 3], "v": ["a", None, None], "new": [None, 1.5, 2.5]})
    assert bag(publisher.rows()) == bag(left)
    assert publisher.rows().schema.names == ["k", "v", "new"]


def test_new_column_of_a_required_file_is_nullable(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    new = pa.schema([("k", pa.int64()), pa.field("new", pa.int64(), nullable=False)])
    publisher.land(2, pa.table({"k": [2], "new": [1]}, schema=new))
    publisher.land(3, pairs((3, "c")))
    assert publisher.poll().state is TableState.REPLICATING


def test_zoneless_timestamp_may_come_later(publisher: Publisher) -> None:
    """It raises the table's Delta protocol, beside a column that was landed not nullable."""
    required = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    publisher.declare()
    publisher.land(1, pa.table({"k": [1]}, schema=required))
    publisher.poll()
    publisher.land(2, _VALUES.select(["k", "local"]))
    assert publisher.poll().state is TableState.REPLICATING
    assert publisher.rows().schema.field("local").type == pa.timestamp("us")


@pytest.mark.parametrize(
    ("landed", "stored"),
    [
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary(16), pa.binary()),
        (pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (pa.timestamp("ns", "UTC"), None),
        (pa.decimal256(76, 2), None),
        (pa.time64("us"), None),
        (pa.float16(), None),
        (pa.struct([("a", pa.int64())]), None),
    ],
)
def test_canonical_types(landed: pa.DataType, stored: pa.DataType | None) -> None:
    assert canonical_type(landed) == stored


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "metadata_invalid"),
        ("[]", "metadata_invalid"),
        ('{"keyColumns": "k"}', "metadata_invalid"),
        ('{"keyColumns": [1]}', "metadata_invalid"),
        ('{"keyColumns": ["k", "k"]}', "metadata_invalid"),
        ('{"keyColumns": ["k"], "fileDetectionStrategy": "LastUpdateTimeFileDetection"}', "metadata_unsupported"),
        ('{"keyColumns": ["k"], "FileFormat": "DelimitedText"}', "metadata_unsupported"),
        (f'{{"note": "{"x" * 2_000_000}"}}', "metadata_invalid"),
    ],
)
def test_bad_metadata_stops_the_table_until_it_is_replaced(publisher: Publisher, text: str, code: str) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    (publisher.folder() / "_metadata.json").write_text(text)
    status = publisher.poll()
    assert (status.state, status.error_code, status.applied_number) == (TableState.FAILED, code, 0)
    publisher.declare()
    assert publisher.poll().state is TableState.REPLICATING


@pytest.mark.parametrize("later", [["v"], ["k", "v"], [], None])
def test_declared_keys_are_never_changed(publisher: Publisher, later: list[str] | None) -> None:
    publisher.declare(["k"])
    publisher.poll()
    publisher.declare(later)
    publisher.land(1, pairs((1, "a")))
    status = publisher.poll()
    assert (status.state, status.error_code, status.applied_number) == (TableState.FAILED, "keys_changed", 0)
    publisher.declare(["k"])
    assert publisher.poll().applied_number == 1


def test_table_without_metadata_is_not_ingested(publisher: Publisher) -> None:
    publisher.folder().mkdir()
    publisher.land(1, pairs((1, "a")))
    assert publisher.replicator().poll() == ()
    assert not (publisher.mirror / "dbo").exists()
    publisher.declare()
    assert publisher.poll().mirror_rows == 1


def test_metadata_that_goes_away_stops_the_table(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.poll()
    (publisher.folder() / "_metadata.json").unlink()
    publisher.land(2, pairs((2, "b")))
    status = publisher.poll()
    assert (status.state, status.applied_number, status.mirror_rows) == (TableState.STOPPED, 1, 1)
    assert "_metadata.json" in (status.message or "")
    publisher.declare()
    assert publisher.poll().mirror_rows == 2
