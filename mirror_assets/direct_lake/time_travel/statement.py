"""A point in a table's history as SQL.

Delta's words are `VERSION AS OF` and `TIMESTAMP AS OF`; the seed's `AS OF VERSION 2` is in no dialect (reference
`direct-lake` §0).
"""

from __future__ import annotations

from datetime import datetime, timezone

from mirror_assets.direct_lake.sql import text
from mirror_assets.source.ranges import Point, VersionPoint


def as_of(point: Point) -> str:
    """The clause that follows the table's name; a time is in UTC and says so, whatever the session's zone is."""
    if isinstance(point, VersionPoint):
        return f"VERSION AS OF {point.version}"
    seconds, rest = divmod(point.time_ms, 1000)
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return f"TIMESTAMP AS OF {text(f'{moment:%Y-%m-%dT%H:%M:%S}.{rest:03d}Z')}"


def select_as_of(table: str, point: Point) -> str:
    """The statement that reads the whole table as of the point; `table` as SQL names it."""
    return f"SELECT * FROM {table} {as_of(point)}"  # noqa: S608 the table's name is the caller's, quoted by it
