"""How far the landing zone is behind the source: a quiet source is not late."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.audit.finding import CheckResult


@dataclass(frozen=True)
class Lag:
    """The source's tip against the covered version; `seconds` since the oldest uncovered commit, 0 when none is."""

    tip: int
    covered: int
    seconds: float

    @property
    def commits(self) -> int:
        """Commits not covered yet."""
        return self.tip - self.covered


def check_lag(lag: Lag, limit_seconds: float | None) -> CheckResult:
    """Fails when the oldest uncovered commit is older than the limit."""
    late = limit_seconds is not None and lag.commits > 0 and lag.seconds > limit_seconds
    problem = (
        f"version {lag.covered + 1} has waited {lag.seconds:.0f} s, more than {limit_seconds:.0f} s" if late else ""
    )
    figures: dict[str, int | float | str] = {"commits_behind": lag.commits, "seconds_behind": round(lag.seconds, 3)}
    return CheckResult("lag", (problem,) if problem else (), figures)
