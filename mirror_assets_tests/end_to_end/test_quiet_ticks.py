"""Ticks of a table on which nothing happens, and of those on which something does that a quick look could miss."""

from __future__ import annotations

import dagster as dg
import pytest

from mirror_assets.landing import publish
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import begin_rebuild
from mirror_assets.landing.steps import Steps, drive
from mirror_assets.orchestration.jobs import TABLES_OP
from mirror_assets.pipeline import table_watch
from mirror_assets.source.commits import SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones.onelake.onelake_zone import Staging
from mirror_assets_tests.end_to_end.ticks import Location
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.worlds.onelake import LoopbackOneLake, Operation
from mirror_assets_tests.worlds.onelake.lab import OneLakeLab

NOTHING = "nothing is pending of 1 tables"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    real = DeltaLog.state

    def counted(log: DeltaLog, version: int | None = None) -> SourceState:
        found.append(log.uri)
        return real(log, version)

    monkeypatch.setattr(DeltaLog, "state", counted)
    return found


@pytest.fixture
def quiet(mirrored: Lab, instance: dg.DagsterInstance) -> Location:
    location = Location.of(mirrored, instance)
    assert location.skipped() == NOTHING
    return location


def test_a_quiet_tick_opens_no_table(quiet: Location, opened: list[str]) -> None:
    assert quiet.skipped() == NOTHING
    assert opened == []


def test_a_whole_look_comes_once_an_hour(
    quiet: Location, opened: list[str], monkeypatch: pytest.MonkeyPatch, mirrored: Lab
) -> None:
    monkeypatch.setattr(table_watch, "_COMPLETE_SECONDS", 0)
    again = Location.of(mirrored, quiet.instance)
    for _ in range(2):
        assert again.skipped() == NOTHING
    assert opened == [mirrored.uri] * 2


def test_a_rebuild_that_was_interrupted_before_it_dropped_anything_is_gone_on_with(
    quiet: Location, mirrored: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive(begin_rebuild(TABLE), mirrored.store)
    assert quiet.skipped() == NOTHING, "the landing zone is looked at once a minute"
    monkeypatch.setattr(table_watch, "_ZONE_SECONDS", 0)
    quiet.requested()


def test_a_publication_that_was_interrupted_is_ended_by_the_next_tick(
    quiet: Location, mirrored: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit covers the newest version, so that nothing else is pending to bring the files along."""
    mirrored.sql("INSERT INTO {t} VALUES (900, 'x', 1)")

    def killed(_table: TableName, _manifest: Manifest) -> Steps[None]:
        yield from ()
        raise KeyboardInterrupt

    with monkeypatch.context() as planted:
        planted.setattr(publish, "land", killed)
        with pytest.raises(KeyboardInterrupt):
            mirrored.mirror()
    assert len(mirrored.files) == 3
    assert quiet.skipped() == NOTHING
    assert len(mirrored.files) == 4


def test_other_columns_rebuild_the_table_after_the_code_is_reloaded(quiet: Location, mirrored: Lab) -> None:
    mirrored.configure(table="columns: [name]", defaults="on_drop_column: rebuild")
    assert quiet.skipped() == NOTHING
    again = Location.of(mirrored, quiet.instance)
    (report,) = again.run(again.requested()).output_for_node(TABLES_OP)
    assert report.rebuilds == 1


def test_a_quiet_tick_asks_onelake_once_for_the_batch_and_twice_a_minute_for_a_table(
    mirrored: Lab, signed_in: LoopbackOneLake, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    onelake = signed_in
    zone = OneLakeLab.on(mirrored, onelake, Staging.UPLOAD)
    zone.mirror()
    location = Location.of(mirrored, instance)
    assert location.skipped() == NOTHING
    onelake.log.reset()
    assert location.skipped() == NOTHING
    assert onelake.log.counts() == {Operation.READ: 1}
    monkeypatch.setattr(table_watch, "_ZONE_SECONDS", 0)
    onelake.log.reset()
    assert location.skipped() == NOTHING
    assert onelake.log.counts() == {Operation.READ: 2, Operation.HEAD: 1}
