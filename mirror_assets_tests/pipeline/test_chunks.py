"""First loads and rebuilds in chunks: killed on the way, gone on with, or begun again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome, Published
from mirror_assets.landing.recover import list_attempts
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline import land_slice as land
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.land_slice import publish_next, publish_slice, stage_range
from mirror_assets.pipeline.plan import plan_snapshot
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.verify.landed import file_continuity
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.landed_slices import landed_slices

_CHUNKS = "slices: {max_rows: 5}"


@pytest.fixture(scope="module")
def _large_orders(spark: SparkSession, _new_orders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = Lab(spark, tmp_path_factory.mktemp("large") / "lab")
    shutil.copytree(_new_orders, lab.root)
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableDeletionVectors = true)",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'more', 1 FROM range(10, 16)",
        "DELETE FROM {t} WHERE id = 12",
    )
    lab.configure(defaults=_CHUNKS)
    return lab.root


@pytest.fixture
def large(spark: SparkSession, _large_orders: Path, tmp_path: Path) -> Lab:
    """The table at version 4, with three files or more, of which a chunk takes one; some rows are hidden."""
    shutil.copytree(_large_orders, tmp_path / "lab")
    return Lab(spark, tmp_path / "lab")


def _land_first(lab: Lab) -> None:
    """A run that is killed when the first chunk has landed."""
    next(landed_slices(lab.context, lab.replicator))
    assert lab.manifest().loading is not None


def test_a_killed_load_goes_on_at_its_version_while_the_source_moves(large: Lab) -> None:
    _land_first(large)
    assert (large.manifest().covered, large.manifest().kind.value) == (-1, "snapshot")
    result = large.compare()
    assert (result.state, result.reason) == (ReconcileState.LOADING, str(large.manifest().loading))
    large.sql("UPDATE {t} SET name = 'later' WHERE id IN (1, 11)")
    large.configure(defaults="slices: {max_rows: 100}")
    loaded, changed = large.mirror()
    assert [loaded.record.slice, changed.record.slice] == [key(0, 4), key(5, 5)]
    assert loaded.record.chunk is not None
    assert (loaded.record.chunk.number, loaded.record.chunk.of) == (2, 2)
    assert large.manifest().covered == 5
    assert file_continuity(large.store, TABLE, None).problems == ()
    assert large.is_equal


def test_a_partition_is_done_with_its_last_chunk(large: Lab) -> None:
    """As Dagster's assets do it: all chunks but the last have landed when the slice is staged."""
    slice_ = key(0, 4)
    (staged,) = stage_range(large.context, [slice_])
    assert staged is not None
    assert staged.chunk is not None
    assert staged.chunk.is_last
    assert (large.manifest().covered, large.manifest().generation) == (-1, staged.generation - 1)
    (again,) = stage_range(large.context, [slice_])
    assert again is not None
    assert (again.chunk, again.generation) == (staged.chunk, staged.generation)
    run_checks(large.context, again)
    published = publish_slice(large.context, slice_)
    assert (published.outcome, published.manifest.covered) == (Outcome.LANDED, 4)
    assert publish_slice(large.context, slice_).outcome is Outcome.COVERED
    assert list(stage_range(large.context, [slice_])) == [None]
    assert large.is_equal


def test_a_key_in_two_chunks_publishes_nothing(large: Lab) -> None:
    large.sql("INSERT INTO {t} VALUES (1, 'again', 1)")
    with pytest.raises(ChecksFailed, match=r"key_uniqueness: key «id=1» has 2 rows"):
        large.mirror()
    assert large.files == []


def test_a_load_whose_files_are_gone_begins_again(large: Lab) -> None:
    _land_first(large)
    old = {file.path for file in large.context.log.data_files(4)}
    large.sql("UPDATE {t} SET name = 'new'")
    for path in old - {file.path for file in large.context.log.data_files(5)}:
        (Path(large.uri) / path).unlink()  # as VACUUM does
    told: list[str] = []
    large.mirror(told.append)
    assert any("rebuild, because" in line and "chunks of version 4 have landed" in line for line in told)
    assert (large.manifest().epoch, large.manifest().covered) == (2, 5)
    assert large.is_equal


def test_a_killed_rebuild_goes_on_with_what_is_staged(large: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A staged chunk is lost meanwhile: it is staged again, at the same version."""
    large.configure()
    large.mirror()
    large.configure(defaults=_CHUNKS)
    chunks = len(plan_snapshot(large.context, large.context.log.state(), epoch=2).slices)

    def land_one(context: TableContext, slice_: SliceKey, epoch: int | None = None) -> Published:
        if (manifest := context.manifest()) and manifest.loading:
            raise KeyboardInterrupt
        return publish_next(context, slice_, epoch)

    monkeypatch.setattr(land, "publish_next", land_one)
    with pytest.raises(KeyboardInterrupt):
        rebuild_table(large.context, large.replicator, lambda _: None)
    monkeypatch.undo()
    staged = drive(list_attempts(TABLE), large.store)
    assert sorted(folder.generation for folder in staged) == list(range(1, chunks + 1))
    large.store.delete_tree(next(folder.path for folder in staged if folder.generation == chunks))
    large.sql("DELETE FROM {t} WHERE id = 2")
    assert rebuild_table(large.context, large.replicator, lambda _: None).outcome is Outcome.LANDED
    assert (large.manifest().epoch, large.manifest().generation, large.manifest().covered) == (2, chunks, 4)
    large.mirror()
    assert large.is_equal
