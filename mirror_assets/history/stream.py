"""Keeps the history by a Spark stream that takes what is there and ends: row for row what slices keep."""

from __future__ import annotations

from collections.abc import Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.delta.feed_columns import COMMIT_VERSION
from mirror_assets.delta.losses import SparkFailed
from mirror_assets.delta.spark_errors import spark_error
from mirror_assets.errors import MirrorError
from mirror_assets.history.append import append_nothing, append_rows, next_slice
from mirror_assets.history.checkpoint import Checkpoint
from mirror_assets.history.errors import StreamBegunAgain, StreamNeedsClassicSession
from mirror_assets.history.plan import HistorySlice
from mirror_assets.history.record import Kept
from mirror_assets.history.work import HistoryContext

# Else a commit of many files would come in several batches, and a batch is kept as whole commits.
_ALL_FILES = 2**31 - 1
_MAX_TEXT = 400


def stream_slices(
    context: HistoryContext, checkpoint: Checkpoint, newest: Kept | None, slices: Sequence[HistorySlice]
) -> Sequence[Kept]:
    """What a stream over these commits, all of one schema, keeps behind the newest slice.

    A checkpoint with which the stream fails is thrown away. Raises StreamBegunAgain when that was an earlier stream's,
    when the schema has changed meanwhile, or when another run was ahead: the stream is to begin anew behind what is
    kept by then. Raises what a new stream fails with else, what appending raises, and StreamNeedsClassicSession.
    """
    batches = _Batches(context, newest, slices)
    try:
        _run(context, checkpoint, batches)
    except (PySparkException, Py4JJavaError) as error:
        checkpoint.discard()
        if batches.error is not None:
            raise batches.error from error
        if checkpoint.goes_on or _is_another_by_now(context, slices[-1]) or _is_overtaken(context, newest):
            raise StreamBegunAgain(context.table, _why(error)) from error
        raise _failure(batches.failure or error, context.source.uri) from error
    batches.end(checkpoint)
    return batches.kept


def _is_another_by_now(context: HistoryContext, planned: HistorySlice) -> bool:
    """Whether the source has another schema, or is another table, since the slice was planned: streams end there."""
    tip = context.source.state()
    return (tip.table_id, tip.schema_string) != (planned.table_id, planned.schema_string)


def _is_overtaken(context: HistoryContext, newest: Kept | None) -> bool:
    """Whether a slice has come behind the newest: who keeps one clears away the checkpoints of others."""
    return context.history.kept(newest.generation + 1 if newest else 1) is not None


def _run(context: HistoryContext, checkpoint: Checkpoint, batches: _Batches) -> None:
    """Run the stream over all that is in the source's log, to its end."""
    spark = context.spark()
    if not hasattr(spark, "_jsparkSession"):
        raise StreamNeedsClassicSession(context.table)
    reader = spark.readStream.format("delta").option("readChangeFeed", "true")
    rows = reader.option("startingVersion", batches.next).option("maxFilesPerTrigger", _ALL_FILES)
    writer = rows.load(context.source.uri).writeStream.foreachBatch(batches)
    query = writer.option("checkpointLocation", checkpoint.location).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _failure(error: Exception, uri: str) -> MirrorError:
    """The error of ours: every stream fails with the same condition, so what is behind it is told."""
    told = spark_error(error, uri)
    return SparkFailed(uri, _why(error)) if type(told) is SparkFailed else told


def _why(error: Exception) -> str:
    """Why the stream failed, without its query's description."""
    text = str(error).partition("\n")[0]
    return (text.partition("terminated with exception: ")[2] or text)[:_MAX_TEXT]


class _Batches:
    """Keeps the stream's batches: what was planned of them, and nothing twice, for a batch may come again."""

    def __init__(self, context: HistoryContext, newest: Kept | None, slices: Sequence[HistorySlice]) -> None:
        self._context, self._newest = context, newest
        self._table_id, self._last = slices[0].table_id, slices[-1].last
        self.next = slices[0].first
        self.kept: list[Kept] = []
        self.error: MirrorError | None = None
        self.failure: Exception | None = None
        self._went_past = False

    def __call__(self, rows: DataFrame, _: int) -> None:
        """Keep a batch. Spark tells only the text of what is raised here, so the error, or failure, stays at hand."""
        try:
            self._keep(rows)
        except MirrorError as error:
            self.error = error
            raise
        except (PySparkException, Py4JJavaError) as error:
            self.failure = error
            raise

    def end(self, checkpoint: Checkpoint) -> None:
        """Keep that there is no row behind the last batch; leave the checkpoint for the next stream if it stands there.

        It does not when the stream has gone past the plan: rows of commits made meanwhile were not kept.
        """
        if self.next <= self._last:
            slice_ = next_slice(self._newest, self._table_id, self.next, self._last)
            self._add(append_nothing(self._context.spark(), self._context.history, slice_))
        if self._went_past or self._newest is None:
            checkpoint.discard()
        else:
            checkpoint.leave(self._newest)

    def _keep(self, rows: DataFrame) -> None:
        version = F.col(COMMIT_VERSION)
        planned = F.when(version.between(self.next, self._last), version)
        found = rows.agg(F.max(planned), F.max(version)).first()
        last, newest = (found[0], found[1]) if found else (None, None)
        self._went_past = self._went_past or (newest is not None and newest > self._last)
        if last is not None:
            slice_ = next_slice(self._newest, self._table_id, self.next, last)
            self._add(append_rows(rows.where(version.between(self.next, last)), self._context.history, slice_))

    def _add(self, kept: Kept) -> None:
        self.kept.append(kept)
        self._newest, self.next = kept, kept.last + 1
