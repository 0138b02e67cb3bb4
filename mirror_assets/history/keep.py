"""Keeps a source's feed until nothing is left: each commit once, however often and by however many it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby

from mirror_assets.delta.losses import DataFileMissing, FeedMissing, HistoryExpired
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.direct_lake.table.losses import SourceRead, proved
from mirror_assets.errors import MirrorError
from mirror_assets.history.append import append_nothing, append_rows, next_slice
from mirror_assets.history.errors import HistoryMoved, HistoryUnknown, StreamBegunAgain
from mirror_assets.history.plan import HistoryPlan, HistorySlice, lost_behind, plan_history
from mirror_assets.history.record import Kept
from mirror_assets.history.stream import stream_slices
from mirror_assets.history.work import HistoryContext


def keep_history(context: HistoryContext, report: Callable[[str], None], skip_to: int | None = None) -> Iterator[Kept]:
    """Each slice as it has been kept, up to the source's tip.

    `skip_to` goes on at a version though commits before it are not kept, and never will be. Where another run is ahead,
    it plans again. Raises HistoryGap and HistoryFeedOff, with what could be kept before kept, HistoryColumnsUnfit,
    HistoryAhead, HistoryUnknown, NoHistory, and what reading the source raises.
    """
    while True:
        try:
            newest = _newest(context, skip_to)
            plan = plan_history(context, newest, skip_to)
            yield from _keep(context, newest, plan, report)
            if plan.stop is not None:
                raise plan.stop
            if not plan.slices:
                _say_again(context, newest)
                return
        except (HistoryMoved, StreamBegunAgain) as error:
            report(error.what)


def _newest(context: HistoryContext, skip_to: int | None) -> Kept | None:
    """The newest slice; where the log has lost it, and the person says where to go on, only its generation."""
    try:
        return context.history.newest()
    except HistoryUnknown as error:
        if skip_to is None:
            raise
        return Kept(error.generation, table_id="", first=0, last=-1, attempt="")


def _keep(
    context: HistoryContext, newest: Kept | None, plan: HistoryPlan, report: Callable[[str], None]
) -> Iterator[Kept]:
    """The planned slices; by a stream the last of those that share a schema, which is all that a stream can read."""
    stretches = [list(of) for _, of in groupby(plan.slices, lambda one: (one.table_id, one.schema_string))]
    for number, slices in enumerate(stretches, start=1):
        report(f"{context.table}: versions {slices[0].first} to {slices[-1].last}, {sum(x.rows for x in slices)} rows")
        if context.checkpoints is not None and number == len(stretches) and plan.stop is None:
            with _reading(context, slices[0].first, slices[-1].last):
                kept = stream_slices(context, context.checkpoints.take(newest), newest, slices)
            yield from kept
            return
        for planned in slices:
            newest = _keep_slice(context, newest, planned)
            yield newest


def _keep_slice(context: HistoryContext, newest: Kept | None, planned: HistorySlice) -> Kept:
    """One slice, read and appended."""
    uri, first, last = context.source.uri, planned.first, planned.last
    with _reading(context, first, last), spark_errors(uri):
        rows = read_changes(context.spark(), uri, first, last, planned.vector_versions)
        return append_rows(rows, context.history, next_slice(newest, planned.table_id, first, last))


@contextmanager
def _reading(context: HistoryContext, first: int, last: int) -> Iterator[None]:
    """Raise HistoryGap for what the source has lost of the commits that are read in the block, though it names it."""
    try:
        yield
    except MirrorError as error:
        meant = proved(context.table, context.source, SourceRead(first, last), error)
        if isinstance(meant, DataFileMissing | FeedMissing | HistoryExpired):
            raise lost_behind(context, first, last, meant.what.rstrip(".")) from error
        if meant is error:
            raise
        raise meant from error


def _say_again(context: HistoryContext, newest: Kept | None) -> None:
    """Keep an empty slice where others have committed since: their commits outlive ours while the source is quiet."""
    if newest is not None and not context.history.is_newest(newest):
        again = next_slice(newest, newest.table_id, newest.last + 1, newest.last)
        append_nothing(context.spark(), context.history, again)
