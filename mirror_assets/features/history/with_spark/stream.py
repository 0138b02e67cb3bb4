"""The reader for `history: stream`: a Spark stream that reads what the source has now, and ends.

It differs from `history: slices` in the reader alone: it appends the same rows, by the same commits, after the same
plan. Everything in its checkpoint is also in the history's log, so each stream starts at the next version, with a
checkpoint of its own that is deleted at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.encode.columns import COMMIT_VERSION, projected
from mirror_assets.encode.spark_errors import spark_error
from mirror_assets.errors import MirrorError
from mirror_assets.features.history.errors import HISTORY_OVERTAKEN, STREAM_UNFIT
from mirror_assets.features.history.history_log import HistoryCommit, HistoryContext
from mirror_assets.features.history.history_plan import HistorySlice
from mirror_assets.features.history.with_spark.append import append_nothing, append_rows, next_commit
from mirror_assets.source.errors import SPARK_FAILED, SparkFailed
from mirror_assets.source.schema import ALL_ROWS
from mirror_assets.spark_api import SPARK_ERRORS, is_classic
from mirror_assets.spark_names import spark_path

# Delta's default: Spark's driver holds the list of a batch's files.
_FILES_PER_BATCH = 1_000
_MAX_TEXT = 400


def read_by_stream(
    context: HistoryContext, newest: HistoryCommit | None, slices: Sequence[HistorySlice], made: list[HistoryCommit]
) -> None:
    """Append the feed of these slices, all of one schema, and add each new commit of the history to `made`.

    Raises HISTORY_OVERTAKEN when a new attempt can succeed: the schema has changed meanwhile, or another run was
    faster. Else raises what the stream fails with, and what appending raises.
    """
    if not is_classic(context.spark()):
        raise STREAM_UNFIT(table=context.table)
    batches = _Batches(context, newest, slices, made)
    try:
        _run(context, batches)
    except SPARK_ERRORS as error:
        failure = batches.failure or error
        if isinstance(failure, MirrorError):
            raise failure from error
        if _has_changed(context, newest, slices[-1]):
            raise HISTORY_OVERTAKEN(
                table=context.table, why=f"the stream could not continue: {_reason(error)}"
            ) from error
        known = spark_error(failure, context.source.uri)
        # Every stream fails with one error class, so only the text names the failure.
        raise (
            SPARK_FAILED(place=context.source.uri, why=_reason(failure)) if type(known) is SparkFailed else known
        ) from error
    batches.end()


def _run(context: HistoryContext, batches: _Batches) -> None:
    """Run the stream to the end of the source's log."""
    spark = context.spark()
    reader = spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", batches.next)
    limited = reader.option("maxFilesPerTrigger", _FILES_PER_BATCH)
    rows = projected(limited.load(spark_path(context.source.uri)), ALL_ROWS)
    writer = rows.writeStream.foreachBatch(batches).trigger(availableNow=True)
    with TemporaryDirectory(prefix="mirror-assets-history-", ignore_cleanup_errors=True) as checkpoint:
        query = writer.option("checkpointLocation", spark_path(checkpoint)).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()


def _has_changed(context: HistoryContext, newest: HistoryCommit | None, planned: HistorySlice) -> bool:
    """Return whether the source has another schema or table id than planned, or another run has committed meanwhile.

    A stream ends at another schema.
    """
    tip = context.source.state()
    if (tip.table_id, tip.schema_string) != (planned.table_id, planned.schema_string):
        return True
    return context.history.commit(newest.generation + 1 if newest else 1) is not None


def _reason(error: Exception) -> str:
    """Return why the stream failed, without its query's description."""
    text = str(error).partition("\n")[0]
    return (text.partition("terminated with exception: ")[2] or text)[:_MAX_TEXT].rstrip(".")


class _Batches:
    """Appends the stream's batches: only planned commits, each whole, and each once even if Spark repeats a batch.

    Delta may spread one commit of inserts over several batches. So the newest commit of each batch is held back, on
    Spark's local disks, until a later commit or the end.
    """

    def __init__(
        self,
        context: HistoryContext,
        newest: HistoryCommit | None,
        slices: Sequence[HistorySlice],
        made: list[HistoryCommit],
    ) -> None:
        self._context, self._newest = context, newest
        self._table_id, self._last = slices[0].table_id, slices[-1].last
        self.next = slices[0].first
        self._made = made
        self.failure: Exception | None = None
        self._held: list[DataFrame] = []

    def __call__(self, rows: DataFrame, _: int) -> None:
        """Take a batch. Spark passes on only the text of an exception from here, so the exception itself is stored."""
        try:
            self._take(rows)
        except (MirrorError, *SPARK_ERRORS) as error:
            self.failure = error
            raise

    def end(self) -> None:
        """Append what is held back, and cover planned commits without rows."""
        if self._held:
            self._append([], self._last)
        elif self.next <= self._last:
            commit = next_commit(self._newest, self._table_id, self.next, self._last)
            self._add(append_nothing(self._context.spark(), self._context.history, commit))

    def _take(self, rows: DataFrame) -> None:
        """Append the batch's planned commits, up to its newest or to the one before it, which is held back."""
        version = F.col(COMMIT_VERSION)
        planned = F.when(version.between(self.next, self._last), version)
        last, newest = rows.agg(F.max(planned), F.max(version)).collect()[0]
        if last is None:
            return
        if newest > last:
            self._append([rows], last)
            return
        if last > self.next:
            self._append([rows], last - 1)
        self._held.append(rows.where(version == last).localCheckpoint())

    def _append(self, frames: Sequence[DataFrame], last: int) -> None:
        """Append the rows of the next commits up to `last`, with those held back of the first of them."""
        rows = reduce(DataFrame.unionByName, [*self._held, *frames])
        commit = next_commit(self._newest, self._table_id, self.next, last)
        self._add(
            append_rows(rows.where(F.col(COMMIT_VERSION).between(self.next, last)), self._context.history, commit)
        )
        self._held = []

    def _add(self, commit: HistoryCommit) -> None:
        self._made.append(commit)
        self._newest, self.next = commit, commit.last + 1
