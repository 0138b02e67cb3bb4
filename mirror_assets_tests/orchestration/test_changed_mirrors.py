"""Which mirrored tables have an event: those whose state, rows, epoch, version or columns are other than recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.fabric.mirror import FabricTable
from mirror_assets.fabric.monitoring import TableState
from mirror_assets.landing.format import Column, Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.changed_mirrors import ChangedMirrors, MirrorMark
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets_tests.pipeline.paper import TABLE, Paper


class Watched:
    """One table in Fabric, its manifest, and the process that watches it."""

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
            TABLE, TableState.REPLICATING, None, None, 9, 1, synced, True, 0, None, None, "abfss://x", manifest_etag="1"
        )
        self.reads = 0
        self.restart()

    def restart(self) -> None:
        """Start another process."""
        self.changed = ChangedMirrors(self.assets)

    def tick(self) -> int:
        """Record the events as Dagster does; return how many they are."""

        def read(name: TableName) -> Manifest | None:
            assert name == TABLE
            self.reads += 1
            return self.manifest

        events = self.changed.events(self.instance, read, [self.status])
        for event in events:
            assert isinstance(event, dg.AssetMaterialization)
            self.instance.report_runless_asset_event(event)
        return len(events)

    def change(self, **changes: object) -> None:
        """Change the status."""
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]

    def change_manifest(self, **changes: object) -> None:
        """Change the manifest, which then has another ETag."""
        assert self.manifest is not None
        self.manifest = self.manifest.model_copy(update=changes)
        self.change(manifest_etag=f"{self.status.manifest_etag}1")


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        yield Watched(tmp_path, instance)


def test_nothing_is_recorded_while_nothing_changes_also_after_a_restart(watched: Watched) -> None:
    assert [watched.tick() for _ in range(4)] == [1, 0, 0, 0]
    assert watched.reads == 1, "the manifest is read only after a change"
    watched.restart()
    assert [watched.tick() for _ in range(2)] == [0, 0]
    assert watched.reads == 2


_CHANGES: dict[str, Callable[[Watched], None]] = {
    "state": lambda one: one.change(state=TableState.FAILED),
    "rows": lambda one: one.change(processed_rows=10),
    "epoch": lambda one: one.change_manifest(epoch=2),
    "version": lambda one: one.change_manifest(covered=4),
    "columns": lambda one: one.change_manifest(columns=(Column(name="other", type="string"),)),
}


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_change_is_recorded_once(watched: Watched, change: Callable[[Watched], None], *, restarts: bool) -> None:
    assert watched.tick() == 1
    change(watched)
    if restarts:
        watched.restart()
    assert [watched.tick() for _ in range(3)] == [1, 0, 0]


def test_times_and_files_that_wait_are_no_change(watched: Watched) -> None:
    assert watched.tick() == 1
    assert watched.status.last_sync is not None
    watched.change(processed_bytes=77, waiting_files=2, last_sync=watched.status.last_sync + timedelta(hours=1))
    watched.change_manifest(covered=4)
    assert watched.tick() == 0, "version 4 is not applied yet"
    watched.change(waiting_files=0)
    assert watched.tick() == 1


def test_a_manifest_that_can_not_be_read_is_read_again(watched: Watched) -> None:
    assert watched.tick() == 1
    watched.change_manifest(covered=4)
    known, watched.manifest = watched.manifest, None
    assert [watched.tick(), watched.tick()] == [0, 0]
    watched.manifest = known
    assert [watched.tick(), watched.tick()] == [1, 0]


@pytest.mark.parametrize("text", ["", "7", "Replicating", "0123abcd"])
def test_the_data_version_of_another_event_is_no_mark(text: str) -> None:
    assert MirrorMark.parse(text) is None


@pytest.mark.parametrize("contents", ["", "1.7 0123abcd"])
def test_a_mark_is_read_back(contents: str) -> None:
    mark = MirrorMark("Replicating", 12, contents)
    assert MirrorMark.parse(str(mark)) == mark
