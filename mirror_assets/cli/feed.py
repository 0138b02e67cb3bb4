"""`mirror-assets feed`: rows of a source's change data feed, as Spark reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_records
from mirror_assets.composition import open_spark
from mirror_assets.config import load_config
from mirror_assets.delta.reader import feed_rows
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.pipeline.source_check import FeedOff
from mirror_assets.source.commits import Commit
from mirror_assets.source.errors import RangeRefused
from mirror_assets.source.log import SourceLog
from mirror_assets.source.ranges import Range, VersionPoint, resolve

_BREAK = "give a range on one side of it."


def feed(path: Path | None, name: str, requested: Range, limit: int, *, as_json: bool) -> Exit:
    """Show the rows of the range, of the newest commit by default, ordered by version."""
    config = load_config(path)
    table = config.table(name)
    commits = _commits(SourceLog(table.source), name, requested)
    rows: Sequence[str] = ()
    if any(commit.changes_data for commit in commits):
        vectors = tuple(commit.version for commit in commits if commit.deletion_vectors)
        with spark_errors(table.source):
            spark, (first, last) = open_spark(config), (commits[0].version, commits[-1].version)
            rows = feed_rows(spark, table.source, first, last, vectors, limit + 1)
    _show(rows[:limit], as_json=as_json)
    if len(rows) > limit:
        note(f"{name}: there are more rows than {limit}; --limit shows more")
    return Exit.FINE


def _commits(log: SourceLog, table: str, requested: Range) -> tuple[Commit, ...]:
    """The commits to show. Raises RangeRefused, LogGap, and FeedOff."""
    tip = log.state()
    newest = VersionPoint(tip.version)
    bounds = resolve(log.uri, log.times(tip), Range(newest, newest) if requested.is_everything else requested)
    first = log.earliest() if bounds.first is None else bounds.first
    if first > bounds.last:
        return ()
    if not tip.feed_enabled:
        raise FeedOff(table, log.uri, tip.protocol)
    commits = log.commits(first, bounds.last)
    off = [one.version for one in commits if one.metadata is not None and not one.metadata.feed_enabled]
    if off or not log.state(first).feed_enabled:
        why = f"the change data feed was off at version {first if not off else off[0]}"
        raise RangeRefused(log.uri, why, _BREAK)
    return commits


def _show(rows: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        print(f"[{','.join(rows)}]")  # noqa: T201 the output
        return
    records: list[dict[str, object]] = [json.loads(row, parse_float=str, parse_int=str) for row in rows]
    columns = tuple(records[0]) if records else ()
    show_records("Change feed", columns, [[_text(record[name]) for name in columns] for record in records])


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
