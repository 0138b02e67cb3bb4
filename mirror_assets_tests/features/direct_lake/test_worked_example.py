"""The worked example of seed 003 ("Data versioning", "Delta time travel", "Framing") on a real table.

An inventory of products A, B, C with stocks 1, 2, 3; D with 4 is inserted; a stock becomes 10; B is deleted. The seed
contradicts itself. The readings taken here:

- *Insert*: its sentence names product C, its file list and its result name D. It is D.
- *Update*: its sentence names product D, its file lists and results say that C becomes 10. It is C.
- *Files*: the seed's third Parquet file has only the updated row, its fourth all rows that are left. Real Delta without
  deletion vectors rewrites the file of a changed row and no other: the third has A, B and C, the fourth A and C, and D
  stays in the second. The numbers of Parquet and "link" files (commits) are the seed's.
- *Time travel*: the seed's first version is Delta's version 0.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.features.direct_lake.framing import committed_by, framing_effect
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import parse_time
from mirror_assets_tests.source.handmade import commit_file

Stock = dict[str, int]

# Which commits' Parquet files each version reads; counted from 1, as the seed does.
_NEEDED = ({1}, {1, 2}, {2, 3}, {2, 4})
# The day of the seed's query by time, an hour apart: the query falls between the second and the third version.
_TIMES = tuple(datetime(2024, 4, 28, hour, 30, tzinfo=timezone.utc) for hour in (7, 8, 9, 10))
_QUERIED = parse_time("2024-04-28T09:15:00.000Z")


def _rows(stock: Stock) -> pa.Table:
    return pa.table({"ProductID": list(stock), "StockOnHand": pa.array(stock.values(), pa.int64())})


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table after the seed's four operations."""
    path = tmp_path_factory.mktemp("lake") / "Inventory"
    write_deltalake(path, _rows({"A": 1, "B": 2, "C": 3}))
    write_deltalake(path, _rows({"D": 4}), mode="append")
    DeltaTable(path).update(predicate="ProductID = 'C'", updates={"StockOnHand": "10"})
    DeltaTable(path).delete("ProductID = 'B'")
    for version, time in enumerate(_TIMES):
        os.utime(commit_file(path, version), (time.timestamp(), time.timestamp()))
    return path


def test_each_version_needs_its_files(inventory: Path) -> None:
    snapshots = list(DeltaLog(str(inventory)).snapshots(range(4)))
    numbers: dict[str, int] = {}
    for snapshot in snapshots:  # each commit writes one file
        for file in snapshot.files:
            numbers.setdefault(file.path, len(numbers) + 1)
    assert tuple({numbers[file.path] for file in snapshot.files} for snapshot in snapshots) == _NEEDED


def test_the_seeds_query_by_time_means_the_second_version(inventory: Path) -> None:
    log = DeltaLog(str(inventory))
    assert committed_by(log, _QUERIED.time_ms) == 1
    assert [committed_by(log, round(time.timestamp() * 1000)) for time in _TIMES] == [0, 1, 2, 3]


def test_a_refresh_keeps_files_that_still_exist(inventory: Path) -> None:
    snapshots = list(DeltaLog(str(inventory)).snapshots(range(4)))
    insert, update, delete = (framing_effect(before, after) for before, after in pairwise(snapshots))
    rows = [(e.kept.rows, e.changed.rows, e.reloaded.rows, e.dropped.rows) for e in (insert, update, delete)]
    assert rows == [(3, 0, 1, 0), (1, 0, 3, 3), (1, 0, 2, 3)]
    files = [(e.kept.files, e.reloaded.files, e.dropped.files) for e in (insert, update, delete)]
    assert files == [(1, 1, 0), (1, 1, 1), (1, 1, 1)]


def test_a_refresh_over_two_versions_keeps_product_d(inventory: Path) -> None:
    log = DeltaLog(str(inventory))
    effect = framing_effect(log.snapshot(1), log.snapshot(3))
    assert (effect.kept.rows, effect.reloaded.rows, effect.dropped.rows) == (1, 2, 3)
