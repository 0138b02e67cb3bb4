"""Some of a table's columns, and columns that are dropped, all the way to the mirror."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.config.errors import MISTAKES
from mirror_assets.pipeline.errors import SOURCE_BROKE
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import TABLE, Lab


@pytest.fixture
def wide(spark: SparkSession, tmp_path: Path) -> Lab:
    """A column-mapped table of ten orders with a note and a column that can't land; nothing mirrored yet."""
    lab = Lab(spark, tmp_path)
    lab.sql(
        "CREATE TABLE {t} (note STRING, id INT, name STRING, amount DOUBLE, nothing VOID) USING delta "
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
