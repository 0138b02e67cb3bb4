"""A model's calculated columns become columns of the mirror, by a line that the report prints."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal

import pytest
from deltalake import DeltaTable

from mirror_assets.cli.main import main
from mirror_assets.features.direct_lake.calculated import CalculatedColumn
from mirror_assets.source.schema import Field, Schema
from mirror_assets_tests.lab import TABLE, Lab

_FIELDS = {
    "First Name": "string",
    "Last": "string",
    "Quantity": "int",
    "Price": "decimal(10,2)",
    "Rate": "double",
    "Day": "date",
}
_SCHEMA = Schema(tuple(Field(name, kind) for name, kind in _FIELDS.items()))


@pytest.mark.parametrize(
    ("dax", "sql", "kind"),
    [
        ("[First Name] & \" \" & 'People'[Last]", "concat_ws('', `First Name`, ' ', `Last`)", "string"),
        ('[last]&" ""it\'s"" \\"', "concat_ws('', `Last`, ' \"it\\'s\" \\\\')", "string"),
        ("Sales[Quantity] * [Price]", "`Quantity` * `Price`", "decimal(21,2)"),
        ("[Price] * 1.19 * [Quantity]", "`Price` * 1.19 * `Quantity`", "decimal(25,4)"),
        ("[Quantity] * [Rate]", "`Quantity` * `Rate`", "double"),
    ],
)
def test_joined_texts_and_products_are_translated(dax: str, sql: str, kind: str) -> None:
    advice = CalculatedColumn.parse(f"New = {dax}").advice(_SCHEMA)
    assert advice.do.endswith(f"New: {{sql: {json.dumps(sql, ensure_ascii=False)}, type: {_yaml(kind)}}}")


def _yaml(kind: str) -> str:
    return kind if kind.isalpha() else f'"{kind}"'


@pytest.mark.parametrize(
    ("dax", "why"),
    [
        ("IF([Quantity] > 1, 1, 0)", "only texts joined by & and products"),
        ("[Quantity] & [Price] * 2", "only texts joined by & and products"),
        ("[Quantity] + [Price]", "only texts joined by & and products"),
        ("RELATED(Product[Name])", "only texts joined by & and products"),
        ("[Missing] & [Last]", "the table has no column Missing"),
        ("[Day] * 2", "a product can't have a date"),
    ],
)
def test_other_dax_is_left_to_people(dax: str, why: str) -> None:
    advice = CalculatedColumn.parse(f"New={dax}").advice(_SCHEMA)
    assert f"write `{dax}` as an expression" in advice.do
    assert why in advice.do


def test_text_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="expected NAME=DAX"):
        CalculatedColumn.parse('[First] & "x"')


@pytest.mark.long(20)
def test_full_name_and_quantity_times_price_from_advice_to_mirror(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """The two calculated columns of the source document on Direct Lake's storage."""
    shutil.rmtree(lab.uri)
    lab.sql(
        "CREATE TABLE {t} (id INT, FirstName STRING, LastName STRING, Quantity INT, Price DECIMAL(10,2)) "
        "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        "INSERT INTO {t} VALUES (1, 'Ada', 'Lovelace', 3, 1.50), (2, NULL, 'Plato', 2, NULL)",
    )
    dax = ('FullName=[FirstName] & " " & [LastName]', "Total=[Quantity] * [Price]")
    options = [part for one in dax for part in ("--calculated", one)]
    assert main(["direct-lake", "report", lab.uri, "--no-cache", "--json", *options]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    found = [one["do"] for one in report["advice"] if one["topic"] == "calculated columns"]
    lines = [text.rpartition("in mirror.yaml: ")[2] for text in found]
    assert len(lines) == 2
    lab.configure("columns:\n      " + "\n      ".join(lines))
    lab.mirror()
    lab.sql("UPDATE {t} SET Price = 4.25 WHERE id = 2")
    lab.mirror()
    assert lab.is_equal
    status = lab.replicator.table(TABLE)
    assert status is not None
    rows = {row["id"]: row for row in DeltaTable(status.location).to_pyarrow_table().to_pylist()}
    assert [(rows[id_]["FullName"], rows[id_]["Total"]) for id_ in (1, 2)] == [
        ("Ada Lovelace", Decimal("4.50")),
        (" Plato", Decimal("8.50")),
    ]
