"""What the check replicating says of each state that Fabric, or the stand-in, can tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from mirror_assets.features.fabric.errors import FABRIC_DENIED, FABRIC_UNAVAILABLE
from mirror_assets.features.fabric.fabric_mirror import FabricTable
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import DatabaseState, DatabaseStatus, TableState
from mirror_assets.verify.replicating import Replication, check_replicating

_SYNCED = datetime(2026, 11, 23, tzinfo=timezone.utc)
_TABLE = FabricTable(
    TableName("shop", "orders"), TableState.REPLICATING, None, None, 9, 1, _SYNCED, True, 0, None, None, uri="abfss://x"
)
_RUNNING = DatabaseStatus(DatabaseState.RUNNING, None)
_WELL = Replication(3, 7, _TABLE, _RUNNING, version=7)
_REFUSED, _BUSY = FABRIC_DENIED(what="tell", why="403"), FABRIC_UNAVAILABLE(what="tell", why="CapacityNotActive")
_PAUSED = DatabaseStatus(DatabaseState.PAUSED, "capacity paused")
_FAILED = replace(_TABLE, state=TableState.FAILED, error_code="TypeChanged", message="id")
_SLOW = replace(_WELL, table=replace(_TABLE, waiting_files=4), stuck_seconds=1200, version=None)


def _found(seen: Replication) -> tuple[str, str]:
    """`passed`, WARN or ERROR, and the text."""
    result = check_replicating(seen, 600, 3600)
    if result.passed:
        return "passed", result.note
    return "WARN" if result.is_warning else "ERROR", result.advice


@pytest.mark.parametrize("state", DatabaseState)
def test_each_state_of_the_database_is_known(state: DatabaseState) -> None:
    verdict, _ = _found(replace(_WELL, database=DatabaseStatus(state, None)))
    stopped = {DatabaseState.STOPPED, DatabaseState.STOPPING, DatabaseState.PAUSED, DatabaseState.INITIALIZED}
    unsure = {DatabaseState.INITIALIZING, DatabaseState.UNKNOWN}
    assert verdict == ("ERROR" if state in stopped else "WARN" if state in unsure else "passed")


@pytest.mark.parametrize("state", TableState)
def test_each_state_of_the_table_is_known(state: TableState) -> None:
    message = "Fabric calls its state 'Dreaming'" if state is TableState.UNKNOWN else None
    verdict, _ = _found(replace(_WELL, table=replace(_TABLE, state=state, message=message)))
    stopped = state in (TableState.FAILED, TableState.STOPPED)
    assert verdict == ("ERROR" if stopped else "WARN" if state is TableState.UNKNOWN else "passed")


@pytest.mark.parametrize(
    ("changed", "verdict", "said"),
    [
        (Replication(0, -1, refused=_BUSY), "passed", "nothing of the table has landed"),
        (replace(_WELL, refused=_BUSY), "WARN", "CapacityNotActive"),
        (replace(_WELL, refused=_REFUSED), "ERROR", "its status: Fabric refused to tell: 403"),
        (replace(_WELL, database=_PAUSED), "ERROR", "does not resume automatically (Fabric says: capacity paused)."),
        (replace(_WELL, database=_PAUSED), "ERROR", " Next: run `mirror-assets fabric start`."),
        (replace(_WELL, database=_PAUSED, table=_FAILED), "ERROR", "the mirrored database is paused"),
        (replace(_WELL, database=DatabaseStatus(DatabaseState.STOPPED, None)), "ERROR", "fabric start --replay"),
        (replace(_WELL, database=DatabaseStatus(DatabaseState.RUNNING, "throttled")), "WARN", "throttled"),
        (replace(_WELL, table=_FAILED), "ERROR", "has stopped the table (Failed): TypeChanged: id."),
        (replace(_WELL, table=_FAILED), "ERROR", " Next: correct what Fabric names, then launch the job `rebuild`"),
        (replace(_WELL, table=replace(_TABLE, message="file 2 is empty")), "WARN", "warns (Replicating): file 2 is"),
        (_SLOW, "WARN", "for 20 minutes while 4 landing files wait, though the table is shown as Replicating"),
        (replace(_WELL, stuck_seconds=7200, version=None), "ERROR", "for 120 minutes while a landing file waits"),
        (replace(_WELL, table=None, stuck_seconds=7200, version=None), "ERROR", "the mirror does not show the table"),
        (replace(_WELL, table=None, stuck_seconds=60, version=None), "passed", "not there yet"),
        (_WELL, "passed", "Replicating; it has version 7 of the source"),
        (replace(_WELL, version=5), "passed", "it has version 5 of the source, and version 7 has landed"),
        (replace(_WELL, retention_days=1), "passed", "Fabric keeps its old files for 1 day"),
        (replace(_WELL, stopped_before="2 runs of t failed"), "passed", "nothing newer lands: 2 runs of t failed"),
    ],
)
def test_what_it_says(changed: Replication, verdict: str, said: str) -> None:
    found, text = _found(changed)
    assert found == verdict
    assert said in text


def test_limits_can_be_switched_off_and_figures_have_the_version_first() -> None:
    stuck = replace(_WELL, stuck_seconds=7200.0)
    assert check_replicating(stuck, None, None).passed
    assert check_replicating(stuck, 600, None).is_warning
    metadata = check_replicating(stuck, None, None).metadata
    assert next(iter(metadata.items())) == ("mirror_version", 7)
    assert (metadata["landed_file"], metadata["database"], metadata["stuck_seconds"]) == (3, "Running", 7200)


@pytest.mark.parametrize(
    ("seconds", "waited"), [(11, "11 seconds"), (119, "119 seconds"), (120, "2 minutes"), (3000, "50 minutes")]
)
def test_a_short_wait_is_shown_in_seconds(seconds: float, waited: str) -> None:
    found = check_replicating(replace(_WELL, stuck_seconds=seconds, version=None), 5, 10)
    assert f"nothing was applied for {waited} while" in found.message


@pytest.mark.parametrize("table", [_TABLE, None])
def test_a_database_that_runs_and_applies_nothing_has_the_steps_after_a_resumed_capacity(
    table: FabricTable | None,
) -> None:
    stuck = replace(_WELL, table=table, stuck_seconds=7200, version=None)
    step = check_replicating(stuck, 600, 3600).next_step
    for part in ("capacity is active", "Resume replication", "Stop replication", "fabric start --replay", "rebuild"):
        assert part in step
    stand_in = check_replicating(replace(stuck, database=None), 600, 3600).next_step
    assert "mirror-assets replicate" in stand_in
    assert "capacity" not in stand_in
