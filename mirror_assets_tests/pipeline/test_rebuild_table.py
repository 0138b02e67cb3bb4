"""Rebuilds and drops that something comes between: each goes on, by itself or by running it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config.load import parse_config
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError
from mirror_assets.landing.errors import METADATA_DIFFERS, REBUILD_RUNNING, ManifestCorrupt
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import Outcome, publish
from mirror_assets.landing.rebuild import (
    RebuildRecord,
    RebuildStep,
    advance_rebuild,
    first_epoch,
    is_dropped,
    read_rebuild,
)
from mirror_assets.landing.steps import drive
from mirror_assets.monitoring import Mirror, Pace
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.land_slice import publish_slice
from mirror_assets.pipeline.rebuild_table import drop_table, rebuild_table, require_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import REQUEST_UNKNOWN, STORE_DENIED, STORE_UNAVAILABLE
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.landing.epochs import dropping, loading
from mirror_assets_tests.landing.staging import CHECKS, position_of, stage
from mirror_assets_tests.scripted_mirror import Scripted


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


SHORT = Pace(pause_seconds=0.01, limit_seconds=0.05)


class Busy(LocalStore):
    """A landing zone where the first deletions of the table folder fail, or do so after their effect."""

    def __init__(self, root: Path, errors: tuple[MirrorError, ...] = (), *, done: bool = False) -> None:
        super().__init__(root)
        self.errors, self.done = list(errors), done

    def delete_tree(self, folder: str, identity: str | None = None) -> None:
        failing = folder == TABLE.folder and self.errors
        if not failing or self.done:
            super().delete_tree(folder, identity)
        if failing:
            raise self.errors.pop(0)


def landed(store: LocalStore) -> LocalStore:
    """The zone with two landing files, and another slice staged."""
    for last in range(2):
        drive(publish(TABLE, stage(store, position_of(store), last), CHECKS), store)
    stage(store, position_of(store), last=2)
    return store


@pytest.fixture
def zone(tmp_path: Path) -> LocalStore:
    return landed(LocalStore(tmp_path / "zone"))


def drop(store: LocalStore, mirror: Mirror | None = None) -> list[str]:
    """Drop the table; return the lines that were reported."""
    lines: list[str] = []
    drop_table(store, TABLE, mirror or Scripted(), lines.append)
    return lines


def test_the_stand_in_drops_the_table_while_it_is_waited_for(zone: LocalStore, tmp_path: Path) -> None:
    mirror = LocalReplicator(zone, tmp_path / "mirror")
    assert mirror.poll_table(TABLE) is not None
    assert drop(zone, mirror) == ["shop.orders: dropping the table for good"]
    assert mirror.table(TABLE) is None
    assert not (tmp_path / "mirror" / "shop" / "orders").exists()
    assert drive(is_dropped(TABLE), zone)
    assert drive(first_epoch(TABLE), zone) > 1


@pytest.mark.parametrize("done", [False, True])
def test_a_folder_in_use_is_deleted_by_another_request(tmp_path: Path, done: bool) -> None:
    errors = (STORE_UNAVAILABLE(path=TABLE.folder, why="in use"), REQUEST_UNKNOWN(path=TABLE.folder, why="no answer"))
    store = Busy(tmp_path / "zone", errors, done=done)
    landed(store)
    assert any("in use" in line for line in drop(store))
    assert drive(is_dropped(TABLE), store)
    assert not store.errors or done


def test_a_folder_that_stays_in_use_is_given_up_and_deleted_later(tmp_path: Path) -> None:
    store = Busy(tmp_path / "zone", (STORE_UNAVAILABLE(path=TABLE.folder, why="in use"),) * 1000)
    landed(store)
    with raises_row(STORE_UNAVAILABLE, match="in use"):
        drop(store, Scripted(pace=SHORT))
    record = drive(read_rebuild(TABLE), store)
    assert record is not None
    assert record.step is RebuildStep.REMOVING
    store.errors.clear()
    drop(store)
    assert drive(is_dropped(TABLE), store)


def test_a_missing_permission_is_reported_at_once(tmp_path: Path) -> None:
    store = Busy(tmp_path / "zone", (STORE_DENIED(path=TABLE.folder, why="403"),))
    landed(store)
    with raises_row(STORE_DENIED):
        drop(store)


def test_a_mirror_that_keeps_the_table_is_waited_for_and_the_next_drop_continues(
    zone: LocalStore, tmp_path: Path
) -> None:
    mirror = LocalReplicator(zone, tmp_path / "mirror")
    kept = mirror.poll_table(TABLE)
    with raises(RetryError, ErrorCode.TABLE_BUSY, match="dropped from the mirror"):
        drop(zone, Scripted([lambda: kept], pace=SHORT))
    assert zone.list(TABLE.folder) == []
    text = b"landing_zone: {path: ./zone}\ntables: {a: {source: ./lake, keys: [id]}}"
    require_table(parse_config(text, tmp_path / "mirror.yaml", {}), zone, TABLE)  # it is known by its record
    drop(zone)
    assert drive(is_dropped(TABLE), zone)


def test_a_mirror_that_does_not_respond_now_is_waited_for(zone: LocalStore) -> None:
    def asleep() -> None:
        raise STORE_UNAVAILABLE(path="mirror", why="asleep")

    drop(zone, Scripted([asleep, lambda: None]))
    assert drive(is_dropped(TABLE), zone)


def test_a_table_that_was_dropped_is_not_dropped_again(zone: LocalStore) -> None:
    drop(zone)
    record = drive(read_rebuild(TABLE), zone)
    assert drop(zone) == []
    assert drive(read_rebuild(TABLE), zone) == record


@pytest.mark.parametrize("name", ["shop.configured", "shop.orders", "shop.staged"])
def test_a_table_is_known_by_its_settings_its_folder_or_what_is_staged(
    zone: LocalStore, tmp_path: Path, name: str
) -> None:
    zone.create("_scratchPad/shop.staged/1-x/part", b"")
    text = "landing_zone: {path: ./zone}\ntables: {shop.configured: {source: ./lake, keys: [id]}}"
    config = parse_config(text.encode(), tmp_path / "mirror.yaml", {})
    require_table(config, zone, TableName.parse(name))
    with raises(
        SettingError,
        ErrorCode.CONFIG_INVALID,
        match=r"'shop.order'.*use a table of one of them; did you mean 'shop.orders'",
    ):
        require_table(config, zone, TableName.parse("shop.order"))
