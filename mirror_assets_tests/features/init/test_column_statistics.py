"""What statistics prove of columns: bounds that no table ever exceeds, and that rule out what can't be a key."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings

from mirror_assets.features.init.column_statistics import ColumnStatistics, _of_column, column_statistics
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.source.handmade import (
    Action,
    column,
    commit_file,
    metadata_action,
    schema_string,
    write_commit,
)


def _statistics(folder: Path) -> dict[str, ColumnStatistics]:
    log = DeltaLog(str(folder))
    return {column.name: column for column in column_statistics(log, log.state())}


def test_ranges_nulls_and_partitions_bound_distinct_values(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, 2, 30], pa.int64()),
            "a.b": pa.array([5, None, 7], pa.int32()),
            "day": [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 2)],
            "price": pa.array([Decimal("1.10"), Decimal("1.20"), Decimal("1.15")], pa.decimal128(9, 2)),
            "at": [datetime(2026, 1, 1, tzinfo=timezone.utc)] * 3,
            "name": ["x", "y", "z"],
            "same": ["x", "x", "x"],
            "flag": [True, False, True],
            "nested": [{"x": 1}] * 3,
        }
    )
    write_deltalake(tmp_path, rows)
    found = _statistics(tmp_path)
    bounds = {name: (column.nulls_at_most, column.distinct_at_most) for name, column in found.items()}
    assert bounds == {
        "id": (0, 3),
        "a.b": (1, 3),
        "day": (0, 2),
        "price": (0, 3),
        "at": (0, 3),
        "name": (0, 3),
        "same": (0, 1),
        "flag": (0, 2),
        "nested": (None, None),
    }


def test_dates_beyond_pythons_years_are_counted(tmp_path: Path) -> None:
    days = pa.array([3_700_000, 3_700_004, None], pa.int32()).cast(pa.date32())
    moments = pa.array([-(10**17), 4 * 10**17, 0], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    rows = pa.table({"day": days, "at": moments, "info": pa.array([{"day": 1}] * 3), "part": days})
    write_deltalake(tmp_path, rows, partition_by=["part"])
    found = _statistics(tmp_path)
    assert found["day"] == ColumnStatistics("day", 1, 2)
    assert found["at"] == ColumnStatistics("at", 0, 3)
    assert found["part"] == ColumnStatistics("part", 1, 2)


def test_files_add_up_and_partitions_have_one_value_a_file(tmp_path: Path) -> None:
    for part in ("a", "b", None):
        rows = pa.table({"n": [1, 1, 1, 2], "part": pa.array([part] * 4, pa.string())})
        write_deltalake(tmp_path, rows, partition_by=["part"], mode="append")
    found = _statistics(tmp_path)
    assert found["part"] == ColumnStatistics("part", 4, 2)
    assert found["n"] == ColumnStatistics("n", 0, 2)


def test_a_log_that_deltalake_refuses_proves_nothing(tmp_path: Path) -> None:
    _handmade(tmp_path, None)
    commit_file(tmp_path, 0).write_bytes(b"\xef\xbb\xbf" + commit_file(tmp_path, 0).read_bytes())
    assert _statistics(tmp_path)["id"] == ColumnStatistics("id", None, None)


def test_an_empty_table_has_nothing(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": pa.array([], pa.int64())}))
    assert _statistics(tmp_path)["id"] == ColumnStatistics("id", 0, 0)


@pytest.mark.parametrize("stats", [None, json.dumps({"numRecords": 5})])
def test_without_statistics_nothing_is_proven(tmp_path: Path, stats: str | None) -> None:
    _handmade(tmp_path, stats)
    assert _statistics(tmp_path)["id"] == ColumnStatistics("id", None, 5 if stats else None)


def test_statistics_are_found_by_the_physical_name(tmp_path: Path) -> None:
    stats = {"numRecords": 5, "minValues": {"col-1": 1}, "maxValues": {"col-1": 3}, "nullCount": {"col-1": 2}}
    _handmade(tmp_path, json.dumps(stats))
    assert _statistics(tmp_path)["id"] == ColumnStatistics("id", 2, 3)


def _handmade(folder: Path, stats: str | None) -> None:
    """Write a log of one commit: a table with column mapping and one file."""
    protocol: Action = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    metadata = metadata_action(schema_string(column("id", mapped=(1, "col-1"))), **mapping)
    add = {"path": "a.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    write_commit(folder, 0, [protocol, metadata, {"add": {**add, "stats": stats}}])


_ROWS = st.lists(st.tuples(st.none() | st.integers(-5, 5), st.sampled_from(["p", "q"])), min_size=1, max_size=12)


@settings(max_examples=25)
@given(st.lists(_ROWS, min_size=1, max_size=3))
def test_no_table_exceeds_its_bounds(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[int | None, str]]]
) -> None:
    folder = tmp_path_factory.mktemp("table")
    for rows in files:
        number, part = zip(*rows, strict=True)
        table = pa.table({"n": pa.array(number, pa.int32()), "part": pa.array(part)})
        write_deltalake(folder, table, mode="append", partition_by=["part"])
    everything = [row for rows in files for row in rows]
    found = _statistics(folder)
    for index, name in enumerate(("n", "part")):
        values = [row[index] for row in everything]
        assert found[name].nulls_at_most == values.count(None)
        bound = found[name].distinct_at_most
        assert bound is not None
        assert len({value for value in values if value is not None}) <= bound


_COUNTS = st.none() | st.integers(0, 9)
_FILES = st.lists(
    st.tuples(_COUNTS, _COUNTS, st.none() | st.integers(-4, 4), st.none() | st.integers(0, 4)), max_size=7
)


@settings(max_examples=200)
@given(_FILES, st.integers(1, 8))
def test_bounds_are_those_of_all_files_at_once(
    files: list[tuple[int | None, int | None, int | None, int | None]], batch: int
) -> None:
    """Statistics are read some files at a time, and any of them may be missing."""
    rows, nulls, least, more = (pa.array([file[index] for file in files], pa.int64()) for index in range(4))
    most = pc.add(least, more)
    adds = pa.table(
        {
            "num_records": rows,
            **{
                kind: pa.StructArray.from_arrays([values], ["n"])
                for kind, values in {"null_count": nulls, "min": least, "max": most}.items()
            },
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirror_assets.features.init.column_statistics._FILES", batch)
        found = _of_column("n", "n", adds)
    counts = nulls.to_pylist()
    assert found.nulls_at_most == (None if None in counts else sum(counts))
    with_values = [
        (count, low, high)
        for count, null, low, high in zip(rows.to_pylist(), counts, least.to_pylist(), most.to_pylist(), strict=True)
        if count is None or null != count
    ]
    spans = [None if low is None or high is None else high - low + 1 for _, low, high in with_values]
    bounds = [
        min(known) if (known := [bound for bound in (count, span) if bound is not None]) else None
        for (count, _, _), span in zip(with_values, spans, strict=True)
    ]
    ends = [end for _, low, high in with_values for end in (low, high)]
    candidates = [
        None if None in bounds else sum(bound for bound in bounds if bound is not None),
        None if None in ends else max(ends) - min(ends) + 1 if ends else 0,
    ]
    assert found.distinct_at_most == min((one for one in candidates if one is not None), default=None)
