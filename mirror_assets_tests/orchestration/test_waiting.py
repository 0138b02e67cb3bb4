"""What a rebuild takes for dropped, and for back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.features.fabric.errors import FABRIC_UNAVAILABLE
from mirror_assets.features.fabric.fabric_mirror import FabricTable
from mirror_assets.monitoring import MonitoredTable, Pace, TableState
from mirror_assets.pipeline.rebuild_table import wait_until_back, wait_until_dropped
from mirror_assets_tests.errors import raises
from mirror_assets_tests.scripted_mirror import TABLE, Scripted

THERE = FabricTable(TABLE, TableState.REPLICATING, None, None, 0, 0, None, True, 0, None, None, uri="abfss://x")


def answers(table: MonitoredTable | None) -> Callable[[], MonitoredTable | None]:
    return lambda: table


def fails() -> MonitoredTable | None:
    raise FABRIC_UNAVAILABLE(what="tell", why="429")


def test_dropped_is_what_the_mirror_no_longer_has() -> None:
    mirror = Scripted([answers(THERE), fails, answers(replace(THERE, state=TableState.STOPPED)), answers(None)])
    wait_until_dropped(mirror, TABLE)
    assert mirror.requested == 4


def test_back_is_what_is_replicating_again() -> None:
    states = (TableState.INITIALIZED, TableState.SNAPSHOTTING, TableState.RESEEDING, TableState.UNKNOWN)
    coming = [answers(replace(THERE, state=state)) for state in states]
    mirror = Scripted([answers(None), *coming, fails, answers(THERE)])
    wait_until_back(mirror, TABLE)
    assert mirror.requested == 7


def test_a_table_that_has_failed_is_not_waited_for() -> None:
    mirror = Scripted([answers(replace(THERE, state=TableState.FAILED, message="type changed"))])
    with raises(StopError, ErrorCode.TABLE_STOPPED, match="type changed"):
        wait_until_back(mirror, TABLE)


def test_the_pace_is_the_mirrors_and_the_last_refusal_is_kept() -> None:
    mirror = Scripted([fails], pace=Pace(0.001, 0.01))
    with raises(RetryError, ErrorCode.TABLE_BUSY) as caught:
        wait_until_dropped(mirror, TABLE)
    assert isinstance(caught.value.__cause__, RetryError)
    assert caught.value.__cause__.row is FABRIC_UNAVAILABLE
    assert mirror.requested > 1
