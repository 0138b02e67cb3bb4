"""Rebuilds that something comes between: each goes on, by itself or by running it again."""

from __future__ import annotations

import pytest

from mirror_assets.landing.errors import ManifestCorrupt, MetadataDiffers, RebuildRunning
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.publish import Outcome
from mirror_assets.landing.rebuild import (
    RebuildStep,
    advance_rebuild,
    read_rebuild,
)
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.publish import publish_slice
from mirror_assets.pipeline.rebuild import rebuild_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.landing.epochs import dropping, loading


def _rebuild(lab: Lab) -> Outcome:
    return rebuild_table(lab.context, lab.wait, lambda _: None).outcome


def _dropped(lab: Lab) -> None:
    """A rebuild that was killed when its table folder was gone."""
    drive(loading(TABLE), lab.store)


def _require_new_epoch(lab: Lab, epoch: int) -> None:
    manifest, record = lab.context.manifest(), drive(read_rebuild(TABLE), lab.store)
    assert manifest is not None
    assert manifest.epoch == epoch
    assert record is not None
    assert not record.is_running
    assert reconcile_table(lab.context, lab.replicator).state is ReconcileState.EQUAL


def test_publishers_wait_and_the_next_run_ends_it(mirrored: Lab) -> None:
    _dropped(mirrored)
    with pytest.raises(RebuildRunning):
        publish_slice(mirrored.context, key(6, 6))
    assert mirrored.mirror() == []
    _require_new_epoch(mirrored, epoch=2)


def test_why_a_rebuild_was_begun_is_recorded_until_the_next(mirrored: Lab) -> None:
    assert (
        rebuild_table(mirrored.context, mirrored.wait, lambda _: None, "version 3 is gone.").outcome is Outcome.LANDED
    )
    record = drive(read_rebuild(TABLE), mirrored.store)
    assert record is not None
    assert (record.step, record.reason) == (RebuildStep.FINISHED, "version 3 is gone.")
    assert _rebuild(mirrored) is Outcome.LANDED
    record = drive(read_rebuild(TABLE), mirrored.store)
    assert record is not None
    assert record.reason is None


def test_a_corrupt_manifest_is_rebuilt(mirrored: Lab) -> None:
    (mirrored.folder / "_mirror.json").write_text("{")
    with pytest.raises(ManifestCorrupt, match="rebuild"):
        mirrored.mirror()
    assert _rebuild(mirrored) is Outcome.LANDED
    _require_new_epoch(mirrored, epoch=2)


def test_files_that_a_killed_rebuild_had_committed_get_their_numbers(mirrored: Lab) -> None:
    assert _rebuild(mirrored) is Outcome.LANDED
    record = drive(read_rebuild(TABLE), mirrored.store)
    manifest = mirrored.context.manifest()
    assert record is not None
    assert manifest is not None
    drive(advance_rebuild(TABLE, record, RebuildStep.LOADING), mirrored.store)
    (entry,) = manifest.entries
    staged = mirrored.root / "landing" / entry.staged
    staged.parent.mkdir(parents=True, exist_ok=True)
    (mirrored.folder / mirrored.files[0]).rename(staged)
    assert _rebuild(mirrored) is Outcome.COVERED
    assert len(mirrored.files) == 1
    _require_new_epoch(mirrored, epoch=2)


def test_keys_declared_by_a_killed_rebuild_are_dropped_with_its_folder(mirrored: Lab) -> None:
    """Its keys were changed in mirror.yaml before it was run again; declared keys can't be changed in place."""
    _dropped(mirrored)
    mirrored.store.create(TABLE.metadata, metadata_bytes(["other"]))
    with pytest.raises(MetadataDiffers, match="rebuild"):
        _rebuild(mirrored)
    assert _rebuild(mirrored) is Outcome.LANDED
    _require_new_epoch(mirrored, epoch=3)


def test_nothing_is_dropped_for_a_snapshot_that_cannot_land(mirrored: Lab) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (1, 'twice', 1)")
    with pytest.raises(ChecksFailed, match=r"key_uniqueness.*id=1"):
        _rebuild(mirrored)
    assert len(mirrored.files) == 3
    record = drive(read_rebuild(TABLE), mirrored.store)
    assert record is not None
    assert not record.is_running
    mirrored.sql("DELETE FROM {t} WHERE name = 'twice'")
    assert _rebuild(mirrored) is Outcome.LANDED
    _require_new_epoch(mirrored, epoch=3)


def test_a_rebuild_that_drops_is_not_called_off(mirrored: Lab) -> None:
    """Another may be at it: without the record, publishers would begin before the mirror has dropped the table."""
    drive(dropping(TABLE), mirrored.store)
    mirrored.sql("INSERT INTO {t} VALUES (1, 'twice', 1)")
    with pytest.raises(ChecksFailed):
        _rebuild(mirrored)
    record = drive(read_rebuild(TABLE), mirrored.store)
    assert record is not None
    assert record.step is RebuildStep.DROPPING
    assert len(mirrored.files) == 3
    mirrored.sql("DELETE FROM {t} WHERE name = 'twice'")
    assert _rebuild(mirrored) is Outcome.LANDED
    _require_new_epoch(mirrored, epoch=2)
