"""How long the next commit to cover can still be read: after that only a rebuild brings the mirror on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from mirror_assets.audit.finding import CheckResult
from mirror_assets.delta.retention import Clock, Retention

_HOUR = 3600


class Then(str, Enum):
    """What becomes of what waits for a commit that is gone."""

    REBUILT = "the table is rebuilt"
    HELD = "the table is held until you run `mirror-assets rebuild`"
    LOST = "its rows are lost to the history"
    REFUSED = "the mirror can't begin with it, as `start` says"


@dataclass(frozen=True)
class ReadDeadline:
    """The next version to cover at `now` (seconds since 1970), and the source's clocks that run since its commit.

    `committed` is None for a version that is not there: not made yet, or, if it `waits`, gone from the log. `lost` are
    files that its changes are read from, and that are gone. `then` is what happens when the clocks have run out.
    """

    version: int
    waits: bool
    committed: float | None
    retention: Retention
    now: float
    then: Then
    lost: tuple[str, ...] = ()

    @property
    def clock(self) -> Clock:
        """The clock that runs out first."""
        return self.retention.first

    @property
    def is_gone(self) -> bool:
        """Whether the version waits, and it, or a file of it, is not there any more."""
        return self.waits and (self.committed is None or bool(self.lost))

    @property
    def deadline(self) -> float | None:
        """When it may be gone, in seconds since 1970; None while nothing waits, and for what is gone."""
        return None if self.committed is None or self.lost else self.committed + self.clock.seconds

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline, 0 when it is past or the version gone; None while nothing waits."""
        if self.deadline is None:
            return 0.0 if self.waits else None
        return max(0.0, self.deadline - self.now)

    @property
    def statement(self) -> str:
        """The statement after which the version has as long to go as a new one has now, or all have twice as long."""
        return self.retention.prolonged(0.0 if self.committed is None else self.now - self.committed)


def check_retention(deadline: ReadDeadline, limit_seconds: float | None, check: str = "retention") -> CheckResult:
    """Fails when less than the limit is left to read the next version to cover."""
    left = deadline.seconds_left
    late = limit_seconds is not None and left is not None and left < limit_seconds
    figures: dict[str, int | float | str] = {"version": deadline.version, "kept_seconds": deadline.clock.seconds}
    if left is not None:
        figures["seconds_left"] = round(left, 3)
    said = _said(deadline)
    return CheckResult(check, (said,) if late else (), figures, note="" if late else said)


def _said(deadline: ReadDeadline) -> str:
    version, clock = f"version {deadline.version}", f"{deadline.clock.name} is {_span(deadline.clock.seconds)}"
    then = deadline.then.value
    if deadline.is_gone:
        gone = (
            f"{deadline.lost[0]}, a file of {version}, is gone" if deadline.lost else f"{version} is gone from the log"
        )
        return f"{gone}: {then}; to keep commits for longer: {deadline.statement}"
    if deadline.deadline is None:
        return f"no commit waits; the next one can be read for {_span(deadline.clock.seconds)} ({deadline.clock.name})"
    until = datetime.fromtimestamp(deadline.deadline, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    if deadline.deadline <= deadline.now:
        return (
            f"{version} may be gone since {until} ({clock}): run now, for once it is gone {then}; "
            f"to keep it for longer: {deadline.statement}"
        )
    left = _span(deadline.deadline - deadline.now)
    return (
        f"{version} can be read until {until}, for {left} ({clock}); then {then}; to keep it for longer: "
        f"{deadline.statement}"
    )


def _span(seconds: float) -> str:
    hours = seconds / _HOUR
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"
