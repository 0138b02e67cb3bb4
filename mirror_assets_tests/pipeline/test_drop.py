"""A drop from end to end: store, record and mirror; in use, killed half-way, and while somebody runs the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.config.load import parse_config
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError
from mirror_assets.landing.drop import is_dropped
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import RebuildStep, first_epoch, read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.drop import drop_table, require_table
from mirror_assets.pipeline.rebuild import MirrorWait, mirror_wait
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.storage import LocalStore
from mirror_assets.storage.errors import RequestUnknown, StoreDenied, StoreUnavailable
from mirror_assets_tests.errors import raises
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage


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


def at_once(limit: float = 5.0, dropped: Callable[[], bool] = lambda: True) -> MirrorWait:
    return MirrorWait(dropped, lambda: False, pause_seconds=0.01, limit_seconds=limit)


def test_the_stand_in_drops_the_table_while_it_is_waited_for(tmp_path: Path) -> None:
    store = landed(LocalStore(tmp_path / "zone"))
    mirror = LocalReplicator(store, tmp_path / "mirror")
    assert mirror.poll_table(TABLE) is not None
    told: list[str] = []
    drop_table(store, TABLE, mirror_wait(mirror, TABLE), told.append)
    assert mirror.table(TABLE) is None
    assert not (tmp_path / "mirror" / "shop" / "orders").exists()
    assert told == ["shop.orders: dropping the table for good"]
    assert drive(is_dropped(TABLE), store)
    assert drive(first_epoch(TABLE), store) > 1


@pytest.mark.parametrize("done", [False, True])
def test_a_folder_in_use_is_asked_for_again(tmp_path: Path, done: bool) -> None:
    errors = (StoreUnavailable(TABLE.folder, "in use"), RequestUnknown(TABLE.folder, "no answer"))
    store = Busy(tmp_path / "zone", errors, done=done)
    landed(store)
    told: list[str] = []
    drop_table(store, TABLE, at_once(), told.append)
    assert drive(is_dropped(TABLE), store)
    assert any("in use" in line for line in told)
    assert not store.errors or done


def test_one_that_stays_in_use_is_given_up_and_gone_on_with_later(tmp_path: Path) -> None:
    store = Busy(tmp_path / "zone", (StoreUnavailable(TABLE.folder, "in use"),) * 1000)
    landed(store)
    with pytest.raises(StoreUnavailable, match="in use"):
        drop_table(store, TABLE, at_once(limit=0.05), lambda _: None)
    record = drive(read_rebuild(TABLE), store)
    assert record is not None
    assert record.step is RebuildStep.REMOVING
    store.errors.clear()
    drop_table(store, TABLE, at_once(), lambda _: None)
    assert drive(is_dropped(TABLE), store)


def test_a_missing_permission_is_told_at_once(tmp_path: Path) -> None:
    store = Busy(tmp_path / "zone", (StoreDenied(TABLE.folder, "403"),))
    landed(store)
    with pytest.raises(StoreDenied):
        drop_table(store, TABLE, at_once(), lambda _: None)


def test_a_mirror_that_keeps_the_table_is_waited_for_and_then_told(tmp_path: Path) -> None:
    store = landed(LocalStore(tmp_path / "zone"))
    with raises(RetryError, ErrorCode.MIRROR_BUSY, match="dropped from the mirror"):
        drop_table(store, TABLE, at_once(0.05, lambda: False), lambda _: None)
    assert store.list(TABLE.folder) == []
    drop_table(store, TABLE, at_once(), lambda _: None)
    assert drive(is_dropped(TABLE), store)


def test_a_mirror_that_cannot_be_asked_now_is_waited_for(tmp_path: Path) -> None:
    store, answers = landed(LocalStore(tmp_path / "zone")), [True]

    def dropped() -> bool:
        if answers:
            answers.clear()
            raise StoreUnavailable("mirror", "asleep")
        return True

    drop_table(store, TABLE, at_once(dropped=dropped), lambda _: None)
    assert drive(is_dropped(TABLE), store)


def test_what_is_dropped_stays_so_and_no_record_is_written_anew(tmp_path: Path) -> None:
    store = landed(LocalStore(tmp_path / "zone"))
    drop_table(store, TABLE, at_once(), lambda _: None)
    record = drive(read_rebuild(TABLE), store)
    told: list[str] = []
    drop_table(store, TABLE, at_once(), told.append)
    assert (drive(read_rebuild(TABLE), store), told) == (record, [])


@pytest.mark.parametrize("name", ["shop.configured", "shop.orders", "shop.staged"])
def test_a_table_is_known_by_its_settings_its_folder_or_what_is_staged(tmp_path: Path, name: str) -> None:
    store = landed(LocalStore(tmp_path / "zone"))
    store.create("_scratchPad/shop.staged/1-x/part", b"")
    text = "landing_zone: {path: ./zone}\ntables: {shop.configured: {source: ./lake, keys: [id]}}"
    config = parse_config(text.encode(), tmp_path / "mirror.yaml", {})
    require_table(config, store, TableName.parse(name))
    with raises(
        SettingError,
        ErrorCode.CONFIG_INVALID,
        match=r"'shop.order'.*use a table of one of them; did you mean 'shop.orders'",
    ):
        require_table(config, store, TableName.parse("shop.order"))


def test_a_table_whose_drop_was_killed_is_known_by_its_record(tmp_path: Path) -> None:
    store = landed(LocalStore(tmp_path / "zone"))
    config = parse_config(
        b"landing_zone: {path: ./zone}\ntables: {a: {source: ./lake, keys: [id]}}", tmp_path / "mirror.yaml", {}
    )
    with raises(RetryError, ErrorCode.MIRROR_BUSY):
        drop_table(store, TABLE, at_once(0.02, lambda: False), lambda _: None)
    require_table(config, store, TABLE)
