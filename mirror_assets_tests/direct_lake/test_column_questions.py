"""Questions about columns: what loading them takes, floats that hardly repeat, and partitioning by them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake

from mirror_assets.direct_lake.column_questions import FloatColumn, Repeats, candidate, float_columns, loading
from mirror_assets.direct_lake.footers.facts import Coding
from mirror_assets.direct_lake.footers.parquet_columns import Bounds, ColumnNames
from mirror_assets.direct_lake.guardrails.capacity_fit import Verdict
from mirror_assets.direct_lake.guardrails.skus import sku_of
from mirror_assets.direct_lake.table_layout import LayoutReport, layout_report
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets_tests.direct_lake.tables import seen
from mirror_assets_tests.errors import raises

_PLAIN = WriterProperties(default_column_properties=ColumnProperties(dictionary_enabled=False))


def _requested(path: Path) -> tuple[LayoutReport, ColumnNames]:
    snapshot, footers = seen(path)
    return layout_report(snapshot, footers), ColumnNames.of(snapshot.metadata)


def _inventory(path: Path) -> None:
    """The seed's table of three columns, twice, by day."""
    for _ in range(2):
        rows = {
            "Date": pa.array([date(2024, 9, 16 + i % 2) for i in range(300)]),
            "ProductID": [f"product {i % 20}" for i in range(300)],
            "StockOnHand": [i * 37 % 101 for i in range(300)],
            "Member": pa.array([{"a": i, "b": str(i)} for i in range(300)]),
        }
        write_deltalake(path, pa.table(rows), mode="append", partition_by=["Date"])


def test_a_query_loads_the_columns_that_it_names(tmp_path: Path) -> None:
    _inventory(tmp_path)
    report, names = _requested(tmp_path)
    found = loading(report.columns, names, ["ProductID", "StockOnHand", "Date"])
    stored: dict[str, int] = {}
    for uri in DeltaTable(tmp_path).file_uris():
        group = pq.read_metadata(uri.removeprefix("file://")).row_group(0)
        for chunk in (group.column(i) for i in range(group.num_columns)):
            column = chunk.path_in_schema.partition(".")[0]
            stored[column] = stored.get(column, 0) + chunk.total_compressed_size
    assert found.used_bytes == stored["ProductID"] + stored["StockOnHand"]
    assert [(one.column, one.compressed) for one in found.unused] == [("Member", stored["Member"])]
    assert {one.column: one.compressed for one in found.used}["Date"] == 0  # its values name folders
    loaded, unused = found.answers()
    assert (
        loaded.found == f"3 columns load {found.used_bytes:,} bytes, {loaded.figures['used_bytes_share']:.0f} % of all"
    )
    assert (unused.subject, unused.figures["bytes"]) == ("Member", stored["Member"])


def test_an_unknown_column_is_said(tmp_path: Path) -> None:
    _inventory(tmp_path)
    report, names = _requested(tmp_path)
    with raises(SettingError, ErrorCode.COLUMN_UNKNOWN, match="no column `Product`"):
        loading(report.columns, names, ["Product"])
    with raises(SettingError, ErrorCode.COLUMN_UNKNOWN):
        candidate(report, names, "Product")


def _floats(path: Path, **columns: list[float | None]) -> dict[str, FloatColumn]:
    rows = pa.table({name: pa.array(values, pa.float64()) for name, values in columns.items()})
    write_deltalake(path, rows.append_column("id", pa.array(range(rows.num_rows))))
    return {found.label: found for found in float_columns(_requested(path)[0])}


def test_floats_that_hardly_repeat_are_to_be_rounded(tmp_path: Path) -> None:
    found = _floats(
        tmp_path,
        price=[i % 10 + 0.5 for i in range(1_000)],
        share=[i / 7 for i in range(1_000)],
        rare=[i / 7 if i % 100 == 0 else None for i in range(1_000)],
        none=[None] * 1_000,
    )
    assert {name: (one.repeats, one.different_percent) for name, one in found.items()} == {
        "price": (Repeats.OFTEN, 1),
        "share": (Repeats.HARDLY, 100),
        "rare": (Repeats.HARDLY, 100),
        "none": (Repeats.OFTEN, 0),
    }
    assert "DECIMAL" in found["share"].answer().advice
    assert (found["price"].answer().advice, found["none"].answer().advice) == ("", "")
    assert found["share"].answer().found.endswith("% of all bytes; 100 of 100 values in a row group differ")


def test_a_dictionary_that_grew_too_large_tells_as_much(tmp_path: Path) -> None:
    properties = WriterProperties(dictionary_page_size_limit=4_000, data_page_row_count_limit=500, write_batch_size=100)
    write_deltalake(tmp_path, pa.table({"x": [i / 7 for i in range(5_000)]}), writer_properties=properties)
    (found,) = float_columns(_requested(tmp_path)[0])
    assert found.repeats is Repeats.HARDLY


def test_without_dictionaries_nothing_is_known(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"x": [i / 7 for i in range(500)]}), writer_properties=_PLAIN)
    (found,) = float_columns(_requested(tmp_path)[0])
    assert (found.repeats, found.different_percent) == (Repeats.UNKNOWN, None)
    assert found.answer().found == "100 % of all bytes; no dictionaries tell how many values differ"
    # Spark's writer gives dictionaries up that don't pay, unless it makes none at all.
    report = _requested(tmp_path)[0]
    by_spark = replace(report, writers={"parquet-mr version 1.17.1": 1})
    assert float_columns(by_spark) == (found,)
    (column,) = report.columns
    other = replace(column, label="other", name=None, parquet=replace(column.parquet, codings={Coding.DICTIONARY: 1}))
    (given_up,) = float_columns(replace(by_spark, columns=(column, other)))
    assert (given_up.repeats, given_up.different_percent) == (Repeats.HARDLY, 100)
    assert float_columns(replace(report, columns=(column, other))) == (found,)


def test_partitioning_by_a_column(tmp_path: Path) -> None:
    rows = 3_000
    columns = {
        "id": pa.array(range(rows)),
        "month": pa.array([f"2024-{i % 12 + 1:02}" for i in range(rows)]),
        "day": pa.array([date(2024, 1, 1) + timedelta(days=i % 366) for i in range(rows)]),
        "flag": pa.array([None if i % 3 == 0 else i % 2 == 0 for i in range(rows)]),
    }
    write_deltalake(tmp_path, pa.table(columns))
    report, names = _requested(tmp_path)
    requested = {name: candidate(report, names, name) for name in columns}
    assert {name: one.partitions for name, one in requested.items()} == {
        "id": Bounds(3_000, 3_000),
        "month": Bounds(12, 12),
        "day": Bounds(366, 366),
        "flag": Bounds(2, 3),
    }
    assert [requested[name].verdict(sku_of("F2")) for name in columns] == [Verdict.OVER, *[Verdict.FITS] * 3]
    assert requested["id"].verdict(sku_of("F64")) is Verdict.FITS
    # The second load has the same values, but nobody can tell that.
    write_deltalake(tmp_path, pa.table(columns), mode="append")
    report, names = _requested(tmp_path)
    assert candidate(report, names, "month").partitions == Bounds(12, 24)
    assert candidate(report, names, "day").partitions == Bounds(366, 366)  # as many days as there are
    again = candidate(report, names, "id")
    assert (again.files, again.verdict(sku_of("F64"))) == (Bounds(3_000, 6_001), Verdict.UNSURE)
    answer = again.answer(sku_of("F64"))
    assert answer.found == "3,000 to 6,000 partitions, 3,000 to 6,001 files of 5,000: unsure"
    assert "coarser key" in answer.advice


def test_the_present_partition_column_is_known_exactly(tmp_path: Path) -> None:
    rows = pa.table({"id": range(40), "p": [None if i % 5 == 0 else i % 4 for i in range(40)]})
    for _ in range(3):
        write_deltalake(tmp_path, rows, mode="append", partition_by=["p"])
    assert candidate(*_requested(tmp_path), "p").partitions == Bounds(5, 5)


def test_nothing_is_partitioned_by_a_nested_column(tmp_path: Path) -> None:
    _inventory(tmp_path)
    found = candidate(*_requested(tmp_path), "Member")
    assert (found.partitions, found.verdict(sku_of("F2"))) == (None, Verdict.UNSURE)
    assert found.answer(sku_of("F2")).found.startswith("not known: it is nested")


def test_a_column_that_no_file_has_makes_one_partition(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    table.alter.add_columns(DeltaTable.create(tmp_path / "other", pa.schema([("later", pa.int64())])).schema().fields)
    assert candidate(*_requested(tmp_path), "later").partitions == Bounds(1, 1)
