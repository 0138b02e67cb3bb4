"""Check how far the landing zone is behind its source, and how long the next commit to cover can still be read.

Without new commits in the source, there is no lag. Once an uncovered commit is deleted, the mirror needs a rebuild.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from mirror_assets.source.table_properties import Clock, Retention
from mirror_assets.verify.check_result import CheckResult

_HOUR = 3600
# Synchronised clocks differ by less, and a commit takes less time.
MOST_APART_SECONDS = 60.0


@dataclass(frozen=True)
class Lag:
    """The source's newest version, the covered one, and seconds since the oldest uncovered commit (0 if none).

    `ahead_seconds` is how far the newest commit's time is after this machine's clock; 0 if it is not.
    """

    tip: int
    covered: int
    seconds: float
    ahead_seconds: float = 0.0

    @property
    def commits(self) -> int:
        """Number of commits that are not covered yet."""
        return self.tip - self.covered


def check_lag(lag: Lag, limit_seconds: float | None) -> CheckResult:
    """Fail if the oldest uncovered commit is older than the limit; never without a limit.

    Warn if the newest commit's time is after this machine's clock: the lag is then wrong.
    """
    late = limit_seconds is not None and lag.commits > 0 and lag.seconds > limit_seconds
    problem = (
        f"version {lag.covered + 1} has waited {lag.seconds:.0f} s, more than {limit_seconds:.0f} s" if late else ""
    )
    metadata: dict[str, int | float | str] = {"commits_behind": lag.commits, "seconds_behind": round(lag.seconds, 3)}
    if not problem and lag.ahead_seconds > MOST_APART_SECONDS:
        text = f"version {lag.tip} is dated {lag.ahead_seconds:,.0f} s after this machine's clock: its lag is unknown"
        step = "correct the clock: this machine's if many tables have this problem, else that of the table's writer."
        return CheckResult("lag", (text,), metadata, is_warning=True, next_step=step)
    return CheckResult("lag", (problem,) if problem else (), metadata)


@dataclass(frozen=True)
class ReadDeadline:
    """How long the next version to cover can still be read; times are seconds since 1970.

    `waits` says whether the source has, or had, the version. `committed` is the time of its commit, None if the log
    doesn't have it: not made yet or, if it `waits`, cleaned up. `retention` has the source's retention periods, `lost`
    the deleted files of its changes, and `then` the consequence once the version can't be read.
    """

    version: int
    waits: bool
    committed: float | None
    retention: Retention
    now: float
    then: str
    lost: tuple[str, ...] = ()

    @property
    def clock(self) -> Clock:
        """The retention period that ends first."""
        return self.retention.first

    @property
    def is_gone(self) -> bool:
        """Whether the version waits to be covered, and its log entry or one of its files was deleted."""
        return self.waits and (self.committed is None or bool(self.lost))

    @property
    def gone_from(self) -> float | None:
        """Time from which the version may be deleted; None if none waits, or it was deleted already."""
        return None if self.committed is None or self.lost else self.committed + self.clock.seconds

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline, 0 if it has passed or the version was deleted; None if no version waits."""
        if self.gone_from is None:
            return 0.0 if self.waits else None
        return max(0.0, self.gone_from - self.now)

    @property
    def statement(self) -> str:
        """The ALTER TABLE statement that keeps this version as long as new ones are kept now, or all twice as long."""
        return self.retention.prolonged(0.0 if self.committed is None else self.now - self.committed)


def check_retention(deadline: ReadDeadline, limit_seconds: float | None, check: str = "retention") -> CheckResult:
    """Fail if the next version to cover can be read for less than the limit; never fail without a limit."""
    left = deadline.seconds_left
    late = limit_seconds is not None and left is not None and left < limit_seconds
    metadata: dict[str, int | float | str] = {"version": deadline.version, "kept_seconds": deadline.clock.seconds}
    if left is not None:
        metadata["seconds_left"] = round(left, 3)
    text = _describe(deadline)
    return CheckResult(check, (text,) if late else (), metadata, note="" if late else text)


def _describe(deadline: ReadDeadline) -> str:
    version, clock = f"version {deadline.version}", f"{deadline.clock.name} is {_span(deadline.clock.seconds)}"
    then = deadline.then
    if deadline.is_gone:
        gone = (
            f"{deadline.lost[0]}, a file of {version}, was deleted"
            if deadline.lost
            else f"{version} was deleted from the log"
        )
        return f"{gone}: {then}; to keep commits for longer: {deadline.statement}"
    if deadline.gone_from is None:
        return f"no commit waits; the next one can be read for {_span(deadline.clock.seconds)} ({deadline.clock.name})"
    until = datetime.fromtimestamp(deadline.gone_from, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    if deadline.gone_from <= deadline.now:
        return (
            f"{version} may be deleted since {until} ({clock}): run now, because once it is deleted, {then}; "
            f"to keep it for longer: {deadline.statement}"
        )
    left = _span(deadline.gone_from - deadline.now)
    return (
        f"{version} can be read until {until}, for {left} ({clock}); then {then}; to keep it for longer: "
        f"{deadline.statement}"
    )


def _span(seconds: float) -> str:
    hours = seconds / _HOUR
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"
