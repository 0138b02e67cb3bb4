"""The type lint: what surely fails, what may, and what can't be seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mirror_assets.direct_lake.columns import ColumnNames, parquet_columns
from mirror_assets.direct_lake.footer_reader import FooterReader
from mirror_assets.direct_lake.type_rules import MOST_CHARACTERS, Certainty, TypeLint
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.actions import Metadata
from mirror_assets.source.table_log import TableLog
from mirror_assets_tests.direct_lake.parquet_files import by_spark
from mirror_assets_tests.errors import raises
from mirror_assets_tests.source.handmade import Action, column, schema_string


def _schema(*columns: Action) -> ColumnNames:
    return ColumnNames.of(Metadata("t", schema_string(*columns)))


def _found(lint: TypeLint) -> dict[str, Certainty]:
    return {result.column: result.certainty for result in lint.issues()}


def _lint(path: Path, *one_side: str) -> TypeLint:
    """The lint of a real table, footers read."""
    log = TableLog(str(path))
    snapshot = log.snapshot()
    footers = FooterReader(str(path), log.files).read(snapshot.files)
    return TypeLint(
        str(path),
        ColumnNames.of(snapshot.metadata),
        snapshot.metadata.partition_columns,
        {column.path: column for column in parquet_columns(footers)},
        one_side,
        sum(file.rows or 0 for file in snapshot.files),
    )


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
    assert _found(TypeLint("/lake/t", names, ["month"])) == {
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
    assert _found(_lint(tmp_path)) == {"long": Certainty.UNSEEN}


def test_dictionaries_show_duplicates_and_that_there_are_none(tmp_path: Path) -> None:
    rows = pa.table({"id": range(500), "code": [i % 7 for i in range(500)], "day": [i // 2 for i in range(500)]})
    write_deltalake(tmp_path, rows)
    by_spark(tmp_path)
    lint = _lint(tmp_path, "id", "code")
    assert _found(lint) == {"code": Certainty.FAILS}
    (result,) = lint.issues()
    assert "at most 7 different values in 500 rows" in result.message
    # In two files, the same ids may come twice.
    write_deltalake(tmp_path, rows, mode="append")
    by_spark(tmp_path)
    assert _found(_lint(tmp_path, "id"))["id"] == Certainty.UNSEEN
    assert _found(_lint(tmp_path, "day"))["day"] == Certainty.FAILS


def test_rows_that_are_older_than_a_column_are_no_duplicates_in_it(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(100)}))
    by_spark(tmp_path)
    rows = pa.table({"id": range(5), "code": range(5)})
    write_deltalake(tmp_path, rows, mode="append", schema_mode="merge")
    by_spark(tmp_path)
    assert _found(_lint(tmp_path, "code"))["code"] == Certainty.UNSEEN
    write_deltalake(tmp_path, rows, mode="append")
    by_spark(tmp_path)
    assert _found(_lint(tmp_path, "code"))["code"] == Certainty.UNSEEN


def test_hidden_rows_are_no_duplicates(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"code": [1, 1, 2]}))
    by_spark(tmp_path)
    assert _found(_lint(tmp_path, "code")) == {"code": Certainty.FAILS}
    assert _found(replace(_lint(tmp_path, "code"), hidden=1)) == {"code": Certainty.UNSEEN}


def test_a_statement_tells_what_footers_do_not(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"sha`re": [0.5], "key": [1]}))
    names = ColumnNames.of(TableLog(str(tmp_path)).snapshot().metadata)
    lint = TypeLint("/la`ke/t", names, one_side=["key"])
    assert [result.statement for result in lint.issues()] == [
        "SELECT count(*) FROM delta.`/la``ke/t` WHERE isnan(`sha``re`) OR abs(`sha``re`) = double('infinity')",
        "SELECT `key`, count(*) FROM delta.`/la``ke/t` GROUP BY `key` HAVING count(*) > 1",
    ]


def test_an_unknown_one_side_is_said(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    assert DeltaTable(tmp_path).version() == 0
    with raises(SettingError, ErrorCode.COLUMN_UNKNOWN):
        _lint(tmp_path, "key").issues()
