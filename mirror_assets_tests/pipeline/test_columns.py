"""Columns all the way to the mirror: chosen, dropped, or alike in name; and what a source without a feed is told."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.setting_values import Changes
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.pipeline.errors import SOURCE_BROKE, not_recorded
from mirror_assets.source.actions import Protocol
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.spark_4 import IS_SPARK_4


@pytest.fixture
def wide(spark: SparkSession, tmp_path: Path) -> Lab:
    """A column-mapped table of ten orders with a note and a column that can't land; nothing mirrored yet."""
    lab, nothing = Lab(spark, tmp_path), ", nothing VOID" if IS_SPARK_4 else ""  # Delta 3 can't update a table with one
    lab.sql(
        f"CREATE TABLE {{t}} (note STRING, id INT, name STRING, amount DOUBLE{nothing}) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'name')",
        "INSERT INTO {t} (id, name, amount) SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10)",
    )
    return lab


def _configure(lab: Lab, columns: str, *settings: str) -> None:
    lab.configure("\n    ".join((f"columns: {columns}", *settings)), defaults="slices: {max_commits: 20}")


def _landed(lab: Lab) -> list[str]:
    return list(pq.read_schema(lab.folder / lab.files[-1]).names)


def _mirror(lab: Lab) -> dict[object, dict[str, object]]:
    table = DeltaTable(str(lab.root / "mirror" / "shop" / TABLE.table)).to_pyarrow_table()
    return {row["id"]: row for row in table.to_pylist()}


def test_a_choice_of_columns_and_what_becomes_of_it(wide: Lab) -> None:
    lab = wide
    _configure(lab, "[amount, name, color]")
    with raises_row(MISTAKES, match=r"columns\.2: the source has no column 'color'"):
        lab.mirror()
    _configure(lab, "[amount, name]")
    lab.mirror()
    assert _landed(lab) == ["id", "name", "amount"]

    # What happens to other columns is no break; the same key changes twice, so that the order of rows is compared, too.
    lab.sql(
        "UPDATE {t} SET amount = 100 WHERE id = 1",
        "ALTER TABLE {t} ADD COLUMNS (color STRING)",
        "UPDATE {t} SET color = 'red', amount = 200 WHERE id = 1",
        "ALTER TABLE {t} RENAME COLUMN note TO remark",
        "ALTER TABLE {t} DROP COLUMN color",
        "DELETE FROM {t} WHERE id = 9",
    )
    slices = lab.mirror()
    assert len(slices) == 3, "cut before the renamed and before the dropped column"
    assert _landed(lab) == ["id", "name", "amount", "__rowMarker__"]
    assert lab.is_equal

    # The source drops a chosen column: the mirror keeps it, NULL in rows that change from then on.
    lab.sql("ALTER TABLE {t} DROP COLUMN name", "UPDATE {t} SET amount = 300 WHERE id = 2")
    lab.mirror()
    assert _landed(lab) == ["id", "amount", "__rowMarker__"]
    assert lab.manifest().dropped == ("name",)
    result = lab.compare()
    assert (result.state, result.ignored_columns) == (ReconcileState.EQUAL, ("name",))
    rows = _mirror(lab)
    assert (rows[2]["name"], rows[3]["name"]) == (None, "n3")

    # It comes back: untouched rows of the mirror have its old values, so only a rebuild is right.
    _configure(lab, "[amount, name]", "on_break: hold")
    lab.sql("ALTER TABLE {t} ADD COLUMNS (name STRING)")
    with raises_row(SOURCE_BROKE, match="`name` was added again"):
        lab.mirror()
    _configure(lab, "[amount, name]")
    lab.mirror()
    assert (lab.manifest().epoch, lab.manifest().dropped) == (2, ())
    assert lab.is_equal

    # The choice changes: a column that is taken out is kept, one that is put in needs a rebuild.
    _configure(lab, "[name]")
    lab.sql("INSERT INTO {t} (id, name, amount) VALUES (20, 'n20', 20)")
    lab.mirror()
    assert lab.manifest().dropped == ("amount",)
    assert lab.is_equal
    assert _mirror(lab)[20]["amount"] is None
    _configure(lab, "[name, remark, amount]", "on_break: hold")
    with raises_row(SOURCE_BROKE, match=r"`amount`, `remark`.*set these settings back"):
        lab.mirror()


def _add_column(lab: Lab, name: str) -> None:
    """Add a column as other writers do: Spark refuses names that differ in case only."""
    log = Path(lab.uri, "_delta_log")
    actions = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    metadata = next(action["metaData"] for action in actions if "metaData" in action)
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": name, "type": "string", "nullable": True, "metadata": {}})
    metadata["schemaString"] = json.dumps(schema)
    info = {"commitInfo": {"timestamp": 1, "operation": "ADD COLUMNS"}}
    lines = (json.dumps(action) for action in (info, {"metaData": metadata}))
    (log / f"{2:020d}.json").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("has_landed", [True, False])
def test_two_columns_of_the_source_are_refused(lab: Lab, capsys: pytest.CaptureFixture[str], has_landed: bool) -> None:
    if has_landed:
        lab.mirror()
    _add_column(lab, "NAME")
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, "'NAME' and another column or field whose name differs from it"):
        lab.mirror()
    for command in ("preview", "feed"):
        capsys.readouterr()
        assert main([command, "shop.orders", "--config", str(lab.config_file)]) == 2
        assert "'NAME'" in capsys.readouterr().err


def test_a_new_column_of_the_source_is_not_mixed_up_with_a_computed_one(lab: Lab) -> None:
    lab.configure('columns: {label: {sql: "upper(name)", type: string}}')
    lab.mirror()
    lab.sql("ALTER TABLE {t} ADD COLUMNS (Label STRING)", "UPDATE {t} SET Label = 'x', name = 'y' WHERE id = 1")
    with raises_row(MISTAKES, match="'label' differs from the source's column 'Label' in case only"):
        lab.mirror()


def test_a_key_has_the_spelling_of_the_column(lab: Lab) -> None:
    lab.configure(keys="[ID]")
    with raises_row(MISTAKES, match=r"mirror.yaml:\d+.*the source has no column .ID.; did you mean .id.\?"):
        lab.mirror()


@pytest.mark.parametrize(
    ("protocol", "consequence"),
    [
        (Protocol(1, 2), "protocol from writer version 2 to 7, with the table feature changeDataFeed: writers that"),
        (Protocol(3, 7, frozenset({"deletionVectors"})), "protocol, with the table feature changeDataFeed: writers"),
        (Protocol(1, 4), "writer version 4 doesn't change"),
        (Protocol(1, 7, frozenset({"changeDataFeed"})), "writer version 7 doesn't change"),
    ],
)
def test_the_error_of_a_disabled_feed_names_the_statement_and_its_consequences(
    protocol: Protocol, consequence: str
) -> None:
    told = not_recorded("shop.orders", "/lake/orders", protocol, Changes.FEED).next_step
    assert "ALTER TABLE delta.`/lake/orders` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)" in told
    assert consequence in told
    assert "The feed begins with that commit" in told
    assert "spark.databricks.delta.properties.defaults.enableChangeDataFeed = true" in told


def test_the_error_of_disabled_row_tracking_names_the_statement_and_its_cost() -> None:
    told = not_recorded("shop.orders", "/lake/orders", Protocol(3, 7), Changes.ROW_TRACKING).next_step
    assert "ALTER TABLE delta.`/lake/orders` SET TBLPROPERTIES (delta.enableRowTracking = true)" in told
    assert "in several commits, which can take long" in told
    assert "upgrades the table's protocol, which disabling row tracking doesn't undo" in told
