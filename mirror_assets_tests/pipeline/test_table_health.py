"""What is seen of a mirror beside what has landed: versions of the source, and how long files have waited."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode
from mirror_assets.features.fabric.errors import FABRIC_UNAVAILABLE
from mirror_assets.features.fabric.fabric_mirror import FabricTable
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.run_records import record_failure
from mirror_assets.landing.steps import drive
from mirror_assets.monitoring import DatabaseState, DatabaseStatus, Mirror, MonitoredTable, TableState
from mirror_assets.pipeline.rebuild_table import drop_table
from mirror_assets.pipeline.table_health import check_replication, read_replication
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage
from mirror_assets_tests.pipeline.paper import Paper

_TWO_HOURS = 7200.0
_IN_FABRIC = FabricTable(TABLE, TableState.REPLICATING, None, None, 0, 0, None, True, 2, None, None, uri="abfss://x")


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """Three slices have landed, of one file each; their versions are 0, 1 and 2."""
    made = Paper(tmp_path)
    store = LocalStore(made.zone)
    for last in range(3):
        drive(publish(TABLE, stage(store, position_of(store), last), CHECKS), store)
    return made


@dataclass
class Scripted(LocalReplicator):
    """A mirror that says what a test wants."""

    shown: MonitoredTable | None
    running: DatabaseStatus | None = None
    refuses: bool = False

    def database(self) -> DatabaseStatus | None:  # type: ignore[override]
        if self.refuses:
            raise FABRIC_UNAVAILABLE(what="tell the status", why="CapacityNotActive: paused")
        return self.running

    def table(self, name: TableName) -> MonitoredTable | None:  # type: ignore[override]
        assert name == TABLE
        return self.shown


def _standin(paper: Paper, applied: int) -> MonitoredTable:
    """What the stand-in shows of the table when it has applied so many files."""
    shown = LocalReplicator(LocalStore(paper.zone), paper.root / "mirror")
    shown.poll()
    found = shown.table(TABLE)
    assert found is not None
    return replace(found, applied_number=applied, last_sync=None, state=TableState.REPLICATING)


@pytest.mark.parametrize(("applied", "version"), [(3, 2), (2, 1), (1, 0), (0, None)])
def test_the_applied_file_number_gives_the_version_of_the_source(
    paper: Paper, applied: int, version: int | None
) -> None:
    seen = read_replication(paper.context, Scripted(_standin(paper, applied)), time.time())
    assert (seen.landed, seen.covered, seen.version) == (3, 2, version)


def test_files_wait_from_when_the_oldest_landed_or_one_was_applied_last(paper: Paper) -> None:
    later = time.time() + _TWO_HOURS
    waiting = _standin(paper, 1)
    assert read_replication(paper.context, Scripted(waiting), later).stuck_seconds == pytest.approx(_TWO_HOURS, abs=60)
    moving = replace(waiting, last_sync=datetime.fromtimestamp(later - 30, timezone.utc))
    assert read_replication(paper.context, Scripted(moving), later).stuck_seconds == pytest.approx(30, abs=1)
    assert read_replication(paper.context, Scripted(_standin(paper, 3)), later).stuck_seconds == 0


@pytest.mark.parametrize("shown", [None, _IN_FABRIC], ids=["a table that the mirror does not show", "Fabric"])
def test_a_mirror_that_does_nothing_is_stuck_since_the_first_file(paper: Paper, shown: FabricTable | None) -> None:
    running = DatabaseStatus(DatabaseState.RUNNING, None)
    seen = read_replication(paper.context, Scripted(shown, running), time.time() + _TWO_HOURS)
    assert (seen.table, seen.database, seen.version) == (shown, running, None)
    assert seen.stuck_seconds == pytest.approx(_TWO_HOURS, abs=60)


def test_a_mirror_that_can_not_be_asked_is_part_of_the_answer(paper: Paper) -> None:
    seen = read_replication(paper.context, Scripted(None, refuses=True), time.time())
    assert "CapacityNotActive" in str(seen.refused)
    assert seen.landed == 3


def test_a_table_that_only_the_mirror_has_is_a_warning_unless_it_was_dropped(paper: Paper) -> None:
    left = Scripted(_standin(paper, 3))
    paper.context.store.delete_tree(TABLE.folder)
    found = check_replication(paper.context, left, time.time())
    assert found.is_warning
    assert "the landing zone has no manifest of it" in found.message
    assert "loads the table again with a snapshot" in found.next_step
    assert check_replication(paper.context, Scripted(None), time.time()).passed
    drop_table(paper.context.store, TABLE, LocalReplicator(LocalStore(paper.zone), paper.root / "mirror"), print)
    assert check_replication(paper.context, left, time.time()).passed


def test_failing_runs_are_reported_although_the_mirror_is_up_to_date(paper: Paper) -> None:
    record_failure(paper.context.store, TABLE, ErrorCode.STORE_FULL, "the disk is full", int(time.time() * 1000))
    seen = read_replication(paper.context, Scripted(_standin(paper, 3)), time.time())
    assert seen.stopped_before == "1 run of shop.orders failed, see the check not_failing"


def test_nothing_is_asked_of_a_table_of_which_nothing_has_landed(tmp_path: Path) -> None:
    mirror: Mirror = Scripted(None, refuses=True)
    seen = read_replication(Paper(tmp_path).context, mirror, time.time())
    assert (seen.landed, seen.covered, seen.refused) == (0, -1, None)
