"""Copies a source's change data feed into its history until nothing is left, each commit once (docs/history.md).

`history: slices` and `history: stream` differ in their reader only: each reader appends the rows of the planned commits
after the newest commit of the history, and returns the commits that it made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.errors import MirrorError
from mirror_assets.features.history.errors import HISTORY_OVERTAKEN, HistoryUnknown
from mirror_assets.features.history.history_log import HistoryCommit, HistoryContext
from mirror_assets.features.history.history_plan import HistoryPlan, HistorySlice, lost_behind, plan_history
from mirror_assets.features.history.with_spark.append import append_nothing, append_rows, next_commit
from mirror_assets.features.history.with_spark.stream import read_by_stream
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.errors import SourceLoss
from mirror_assets.source.losses import SourceRead, proved
from mirror_assets.source.scan_builder import scan_changes, scan_version
from mirror_assets.telemetry.progress import expect, working


def keep_history(
    context: HistoryContext, report: Callable[[str], None], skip_to: int | None = None
) -> Iterator[HistoryCommit]:
    """Yield each commit of the history after it is made, up to the source's newest version.

    `skip_to` continues at that version and leaves out the commits before it. When another run commits first, this one
    plans again. Raises HISTORY_GAP and HISTORY_FEED_OFF after everything before the gap is stored, HistoryColumnsUnfit,
    HISTORY_AHEAD, HistoryUnknown, NO_HISTORY, and what reading the source raises.
    """
    while True:
        try:
            newest = context.history.newest()
        except HistoryUnknown as error:
            if skip_to is None:
                raise
            newest = HistoryCommit(error.generation, table_id="", first=0, last=-1, attempt="")
        try:
            plan = plan_history(context, newest, skip_to)
            yield from _append_slices(context, newest, plan, report)
            if plan.stop is not None:
                raise plan.stop
            if plan.is_whole and not plan.slices:
                if newest is not None and not context.history.is_newest(newest):
                    # Commits of others would outlive ours in the log of a quiet source: repeat what is covered.
                    again = next_commit(newest, newest.table_id, newest.last + 1, newest.last)
                    append_nothing(context.spark(), context.history, again)
                return
        except HISTORY_OVERTAKEN.error as error:
            report(error.what)


def _append_slices(
    context: HistoryContext, newest: HistoryCommit | None, plan: HistoryPlan, report: Callable[[str], None]
) -> Iterator[HistoryCommit]:
    """Read and append the planned slices. A stream reads one schema, so it reads the last slices that share one."""
    groups = [
        list(group) for _, group in groupby(plan.slices, lambda one: (one.table_id, one.schema_string, one.snapshot_ms))
    ]
    expect(context.table, [planned.rows for planned in plan.slices])
    for number, slices in enumerate(groups, start=1):
        report(f"{context.table}: versions {slices[0].first} to {slices[-1].last}, {sum(x.rows for x in slices)} rows")
        is_last, is_feed = number == len(groups), slices[0].snapshot_ms is None
        # Delta's stream reads a log without the commits of its catalog, and to its end.
        can_stream = context.stream and not context.source.is_managed
        is_streamed = can_stream and plan.is_whole and plan.stop is None and is_last and is_feed
        for part in [slices] if is_streamed else [[one] for one in slices]:
            read = read_by_stream if is_streamed else _read_by_batch
            if is_streamed:
                expect(context.table, [sum(planned.rows for planned in part)])
            losses = _losses_translated(context, part[0].first, part[-1].last, is_feed=is_feed)
            made = list[HistoryCommit]()
            try:
                with working(context.table), losses:
                    read(context, newest, part, made)
            except MirrorError:
                yield from made  # a stream may have made some before it failed
                raise
            yield from made
            newest = made[-1]


def _read_by_batch(
    context: HistoryContext, newest: HistoryCommit | None, slices: Sequence[HistorySlice], made: list[HistoryCommit]
) -> None:
    """Append the feed of one slice, or a snapshot as the feed of a commit that inserts all its rows, as one commit."""
    (planned,) = slices
    source, first, last = context.source, planned.first, planned.last
    with spark_errors(source.uri):
        if planned.snapshot_ms is None:
            times = source.times(source.state())
            times_ms = {version: times.at(version) for version in range(first, last + 1)}
            scan = scan_changes(source, CommitRange(first, last, planned.table_id), times_ms=times_ms)
            rows = read_scan(context.spark(), scan)
        else:
            rows = read_scan(context.spark(), scan_version(source, last)).withColumns(
                {
                    CHANGE_TYPE: F.lit("insert"),
                    COMMIT_VERSION: F.lit(last).cast("bigint"),
                    COMMIT_TIMESTAMP: F.timestamp_millis(F.lit(planned.snapshot_ms)),
                }
            )
        made.append(append_rows(rows, context.history, next_commit(newest, planned.table_id, first, last)))


@contextmanager
def _losses_translated(context: HistoryContext, first: int, last: int, *, is_feed: bool) -> Iterator[None]:
    """Raise HISTORY_GAP when the block fails because the source has lost commits `first` to `last` or their files."""
    try:
        yield
    except MirrorError as error:
        meant = proved(context.table, context.source, SourceRead(first, last, () if is_feed else (last,)), error)
        if isinstance(meant, SourceLoss):
            raise lost_behind(context, first, last, meant.what.rstrip(".")) from error
        if meant is error:
            raise
        raise meant from error
