"""The two worked examples of Microsoft's landing zone format, `EmployeeLocation`, row by row.

The tables below are the page's own, but for the marker, which is the last column by now. They say what our files must
hold for these histories, and what a replicator makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets_tests.lab import Lab

_COLUMNS = ("EmployeeID", "EmployeeLocation", "__rowMarker__")

Rows = tuple[tuple[str | int | None, ...], ...]


@dataclass(frozen=True)
class Example:
    """A history in SQL, the landed rows that the page shows for it, and what the mirror is then."""

    history: tuple[str, ...]
    landed: Rows
    mirrored: Rows


EXAMPLES = {
    "a changed location": Example(
        history=(
            "INSERT INTO {t} VALUES ('E0001', 'Redmond'), ('E0002', 'Redmond'), ('E0003', 'Redmond')",
            "UPDATE {t} SET EmployeeLocation = 'Bellevue' WHERE EmployeeID = 'E0001'",
        ),
        landed=(("E0001", "Redmond", 0), ("E0002", "Redmond", 0), ("E0003", "Redmond", 0), ("E0001", "Bellevue", 1)),
        mirrored=(("E0001", "Bellevue"), ("E0002", "Redmond"), ("E0003", "Redmond")),
    ),
    "a changed key": Example(
        history=(
            "INSERT INTO {t} VALUES ('E0001', 'Bellevue')",
            "UPDATE {t} SET EmployeeID = 'E0002' WHERE EmployeeID = 'E0001'",
        ),
        landed=(("E0001", "Bellevue", 0), ("E0001", None, 2), ("E0002", "Bellevue", 0)),
        mirrored=(("E0002", "Bellevue"),),
    ),
}


def _rows(path: Path) -> Rows:
    table = pq.read_table(path)
    assert tuple(table.column_names) == _COLUMNS
    return tuple(tuple(row.values()) for row in table.to_pylist())


def _mirror(lab: Lab) -> Rows:
    lab.replicator.poll()
    found = DeltaTable(lab.root / "mirror/shop/orders").to_pyarrow_table(columns=list(_COLUMNS[:2]))
    return tuple(sorted(tuple(row.values()) for row in found.to_pylist()))


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_our_files_hold_the_pages_rows(spark: SparkSession, tmp_path: Path, example: Example) -> None:
    """The whole history in one slice of changes: one file, with the rows of the page in its order."""
    lab = Lab(spark, tmp_path)
    lab.configure("start: {version: 0}", "slices: {max_commits: 9}", "[EmployeeID]")
    lab.sql(
        "CREATE TABLE {t} (EmployeeID STRING, EmployeeLocation STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        *example.history,
    )
    lab.mirror()
    (file,) = lab.files
    assert _rows(lab.folder / file) == example.landed
    group = pq.read_metadata(lab.folder / file).row_group(0)
    assert {group.column(index).compression for index in range(group.num_columns)} == {"ZSTD"}
    assert _mirror(lab) == example.mirrored
    assert lab.is_equal
