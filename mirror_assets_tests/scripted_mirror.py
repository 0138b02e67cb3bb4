"""A mirror whose answers a test gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import MonitoredTable, Pace

TABLE = TableName("shop", "orders")


@dataclass
class Scripted:
    """A mirror that answers one thing after another, the last one for ever; by default, that it has no table."""

    answers: list[Callable[[], MonitoredTable | None]] = field(default_factory=lambda: [lambda: None])
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
