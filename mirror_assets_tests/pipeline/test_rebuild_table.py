"""Rebuilds that something comes between: each goes on, by itself or by running it again."""

from __future__ import annotations

import pytest

from mirror_assets.landing.errors import METADATA_DIFFERS, REBUILD_RUNNING, ManifestCorrupt
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.publish import Outcome
from mirror_assets.landing.rebuild import RebuildRecord, RebuildStep, advance_rebuild, read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.land_slice import publish_slice
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.landing.epochs import dropping, loading


def _rebuild(lab: Lab, reason: str | None = None) -> Outcome:
    return rebuild_table(lab.context, lab.replicator, lambda _: None, reason).outcome


def _record(lab: Lab) -> RebuildRecord:
    found = drive(read_rebuild(TABLE), lab.store)
    assert found is not None
    return found


def _require_new_epoch(lab: Lab, epoch: int) -> None:
    assert lab.manifest().epoch == epoch
    assert not _record(lab).is_running
    assert reconcile_table(lab.context, lab.replicator).state is ReconcileState.EQUAL


def test_publishers_wait_and_the_next_run_ends_it(mirrored: Lab) -> None:
    drive(loading(TABLE), mirrored.store)  # a rebuild that was killed when its table folder was deleted
    with raises_row(REBUILD_RUNNING):
        publish_slice(mirrored.context, key(6, 6))
    assert mirrored.mirror() == []
    _require_new_epoch(mirrored, epoch=2)


def test_why_a_rebuild_was_begun_is_recorded_until_the_next(mirrored: Lab) -> None:
    for reason in ("version 3 is gone.", None):
        assert _rebuild(mirrored, reason) is Outcome.LANDED
        assert (_record(mirrored).step, _record(mirrored).reason) == (RebuildStep.FINISHED, reason)


def test_a_corrupt_manifest_is_rebuilt(mirrored: Lab) -> None:
    (mirrored.folder / "_mirror.json").write_text("{")
    with pytest.raises(ManifestCorrupt, match=r"_mirror\.json.*rebuild"):
        mirrored.mirror()
    assert len(mirrored.files) == 3
    assert _rebuild(mirrored) is Outcome.LANDED
    _require_new_epoch(mirrored, epoch=2)


def test_files_that_a_killed_rebuild_had_committed_get_their_numbers(mirrored: Lab) -> None:
    assert _rebuild(mirrored) is Outcome.LANDED
    drive(advance_rebuild(TABLE, _record(mirrored), RebuildStep.LOADING), mirrored.store)
    (entry,) = mirrored.manifest().entries
    staged = mirrored.root / "landing" / entry.staged
    staged.parent.mkdir(parents=True, exist_ok=True)
    (mirrored.folder / mirrored.files[0]).rename(staged)
    assert _rebuild(mirrored) is Outcome.COVERED
    assert len(mirrored.files) == 1
    _require_new_epoch(mirrored, epoch=2)


def test_keys_declared_by_a_killed_rebuild_are_dropped_with_its_folder(mirrored: Lab) -> None:
    """Its keys were changed in mirror.yaml before it was run again; declared keys can't be changed in place."""
    drive(loading(TABLE), mirrored.store)  # a rebuild that was killed when its table folder was deleted
    mirrored.store.create(TABLE.metadata, metadata_bytes(["other"]))
    with raises_row(METADATA_DIFFERS, match="rebuild"):
        _rebuild(mirrored)
    assert _rebuild(mirrored) is Outcome.LANDED
    _require_new_epoch(mirrored, epoch=3)


def test_nothing_is_dropped_for_a_snapshot_that_cannot_land(mirrored: Lab) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (1, 'twice', 1)")
    with pytest.raises(ChecksFailed, match=r"key_uniqueness.*id=1"):
        _rebuild(mirrored)
    assert len(mirrored.files) == 3
    assert not _record(mirrored).is_running
    mirrored.sql("DELETE FROM {t} WHERE name = 'twice'")
    assert _rebuild(mirrored) is Outcome.LANDED
    _require_new_epoch(mirrored, epoch=3)


def test_a_rebuild_that_drops_is_not_called_off(mirrored: Lab) -> None:
    """Another may be at it: without the record, publishers would begin before the mirror has dropped the table."""
    drive(dropping(TABLE), mirrored.store)
    mirrored.sql("INSERT INTO {t} VALUES (1, 'twice', 1)")
    with pytest.raises(ChecksFailed):
        _rebuild(mirrored)
    assert _record(mirrored).step is RebuildStep.DROPPING
    assert len(mirrored.files) == 3
    mirrored.sql("DELETE FROM {t} WHERE name = 'twice'")
    assert _rebuild(mirrored) is Outcome.LANDED
    _require_new_epoch(mirrored, epoch=2)
