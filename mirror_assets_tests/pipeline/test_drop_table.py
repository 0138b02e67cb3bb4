"""A drop from end to end: store, record and mirror; in use, killed half-way, and while somebody runs the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config.load import parse_config
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import RebuildStep, first_epoch, is_dropped, read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.monitoring import Mirror, Pace
from mirror_assets.pipeline.rebuild_table import drop_table, require_table
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import REQUEST_UNKNOWN, STORE_DENIED, STORE_UNAVAILABLE
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage
from mirror_assets_tests.scripted_mirror import Scripted

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
