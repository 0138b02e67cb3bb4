"""Problems for tests of messages and their delivery."""

from __future__ import annotations

from mirror_assets.landing.problems import Severity, StoredProblem


def problem(
    subject: str,
    severity: Severity = Severity.ERROR,
    *,
    check: str = "lag",
    incident: str | None = None,
    code: str | None = None,
    first_ms: int = 0,
    text: str = "it is late.",
) -> StoredProblem:
    """Return an open problem of the subject, in an incident of its own by default."""
    return StoredProblem(
        subject=subject,
        asset="landing",
        check=check,
        severity=severity,
        what="fails",
        text=text,
        next_step="rebuild it.",
        code=code,
        cause="c",
        page="runs/1 2",
        owner="here",
        generation=1,
        first_ms=first_ms,
        incident=incident or f"of {subject}",
    )
