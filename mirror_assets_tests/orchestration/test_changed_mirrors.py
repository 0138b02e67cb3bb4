"""Which mirrored tables have an event: those whose state, rows, epoch, version or columns are other than recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.features.fabric.fabric_mirror import FabricTable
from mirror_assets.landing.format import Column
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import TableState
from mirror_assets.orchestration.asset_names import AssetKind, asset_key
from mirror_assets.orchestration.changed_mirrors import ChangedMirrors, MirrorMark
from mirror_assets.orchestration.check_jobs import CHECKS
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets_tests.pipeline.paper import TABLE, Paper
from mirror_assets_tests.worlds.fabric.databases import LoopbackDatabase, reported_table
from mirror_assets_tests.worlds.fabric.interface import Answer
from mirror_assets_tests.worlds.fabric.loopback import Fault, LoopbackFabric


class Watched:
    """One table in Fabric, and its manifest."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        paper = Paper(folder)
        paper.create()
        for version in (1, 2, 3):
            paper.commit(version, version)
        paper.cover(3)
        self.assets = MirrorAssets(paper.config)
        self.manifest = paper.context.manifest()
        synced = datetime(2026, 11, 28, tzinfo=timezone.utc)
        self.status = FabricTable(
            TABLE, TableState.REPLICATING, None, None, 9, 1, synced, True, 0, None, None, "abfss://x"
        )

    def events(self) -> int:
        """Record the event, if there is one, as a run does; return how many there are."""
        event = ChangedMirrors(self.instance, self.assets).event(self.status, self.manifest)
        if event is None:
            return 0
        self.instance.report_runless_asset_event(event)
        return 1

    def change(self, **changes: object) -> None:
        """Change the status."""
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]

    def change_manifest(self, **changes: object) -> None:
        """Change the manifest."""
        assert self.manifest is not None
        self.manifest = self.manifest.model_copy(update=changes)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        yield Watched(tmp_path, instance)


def test_nothing_is_recorded_while_nothing_changes(watched: Watched) -> None:
    assert [watched.events() for _ in range(4)] == [1, 0, 0, 0]


_CHANGES: dict[str, Callable[[Watched], None]] = {
    "state": lambda one: one.change(state=TableState.FAILED),
    "rows": lambda one: one.change(processed_rows=10),
    "epoch": lambda one: one.change_manifest(epoch=2),
    "version": lambda one: one.change_manifest(covered=4),
    "columns": lambda one: one.change_manifest(columns=(Column(name="other", type="string"),)),
}


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_change_is_recorded_once(watched: Watched, change: Callable[[Watched], None]) -> None:
    assert watched.events() == 1
    change(watched)
    assert [watched.events() for _ in range(3)] == [1, 0, 0]


def test_times_and_files_that_wait_are_no_change(watched: Watched) -> None:
    assert watched.events() == 1
    assert watched.status.last_sync is not None
    watched.change(processed_bytes=77, waiting_files=2, last_sync=watched.status.last_sync + timedelta(hours=1))
    watched.change_manifest(covered=4)
    assert watched.events() == 0, "version 4 is not applied yet"
    watched.change(waiting_files=0)
    assert watched.events() == 1


def test_a_manifest_that_can_not_be_read_is_read_again(watched: Watched) -> None:
    assert watched.events() == 1
    watched.change_manifest(covered=4)
    known, watched.manifest = watched.manifest, None
    assert [watched.events(), watched.events()] == [0, 0]
    watched.manifest = known
    assert [watched.events(), watched.events()] == [1, 0]


@pytest.mark.parametrize("text", ["", "7", "Replicating", "0123abcd"])
def test_the_data_version_of_another_event_is_no_mark(text: str) -> None:
    assert MirrorMark.parse(text) is None


@pytest.mark.parametrize("contents", ["", "1.7 0123abcd"])
def test_a_mark_is_read_back(contents: str) -> None:
    mark = MirrorMark("Replicating", 12, contents)
    assert MirrorMark.parse(str(mark)) == mark


_SYNCED = "2026-11-21T05:07:11Z"


class Observed:
    """A database in Fabric, and the runs of `checks` that ask it."""

    def __init__(self, database: LoopbackDatabase, instance: dg.DagsterInstance) -> None:
        self.database, self.instance = database, instance
        self.definitions = build_definitions(load_config())

    def check(self, rows: int) -> list[dg.DagsterEvent]:
        """Run `checks` with this status of the table; return the materializations of mirrors, and all results."""
        tables = [
            reported_table("shop", "orders", processedRows=rows, lastSyncDateTime=_SYNCED),
            reported_table("shop", "orphan"),
        ]
        self.database.tables = lambda: tables
        job = self.definitions.resolve_job_def(CHECKS)
        run = job.execute_in_process(instance=self.instance, raise_on_error=False).run_id
        events = [entry.dagster_event for entry in self.instance.all_logs(run) if entry.dagster_event]
        recorded = (dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        found = [event for event in events if event.event_type in recorded]
        status = dg.AssetKey("mirror_status")
        return [event for event in found if event.asset_key != status]


@pytest.fixture
def observed(database: LoopbackDatabase) -> Iterator[Observed]:
    database.state = "Running"
    with dg.instance_for_test() as instance:
        yield Observed(database, instance)


def test_a_table_in_fabric_that_has_changed_is_recorded_with_its_checks(observed: Observed) -> None:
    first, *checks = observed.check(12)
    assert first.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION
    assert first.asset_key == asset_key(AssetKind.MIRROR, TableName("shop", "orders"))
    metadata = {name: value.value for name, value in first.materialization.metadata.items()}
    assert (metadata["state"], metadata["processed_rows"]) == ("Replicating", 12)
    assert metadata["last_sync"] == datetime(2026, 11, 21, 5, 7, 11, tzinfo=timezone.utc).timestamp()
    place = load_config().mirror_place
    assert place is not None
    assert str(metadata["mirror"]).startswith(f"{place.tables}/")
    assert not {"applied_number", "dagster/row_count"} & set(metadata)
    results = [event.asset_check_evaluation_data for event in checks]
    assert "replicating" in {found.check_name for found in results if found.asset_key == first.asset_key}


def test_a_table_in_fabric_that_has_not_changed_is_not_recorded(observed: Observed) -> None:
    for rows, is_new in ((12, True), (12, False), (13, True), (13, False)):
        assert any(one.is_step_materialization for one in observed.check(rows)) is is_new


def test_a_fabric_that_can_not_be_asked_changes_nothing(observed: Observed, fabric: LoopbackFabric) -> None:
    assert observed.check(12)
    refused = Answer.refusal(429, "RequestBlocked", **{"Retry-After": "3600"})
    fabric.faults.append(Fault("getTablesMirroringStatus", refused))
    materialized = [one for one in observed.check(13) if one.is_step_materialization]
    assert not materialized
    assert [one for one in observed.check(13) if one.is_step_materialization]
