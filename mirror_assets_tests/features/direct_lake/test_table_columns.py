"""Columns over many files: sizes, bounds on their different values, names in the table, and answers about their use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import WriterProperties, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_assets.features.direct_lake.footers import Footers
from mirror_assets.features.direct_lake.table_columns import (
    MOST_CHARACTERS,
    Certainty,
    ColumnNames,
    ParquetColumn,
    TypeIssue,
    parquet_columns,
    type_issues,
)
from mirror_assets.source.actions import Metadata
from mirror_assets_tests.features.direct_lake.parquet_files import read, report, write
from mirror_assets_tests.source.handmade import Action, column, schema_string


def _names(*columns: Action, **configuration: str) -> ColumnNames:
    properties = {f"delta.{name}": value for name, value in configuration.items()}
    return ColumnNames.of(Metadata("t", schema_string(*columns), properties))


def _columns(footers: Footers) -> dict[str, ParquetColumn]:
    return {found.path: found for found in parquet_columns(footers, _names())}


def test_sums_are_those_of_the_files(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100), "text": [None if i % 4 == 0 else f"t{i % 3}" for i in range(100)]})
    write(tmp_path, "a.parquet", rows, row_group_size=30)
    write(tmp_path, "b.parquet", rows.slice(0, 10).drop_columns("id"), use_dictionary=False)
    columns = _columns(read(tmp_path))
    assert list(columns) == ["id", "text"]
    text = columns["text"]
    metadata = [pq.read_metadata(tmp_path / f"{name}.parquet") for name in "ab"]
    chunks = [m.row_group(i).column(m.num_columns - 1) for m in metadata for i in range(m.num_row_groups)]
    assert text.compressed == sum(chunk.total_compressed_size for chunk in chunks)
    assert (text.without_dictionary_percent, columns["id"].longest_bytes) == (20, None)


def test_a_type_that_was_widened_shows_both(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", pa.table({"n": pa.array([1], pa.int32())}))
    write(tmp_path, "b.parquet", pa.table({"n": pa.array([1], pa.int64())}))
    assert _columns(read(tmp_path))["n"].physical_types == ("INT32", "INT64")


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=40), min_size=1, max_size=3),
    st.booleans(),
)
def test_no_text_is_longer_than_the_longest(files: list[list[str | None]], dictionary: bool) -> None:
    with TemporaryDirectory() as folder:
        properties = WriterProperties(max_row_group_size=16, dictionary_page_size_limit=None if dictionary else 1)
        for values in files:
            rows = pa.table({"text": pa.array(values, pa.string())})
            write_deltalake(folder, rows, mode="append", writer_properties=properties)
        text = _columns(read(Path(folder)))["text"]
    assert text.longest_bytes is not None
    assert max((len(one.encode()) for values in files for one in values if one), default=0) <= text.longest_bytes


def _struct(*fields: Action) -> Action:
    return {"type": "struct", "fields": list(fields)}


_ARRAY: Action = {"type": "array", "elementType": "long", "containsNull": True}
_MAP: Action = {"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": True}
_TRACKED = {
    "rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}


@pytest.mark.parametrize(
    ("names", "path", "found", "is_dropped"),
    [
        (_names(column("id")), "id", "id", False),
        (_names(column("id")), "ID", None, True),
        (_names(column("a.b"), column("a", _struct(column("b")))), "a.b", "a.b", False),
        (_names(column("a", _struct(column("b")))), "a.b", "a", False),
        # With column mapping, files have the physical names.
        (_names(column("id", mapped=(1, "col-1"))), "col-1", "id", False),
        (_names(column("id", mapped=(1, "col-1"))), "id", None, True),
        (_names(column("id", mapped=(1, "col-1")), column("col-1", mapped=(2, "col-2"))), "col-2", "col-1", False),
        # A member of a struct can be dropped alone.
        (_names(column("s", _struct(column("x", mapped=(3, "c-x"))), mapped=(2, "c-s"))), "c-s.c-x", "s", False),
        (_names(column("s", _struct(column("x", mapped=(3, "c-x"))), mapped=(2, "c-s"))), "c-s.c-y", None, True),
        # Writers name the inside of lists, maps and variants differently.
        (_names(column("l", _ARRAY)), "l.list.element.x", "l", False),
        (_names(column("l", _ARRAY)), "l.bag.array", "l", False),
        (_names(column("m", _MAP)), "m.key_value.value", "m", False),
        (_names(column("v", "variant")), "v.metadata", "v", False),
        # Row ids are Delta's own.
        (_names(column("id"), **_TRACKED), "_row-id-col-1", None, False),
        (_names(column("id"), **_TRACKED), "_row-commit-version-col-1", None, False),
        (_names(column("id"), **_TRACKED), "_row-id-col-2", None, True),
    ],
)
def test_a_column_of_files_is_found_in_the_table(
    names: ColumnNames, path: str, found: str | None, is_dropped: bool
) -> None:
    assert (names.column(path), names.is_dropped(path)) == (found, is_dropped)


def _schema(*columns: Action) -> ColumnNames:
    return ColumnNames.of(Metadata("t", schema_string(*columns)))


def _found(issues: Iterable[TypeIssue]) -> dict[str, Certainty]:
    return {issue.column: issue.certainty for issue in issues}


def test_every_type_has_its_verdict() -> None:
    array = {"type": "array", "elementType": "long", "containsNull": True}
    plain = ("byte", "short", "integer", "long", "boolean", "date", "timestamp", "timestamp_ntz", "decimal(38,18)")
    names = _schema(
        *(column(name, name) for name in plain),
        column("list", array),
        column("either", "variant"),
        column("guid", "binary"),
        column("share", "float"),
        column("ratio", "double"),
        column("nothing", "void"),
        column("text", "string"),
        column("short text", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": f"varchar({MOST_CHARACTERS})"}),
        column("long text", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": f"varchar({MOST_CHARACTERS + 1})"}),
        column("month", "string"),
    )
    assert _found(type_issues("/lake/t", names, ["month"])) == {
        "list": Certainty.FAILS,
        "either": Certainty.FAILS,
        "guid": Certainty.FAILS,
        "share": Certainty.MAY_FAIL,
        "ratio": Certainty.MAY_FAIL,
        "nothing": Certainty.MAY_FAIL,
        "text": Certainty.UNSEEN,
        "long text": Certainty.UNSEEN,
    }


def test_footers_show_that_texts_are_short_enough(tmp_path: Path) -> None:
    rows = {"short": ["a"] * 50_000, "long": ["a" * 40_000] + ["a"] * 49_999}
    write_deltalake(tmp_path, pa.table(rows))
    names = _schema(column("short", "string"), column("long", "string"))
    assert _found(type_issues("t", names, (), report(tmp_path).columns)) == {"long": Certainty.UNSEEN}


def test_a_statement_decides_what_footers_do_not_show() -> None:
    names = _schema(column("sha`re", "double"), column("text", "string"))
    assert [issue.statement for issue in type_issues("/la`ke/t", names)] == [
        "SELECT count(*) FROM delta.`/la``ke/t` WHERE isnan(`sha``re`) OR abs(`sha``re`) = double('infinity')",
        "SELECT max(length(`text`)) FROM delta.`/la``ke/t`",
    ]
