"""Columns by their types: those that certainly fail, those that may, and those that neither log nor footers show."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from mirror_assets.features.direct_lake.column_sizes import ColumnNames
from mirror_assets.features.direct_lake.type_rules import MOST_CHARACTERS, Certainty, TypeIssue, type_issues
from mirror_assets.source.actions import Metadata
from mirror_assets_tests.features.direct_lake.tables import report
from mirror_assets_tests.source.handmade import Action, column, schema_string


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
