"""The copy of a catalog-managed table's log, for readers that know no catalog."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.lakes.access import CatalogCommits, Located, PlainAccess, StagedCommit
from mirror_assets.verify.log_copy import copy_log
from mirror_assets_tests.source.handmade import commit_file
from mirror_assets_tests.worlds.unity.managed import ManagedTable
from mirror_assets_tests.worlds.unity.server import LoopbackUnity


def place_of(table: ManagedTable) -> Located:
    staged = {one.version: StagedCommit(one.file_name, one.file_size, one.modified_ms) for one in table.table.ratified}
    assert table.table.latest is not None
    return Located(str(table.path), PlainAccess(str(table.path)), commits=CatalogCommits(table.table.latest, staged))


def rows_of(table: DeltaTable) -> list[tuple[int, str]]:
    """All rows of the live files: delta-rs replays the log, but reads no table with these features."""
    files = pa.table(table.get_add_actions())
    read = (pq.read_table(unquote(path).removeprefix("file://"), columns=["id"]) for path in files["path"].to_pylist())
    values = zip(read, files["partition"].to_pylist(), strict=True)
    return sorted((number, partition["p"]) for rows, partition in values for number in rows["id"].to_pylist())


ROWS = [(number, f"a b/%{number % 2}") for number in range(7)]


@pytest.fixture
def managed(unity: LoopbackUnity, tmp_path: Path) -> ManagedTable:
    """Seven commits of one row each in partitions, a checkpoint at version 3, and three published commits."""
    made = ManagedTable(unity, "main.sales.orders", tmp_path / "writer", tmp_path / "or ders")
    for number in range(7):
        rows = pa.table({"id": [number], "p": [f"a b/%{number % 2}"]})
        write_deltalake(str(made.writer), rows, mode="append", partition_by=["p"])
        if number == 3:
            DeltaTable(str(made.writer)).create_checkpoint()
    made.ratify()
    made.publish(2)
    made.copy_checkpoints()
    return made


@pytest.mark.parametrize(("version", "first"), [(2, 0), (3, 3), (6, 3)])
def test_each_version_has_its_rows(managed: ManagedTable, version: int, first: int) -> None:
    copied = copy_log(place_of(managed), version)
    assert copied.first == first
    found = DeltaTable(str(copied.folder), version=version - first)
    assert rows_of(found) == ROWS[: version + 1]
    assert DeltaTable(str(copied.folder)).version() == 6 - first
    assert "catalogManaged" not in (found.protocol().reader_features or [])


def test_the_catalogs_file_counts_and_later_files_do_not(managed: ManagedTable) -> None:
    managed.publish(6, forget=False)
    for version in (4, 6, 7):
        commit_file(managed.path, version).write_bytes(commit_file(managed.path, 1).read_bytes())
    copied = copy_log(place_of(managed), 6)
    assert rows_of(DeltaTable(str(copied.folder))) == ROWS


def test_a_commit_that_was_published_since_is_read_there(managed: ManagedTable) -> None:
    place = place_of(managed)
    managed.publish(6, clean=True)
    copied = copy_log(place, 6)
    assert rows_of(DeltaTable(str(copied.folder))) == ROWS
    folder = copied.folder
    del copied
    assert not folder.exists()


def test_a_version_that_the_log_does_not_have_any_more(managed: ManagedTable) -> None:
    commit_file(managed.path, 1).unlink()
    with pytest.raises(FileNotFoundError):
        copy_log(place_of(managed), 2)
