"""A mirror that begins without rows begins with a file of no rows: Fabric fails tables that stay without any file.

After two weeks such a table failed and paused the whole mirrored database (reference `users` §6).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.format import SliceKind
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.markers import ROW_ID, ROW_MARKER
from mirror_assets.verify.landed import file_continuity
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.types.cases import CASES

_COLUMNS = ["id", "name", "amount"]
_CHANGES = ("INSERT INTO {t} VALUES (77, 'new', 7)", "UPDATE {t} SET amount = 100 WHERE id IN (1, 77)")


@dataclass(frozen=True)
class Kind:
    """How a table's changes are found, and what lands of them after the first file."""

    table: str
    keys: str = "[id]"
    properties: str = "delta.enableChangeDataFeed = true"
    changes: tuple[str, ...] = _CHANGES
    columns: tuple[str, ...] = tuple(_COLUMNS)
    marked: bool = True
    rows: int = 2


KINDS = {
    "feed": Kind("start: latest"),
    "appends": Kind(
        "start: latest\n    changes: append_only",
        keys="[]",
        properties="delta.appendOnly = true",
        changes=_CHANGES[:1],
        marked=False,
        rows=1,
    ),
    "feed from a time": Kind('start: {timestamp: "2000-01-01 00:00:00"}', rows=11),
    "net changes": Kind("start: latest\n    compact: true"),
    "row tracking without keys": Kind(
        "start: latest\n    changes: row_tracking",
        keys="[]",
        properties="delta.enableRowTracking = true",
        columns=(ROW_ID, *_COLUMNS),
    ),
}


def _lab(spark: SparkSession, root: Path, kind: Kind) -> Lab:
    """Ten orders at version 1; nothing has landed."""
    lab = Lab(spark, root)
    lab.configure(kind.table, "slices: {max_commits: 1}", kind.keys)
    lab.sql(
        "CREATE TABLE {t} (id INT NOT NULL, name STRING, amount DOUBLE) USING delta "
        f"TBLPROPERTIES ({kind.properties})",
        "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10)",
    )
    return lab


def _physical(path: Path) -> list[tuple[str, str, str, int]]:
    """Name, physical and logical type, and whether NULL is possible, of each column but the marker."""
    schema = pq.ParquetFile(path).schema
    columns = [schema.column(index) for index in range(len(schema))]
    return [
        (c.name, c.physical_type, str(c.logical_type), c.max_definition_level) for c in columns if c.name != ROW_MARKER
    ]


@pytest.mark.parametrize("kind", smoke_first(list(KINDS.values()), 2), ids=KINDS)
def test_a_table_that_begins_without_rows_has_a_file_all_the_same(
    spark: SparkSession, tmp_path: Path, kind: Kind
) -> None:
    lab = _lab(spark, tmp_path, kind)
    lab.mirror()
    assert lab.files[0] == "00000000000000000001.parquet"
    first = pq.ParquetFile(lab.folder / lab.files[0])
    assert (first.metadata.num_rows, tuple(first.schema_arrow.names)) == (0, kind.columns)
    receipt, manifest = read_receipt(lab.store, f"{TABLE.folder}/{lab.files[0]}"), lab.context.manifest()
    assert receipt is not None
    assert manifest is not None
    assert (receipt.first_number, receipt.generation, receipt.incarnation) == (1, 1, manifest.incarnation)
    assert lab.is_equal
    lab.sql(*kind.changes)
    lab.mirror()
    newest = lab.folder / lab.files[-1]
    assert (ROW_MARKER in pq.read_schema(newest).names) == kind.marked
    assert _physical(newest) == _physical(lab.folder / lab.files[0])
    result = lab.compare()
    assert (result.state, result.mirror_rows, result.source_rows) == (ReconcileState.EQUAL, kind.rows, kind.rows)
    assert file_continuity(lab.store, TABLE, None).passed


def test_a_first_slice_whose_commits_hold_no_rows_lands_the_same_file(lab: Lab) -> None:
    """Version 0 made the table; no slice covers what came before it, for there is nothing."""
    lab.configure("start: {version: 0}", "slices: {max_commits: 1}")
    kinds = [landed.record.kind for landed in lab.mirror()]
    assert kinds == [SliceKind.START, SliceKind.CHANGES]
    assert [pq.read_metadata(lab.folder / name).num_rows for name in lab.files] == [0, 10]
    assert lab.is_equal


def test_its_types_are_those_of_the_rows_to_come(spark: SparkSession, tmp_path: Path) -> None:
    """Every type that lands, nested ones too: Fabric takes no other type for a column later."""
    lab = Lab(spark, tmp_path)
    lab.configure("start: latest")
    columns = ", ".join(f"`{case.name.replace('`', '``')}` {case.type}" for case in CASES)
    properties = "delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'name'"
    spark.sql(f"CREATE TABLE delta.`{lab.uri}` (id INT, {columns}) USING delta TBLPROPERTIES ({properties})")
    lab.mirror()
    spark.sql(
        f"INSERT INTO delta.`{lab.uri}` VALUES (1, {', '.join(case.low for case in CASES)}), "
        f"(2, {', '.join(case.high for case in CASES)})"
    )
    lab.mirror()
    empty, full = (lab.folder / name for name in lab.files)
    assert _physical(empty) == _physical(full)
    assert lab.compare().mirror_rows == 2
