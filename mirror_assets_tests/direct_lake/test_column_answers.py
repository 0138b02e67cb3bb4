"""The bytes that a model loads of each column, and floats whose values hardly repeat."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake

from mirror_assets.direct_lake.columns import ColumnAnswer, ColumnNames, column_layouts, float_answers, loaded_bytes
from mirror_assets.direct_lake.footers import Coding
from mirror_assets.direct_lake.layout import LayoutReport, layout_report
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.schema import parse_schema
from mirror_assets_tests.direct_lake.parquet_files import age, read, write
from mirror_assets_tests.direct_lake.tables import seen
from mirror_assets_tests.errors import raises
from mirror_assets_tests.source.handmade import column, schema_string

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
    loaded, unused = loaded_bytes(report.columns, names, ["ProductID", "StockOnHand", "Date"])
    stored: dict[str, int] = {}
    for uri in DeltaTable(tmp_path).file_uris():
        group = pq.read_metadata(uri.removeprefix("file://")).row_group(0)
        for chunk in (group.column(i) for i in range(group.num_columns)):
            column = chunk.path_in_schema.partition(".")[0]
            stored[column] = stored.get(column, 0) + chunk.total_compressed_size
    used = stored["ProductID"] + stored["StockOnHand"]  # the values of Date name folders
    assert loaded.figures["used_bytes"] == used
    share = 100 * used / (used + stored["Member"])
    assert loaded.found == f"3 columns load {used:,} bytes, {share:.0f} % of all"
    assert (unused.column, unused.figures["bytes"]) == ("Member", stored["Member"])


def test_an_unknown_column_is_said(tmp_path: Path) -> None:
    _inventory(tmp_path)
    report, names = _requested(tmp_path)
    with raises(SettingError, ErrorCode.COLUMN_UNKNOWN, match="no column `Product`"):
        loaded_bytes(report.columns, names, ["Product"])


def _floats(path: Path, **columns: list[float | None]) -> dict[str, ColumnAnswer]:
    """The answers for floats in a file of these columns; their writer is said to be Spark's."""
    rows = pa.table({name: pa.array(values, pa.float64()) for name, values in columns.items()})
    write(path, "a.parquet", rows.append_column("id", pa.array(range(rows.num_rows))), version="1.0")
    age(path / "a.parquet", b"")
    footers = read(path)
    layouts = column_layouts(footers, ColumnNames(parse_schema(_schema(rows))))
    return {found.column: found for found in float_answers(layouts, {"parquet-mr": 1})}


def _schema(rows: pa.Table) -> str:
    return schema_string(column("id"), *(column(name, "double") for name in rows.column_names))


def test_floats_that_hardly_repeat_are_to_be_rounded(tmp_path: Path) -> None:
    found = _floats(
        tmp_path,
        price=[i % 10 + 0.5 for i in range(1_000)],
        share=[i / 7 for i in range(1_000)],
        rare=[i / 7 if i % 100 == 0 else None for i in range(1_000)],
        none=[None] * 1_000,
    )
    assert {name: (one.figures["least_percent"], one.figures["most_percent"]) for name, one in found.items()} == {
        "price": (1, 1),
        "share": (100, 100),
        "rare": (100, 100),
        "none": (0, 0),
    }
    assert "DECIMAL" in found["share"].advice
    assert (found["price"].advice, found["none"].advice) == ("", "")
    assert found["share"].found.endswith("% of all bytes; in a row group, at least 100 of 100 values differ")


def test_a_dictionary_that_is_full_proves_different_values(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"x": [i / 7 for i in range(200_000)]}))
    report, _ = _requested(tmp_path)
    (found,) = float_answers(report.columns, report.writers)
    assert (found.figures["most_percent"], found.advice[:8]) == (100, "round it")


def test_dictionaries_of_other_writers_prove_different_values(tmp_path: Path) -> None:
    rows = {"price": [i % 10 + 0.5 for i in range(1_000)], "share": [i / 7 for i in range(1_000)]}
    write_deltalake(tmp_path, pa.table(rows))
    report, _ = _requested(tmp_path)
    advised = {found.column: found.advice[:8] for found in float_answers(report.columns, report.writers)}
    assert advised == {"price": "", "share": "round it"}


def test_without_dictionaries_nothing_is_known(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"x": [i / 7 for i in range(500)]}), writer_properties=_PLAIN)
    report, _ = _requested(tmp_path)
    (found,) = float_answers(report.columns, report.writers)
    assert found.found == "100 % of all bytes; in a row group, the number of different values is unknown"
    # Spark's writer drops dictionaries that save nothing, unless it makes none at all.
    spark = {"parquet-mr version 1.17.1": 1}
    assert float_answers(report.columns, spark) == (found,)
    (layout,) = report.columns
    other = replace(layout, label="other", name=None, parquet=replace(layout.parquet, codings={Coding.DICTIONARY: 1}))
    (dropped,) = float_answers((layout, other), spark)
    assert dropped.figures["least_percent"] == 100
    assert float_answers((layout, other), report.writers) == (found,)
