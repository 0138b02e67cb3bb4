"""What a rebuild takes for dropped, and for back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.features.fabric.errors import FABRIC_UNAVAILABLE
from mirror_assets.features.fabric.fabric_mirror import FabricTable
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import MonitoredTable, Pace, TableState
from mirror_assets.pipeline.rebuild_table import mirror_wait
from mirror_assets_tests.errors import raises

TABLE = TableName("shop", "orders")
THERE = FabricTable(TABLE, TableState.REPLICATING, None, None, 0, 0, None, True, 0, None, None, uri="abfss://x")


@dataclass
class Scripted:
    """A mirror that answers one thing after another, the last one for ever."""

    answers: list[Callable[[], MonitoredTable | None]]
    requested: int = 0
    pace: Pace = field(default_factory=lambda: Pace(pause_seconds=0.001, limit_seconds=5.0))

    def poll_table(self, name: TableName) -> MonitoredTable | None:
        assert name == TABLE
        self.requested += 1
        return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])()

    def poll(self) -> list[MonitoredTable]:
        raise AssertionError("one table is asked for, not all")

    status = poll

    def table(self, name: TableName) -> MonitoredTable | None:
        raise AssertionError(f"a mirror that is to move is looked at, for {name}")

    def database(self) -> None: ...

    def retention_days(self) -> None: ...

    def at_once(self) -> Scripted:
        return self


def answers(table: MonitoredTable | None) -> Callable[[], MonitoredTable | None]:
    return lambda: table


def fails() -> MonitoredTable | None:
    raise FABRIC_UNAVAILABLE(what="tell", why="429")


def test_dropped_is_what_the_mirror_no_longer_has() -> None:
    mirror = Scripted([answers(THERE), fails, answers(replace(THERE, state=TableState.STOPPED)), answers(None)])
    wait = mirror_wait(mirror, TABLE)
    wait.until(wait.dropped, "it to go")
    assert mirror.requested == 4


def test_back_is_what_is_replicating_again() -> None:
    states = (TableState.INITIALIZED, TableState.SNAPSHOTTING, TableState.RESEEDING, TableState.UNKNOWN)
    coming = [answers(replace(THERE, state=state)) for state in states]
    mirror = Scripted([answers(None), *coming, fails, answers(THERE)])
    wait = mirror_wait(mirror, TABLE)
    wait.until(wait.returned, "it to come back")
    assert mirror.requested == 7


def test_a_table_that_has_failed_is_not_waited_for() -> None:
    wait = mirror_wait(Scripted([answers(replace(THERE, state=TableState.FAILED, message="type changed"))]), TABLE)
    with raises(StopError, ErrorCode.TABLE_STOPPED, match="type changed"):
        wait.until(wait.returned, "it to come back")


def test_the_pace_is_the_mirrors_and_the_last_refusal_is_kept() -> None:
    mirror = Scripted([fails], pace=Pace(0.001, 0.01))
    wait = mirror_wait(mirror, TABLE)
    with raises(RetryError, ErrorCode.TABLE_BUSY) as caught:
        wait.until(wait.dropped, "it to go")
    assert isinstance(caught.value.__cause__, RetryError)
    assert caught.value.__cause__.row is FABRIC_UNAVAILABLE
    assert mirror.requested > 1
