"""For how long a source keeps what a commit's changes are read from."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.delta.actions import Metadata
from mirror_assets.delta.errors import PropertyUnreadable
from mirror_assets.delta.intervals import interval_of_days, parse_interval

_LOG, _FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_CLEANUP = "delta.enableExpiredLogCleanup"
_DEFAULTS = {_LOG: "interval 30 days", _FILES: "interval 1 week"}


@dataclass(frozen=True)
class Clock:
    """A table property, and for how many seconds after a commit it keeps the commit readable."""

    name: str
    seconds: float


def retention_clocks(uri: str, metadata: Metadata) -> tuple[Clock, ...]:
    """The clocks of a source, the first to run out first.

    Log entries behind a checkpoint may be cleaned up after the one, and files deleted by VACUUM after the other, when
    Delta from 4.1 on refuses the commit in its public reader, too. Raises PropertyUnreadable.
    """
    cleans_up = metadata.configuration.get(_CLEANUP, "true").lower() == "true"
    clocks = [_clock(uri, metadata, name) for name in _DEFAULTS if cleans_up or name != _LOG]
    return tuple(sorted(clocks, key=lambda clock: clock.seconds))


def prolonging_statement(uri: str, clocks: tuple[Clock, ...], seconds: float) -> str:
    """The statement that has every clock run for at least this long."""
    interval = interval_of_days(seconds)
    properties = ", ".join(f"{clock.name} = '{interval}'" for clock in clocks if clock.seconds < seconds)
    return f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ({properties})"


def keeping_statement(uri: str, metadata: Metadata, seconds: float) -> str:
    """The statement after which neither VACUUM nor the log's cleanup takes what is younger than this.

    It names every property that is shorter now, for Spark refuses to keep files for longer than log entries, even where
    the log is never cleaned (reference `direct-lake` §3.3). Raises PropertyUnreadable.
    """
    return prolonging_statement(uri, tuple(_clock(uri, metadata, name) for name in _DEFAULTS), seconds)


def file_retention(uri: str, metadata: Metadata) -> float:
    """For how many seconds VACUUM leaves what is no longer of the table. Raises PropertyUnreadable."""
    return _clock(uri, metadata, _FILES).seconds


def _clock(uri: str, metadata: Metadata, name: str) -> Clock:
    text = metadata.configuration.get(name, _DEFAULTS[name])
    try:
        return Clock(name, parse_interval(text))
    except ValueError as error:
        raise PropertyUnreadable(uri, name, str(error)) from error
