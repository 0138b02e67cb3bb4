"""The retention of a table's history by its properties, and the statements that change properties."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mirror_assets.source.actions import Metadata, Protocol
from mirror_assets.source.errors import PROPERTY_UNREADABLE

_SECONDS = {
    "week": 604_800.0,
    "day": 86_400.0,
    "hour": 3_600.0,
    "minute": 60.0,
    "second": 1.0,
    "millisecond": 1e-3,
    "microsecond": 1e-6,
}
_PAIR = re.compile(r"([+-]?)'?(\d+(?:\.\d+)?)'?\s+([a-z]+?)s?(?:\s+|$)")


def parse_interval(text: str) -> float:
    """Return the seconds of an interval like `interval 30 days`; the word `interval` is optional, as in Delta.

    Raises ValueError for intervals that Delta refuses: another text, months and years, and negative ones.
    """
    rest = text.strip().lower().removeprefix("interval ").strip()
    seconds = 0.0
    while match := _PAIR.match(rest):
        sign, number, unit = match.groups()
        if unit not in _SECONDS:
            break
        seconds += float(f"{sign}{number}") * _SECONDS[unit]
        rest = rest[match.end() :]
        if not rest:
            break
    if rest or not text.strip() or seconds < 0:
        raise ValueError(f"{text!r} is not an interval like 'interval 30 days'")
    return seconds


_LOG, _FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_HOUR = 3600
_CLEANUP = "delta.enableExpiredLogCleanup"
_DEFAULTS = {_LOG: "interval 30 days", _FILES: "interval 1 week"}


@dataclass(frozen=True)
class Clock:
    """A table property, and the seconds for which it keeps a commit readable."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Retention:
    """The retention of the log entries and of the removed files of the table at `uri`.

    After `log`, entries before a checkpoint may be cleaned up, if `cleans_log`. After `files`, VACUUM may delete
    removed files, and the public reader of Delta 4.1 and later refuses the commit.
    """

    uri: str
    log: Clock
    files: Clock
    cleans_log: bool

    @classmethod
    def of(cls, uri: str, metadata: Metadata) -> Retention:
        """Read the retention from a table's metadata. Raises PROPERTY_UNREADABLE."""
        cleans_log = metadata.configuration.get(_CLEANUP, "true").lower() == "true"
        return cls(uri, _clock(uri, metadata, _LOG), _clock(uri, metadata, _FILES), cleans_log)

    @property
    def first(self) -> Clock:
        """The property that makes a commit unreadable first."""
        clocks = (self.log, self.files) if self.cleans_log else (self.files,)
        return min(clocks, key=lambda clock: clock.seconds)

    def prolonged(self, age: float) -> str:
        """Return the SQL that keeps a commit `age` seconds old readable for as long as a new commit is now.

        It at least doubles the retention.
        """
        return self.keeping(self.first.seconds + max(age, self.first.seconds, _HOUR))

    def keeping(self, seconds: float, table: str | None = None) -> str:
        """Return the SQL that keeps VACUUM and the log's cleanup from anything younger than this.

        `table` is the table's name as SQL writes it; None: by its address. The statement sets every property that is
        shorter now, because Spark refuses to retain files longer than log entries, even if the log is never cleaned up
        (reference `direct-lake` §3.3).
        """
        days = max(1, -int(-seconds // _SECONDS["day"]))
        shorter = (clock.name for clock in (self.log, self.files) if clock.seconds < seconds)
        properties = ", ".join(f"{name} = 'interval {days} days'" for name in shorter)
        return f"ALTER TABLE {table or f'delta.`{self.uri}`'} SET TBLPROPERTIES ({properties})"


def _clock(uri: str, metadata: Metadata, name: str) -> Clock:
    text = metadata.configuration.get(name, _DEFAULTS[name])
    try:
        return Clock(name, parse_interval(text))
    except ValueError as error:
        raise PROPERTY_UNREADABLE(uri=uri, name=name, why=str(error)) from error


_FEATURE = "changeDataFeed"
# From writer version 4 on, writers know the feed; from 7 on, a table lists what its writers must know.
_KNOWS_FEED, _LISTS_FEATURES = 4, 7

FEED_BY_DEFAULT = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
"""The setting of a Spark session or cluster that enables the change data feed of each new table."""

ROW_TRACKING_COST = (
    "Delta assigns ids to the existing rows, in several commits, which can take long for a large table. It also "
    "upgrades the table's protocol, which disabling row tracking doesn't undo: writers that don't know row tracking "
    "can't write the table afterwards; readers are not affected."
)
"""What enabling row tracking of an existing table does to it."""


def how_to_enable(uri: str, protocol: Protocol) -> str:
    """Return the SQL that enables the change data feed, which nothing here runs, and its effect on the protocol."""
    return (
        f"run `ALTER TABLE delta.`{uri}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)`, then run again. "
        f"{feed_consequence(protocol)} To enable it for all new tables, set "
        f"{FEED_BY_DEFAULT} = true in the Spark session or cluster that creates them."
    )


def enable_row_tracking(uri: str) -> str:
    """Return the SQL that enables row tracking."""
    return f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES (delta.enableRowTracking = true)"


def feed_consequence(protocol: Protocol) -> str:
    """Return the effect that enabling the change data feed has on the protocol."""
    if _FEATURE in protocol.features or _KNOWS_FEED <= protocol.writer < _LISTS_FEATURES:
        return f"The table's writer version {protocol.writer} doesn't change: its writers know the feed."
    raised = (
        "" if protocol.writer >= _LISTS_FEATURES else f" from writer version {protocol.writer} to {_LISTS_FEATURES}"
    )
    return (
        f"It raises the table's protocol{raised}, with the table feature {_FEATURE}: writers that don't know it can't "
        "write the table afterwards; readers are not affected."
    )
