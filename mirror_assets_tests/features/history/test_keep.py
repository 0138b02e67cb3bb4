"""Every row of a feed is kept once: slice by slice, by a stream, by two at once, over every change of the schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from mirror_assets.errors import StopError
from mirror_assets.features.history.errors import HISTORY_COLUMNS_UNFIT, HISTORY_OVERTAKEN, HistoryCode
from mirror_assets.features.history.history_log import HistoryCommit, HistoryContext, HistoryLog
from mirror_assets.features.history.history_plan import HistoryPlan, plan_history
from mirror_assets.features.history.with_spark import stream
from mirror_assets.features.history.with_spark.append import append_rows, next_commit
from mirror_assets.features.history.with_spark.keep import keep_history
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE
from mirror_assets.source.ranges import VersionPoint
from mirror_assets_tests.delta_reader import read_changes
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.features.history.sources import Place, keep, kept_rows, ranges
from mirror_assets_tests.scans import scanned_changes
from mirror_assets_tests.spark_4 import IS_SPARK_4

_PROPERTIES = (
    "delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true, delta.enableTypeWidening = true, "
    "'delta.columnMapping.mode' = 'name', 'delta.feature.timestampNtz' = 'supported'"
)
_STATEMENTS = (
    f"CREATE TABLE {{t}} (id INT, name STRING) USING delta TBLPROPERTIES ({_PROPERTIES})",
    "INSERT INTO {t} SELECT /*+ REPARTITION(3) */ CAST(id AS INT), concat('n', id) FROM range(30)",
    "DELETE FROM {t} WHERE id < 5",
    "INSERT OVERWRITE {t} SELECT /*+ REPARTITION(3) */ id + 1, name FROM {t}",
    "ALTER TABLE {t} ADD COLUMNS (`two words` INT, at TIMESTAMP_NTZ)",
    "ALTER TABLE {t} RENAME COLUMN name TO label",
    "INSERT INTO {t} VALUES (100, 'more', 7, TIMESTAMP_NTZ '2026-01-31 18:30:00')",
    "UPDATE {t} SET label = 'renamed' WHERE id = 100",
)


_BY_BOTH = pytest.mark.parametrize("stream", [False, True], ids=["slices", "stream"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def rows_of(frame: DataFrame) -> Counter[tuple[object, ...]]:
    """How often each row is there; columns by name, without those that it does not have."""
    names = sorted(frame.columns)
    frame = frame.select(*(F.col(f"`{name}`").cast("string") for name in names))
    return Counter(
        tuple((name, value) for name, value in zip(names, row, strict=True) if value is not None)
        for row in frame.collect()
    )


def feed_of(spark: SparkSession, place: Place, *ranges: tuple[int, int]) -> Counter[tuple[object, ...]]:
    """What `readChangeFeed` gives of the source, range by range, with the table's id."""
    identity = str(DeltaTable(place.source).metadata().id)
    feeds = [read_changes(spark, place.source, first, last) for first, last in ranges]
    return sum((rows_of(feed.withColumn("_table_id", F.lit(identity))) for feed in feeds), Counter())


def versions_of(spark: SparkSession, context: HistoryContext) -> list[int]:
    """The versions of all rows that are kept, in order."""
    return [row[0] for row in kept_rows(spark, context).select("_commit_version").orderBy("_commit_version").collect()]


@pytest.mark.long(20)
def test_slices_and_stream_keep_what_the_feed_has_over_every_kind_of_change(spark: SparkSession, place: Place) -> None:
    for statement in _STATEMENTS:
        spark.sql(statement.format(t=f"delta.`{place.source}`"))
    by_slices = place.context(lambda: spark, name="slices", max_commits=3)
    by_stream = place.context(lambda: spark, name="stream", stream=True)
    assert ranges(keep(by_slices)) == [(0, 2), (3, 3), (4, 4), (5, 7)]
    # A stream reads one schema only: what comes before the newest is kept by slices.
    assert ranges(keep(by_stream)) == [(0, 3), (4, 4), (5, 6), (7, 7)]
    expected = feed_of(spark, place, (0, 3), (5, 7))
    assert rows_of(kept_rows(spark, by_slices)) == rows_of(kept_rows(spark, by_stream)) == expected
    assert DeltaTable(by_slices.history.uri).metadata().configuration["delta.appendOnly"] == "true"
    if IS_SPARK_4:
        _widen(spark, place, by_slices)


def _widen(spark: SparkSession, place: Place, context: HistoryContext) -> None:
    """A type that grew is kept when the history may widen its own, and not before."""
    spark.sql(f"ALTER TABLE delta.`{place.source}` ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"UPDATE delta.`{place.source}` SET id = 5000000000 WHERE id = 100")
    with raises_row(HISTORY_COLUMNS_UNFIT, match=r"versions 8 to 9 .*'id' and 'id'.*enableTypeWidening"):
        keep(context)
    spark.sql(f"ALTER TABLE delta.`{context.history.uri}` SET TBLPROPERTIES (delta.enableTypeWidening = true)")
    assert ranges(keep(context)) == [(8, 9)]
    ids = kept_rows(spark, context).where("_commit_version = 9").select("id").collect()
    assert sorted(row[0] for row in ids) == [100, 5_000_000_000]


def test_what_is_kept_is_not_kept_again_and_a_quiet_source_leaves_no_commit(spark: SparkSession, place: Place) -> None:
    place.create()
    place.update(1)
    context = place.context(lambda: spark)
    assert ranges(keep(context)) == [(0, 1)]
    assert keep(place.context()) == []  # no Spark is needed to know
    spark.sql(f"ALTER TABLE delta.`{context.history.uri}` SET TBLPROPERTIES (mine = 'yes')")
    keep(context)
    newest = context.history.newest()
    assert newest is not None
    # After a commit of another writer, the history commits its state again, once: cleanup may delete the older entry.
    assert (newest.generation, newest.first, newest.last, newest.rows) == (2, 2, 1, 0)
    keep(place.context())
    place.append(9)
    assert ranges(keep(context)) == [(2, 2)]
    assert versions_of(spark, context) == [0, 0, 0, 1, 1, 2]


def test_a_run_that_planned_before_another_kept_something_keeps_none_of_it_twice(
    spark: SparkSession, place: Place
) -> None:
    place.create()
    context = place.context(lambda: spark)
    (first,) = keep(context)
    place.append(10)
    place.append(11)
    late = next_commit(first, first.table_id, 1, 2)
    rows = scanned_changes(spark, place.source, 1, 2)
    # Of the two commits the other run has kept one, so that the late one has more to keep, too.
    assert ranges([next(keep_history(place.context(lambda: spark, max_commits=1), print))]) == [(1, 1)]
    with raises_row(HISTORY_OVERTAKEN, match="another run has committed generation 2"):
        append_rows(rows, context.history, late)
    assert ranges(keep(context)) == [(2, 2)]
    assert versions_of(spark, context) == [0, 0, 0, 1, 2]


@_BY_BOTH
def test_runs_at_the_same_time_keep_every_commit_once(spark: SparkSession, place: Place, *, stream: bool) -> None:
    place.create()
    for identity in range(6):
        place.append(10 + identity)

    def run(commits: int) -> list[HistoryCommit]:
        return keep(place.context(lambda: spark, max_commits=commits, stream=stream))

    with ThreadPoolExecutor(2) as pool:
        kept = [slice_ for slices in pool.map(run, (2, 3)) for slice_ in slices]
    assert versions_of(spark, place.context()) == [0, 0, 0, 1, 2, 3, 4, 5, 6]
    in_order = sorted(kept, key=lambda slice_: slice_.generation)
    assert [slice_.generation for slice_ in in_order] == list(range(1, len(kept) + 1))
    assert [v for first, last in ranges(in_order) for v in range(first, last + 1)] == list(range(7))


@_BY_BOTH
def test_commits_whose_files_are_gone_are_a_gap_that_one_can_accept(
    spark: SparkSession, place: Place, *, stream: bool
) -> None:
    place.create()
    context = place.context(lambda: spark, stream=stream)
    keep(context)
    place.append(10)
    for file in set(Path(place.source).glob("*.parquet")):
        file.unlink()
    place.append(11)
    with raises(StopError, HistoryCode.HISTORY_GAP, match=r"version 1 can't be read .*--skip-to 2"):
        keep(context)
    assert ranges(keep(context, skip_to=2)) == [(2, 2)]
    assert versions_of(spark, context) == [0, 0, 0, 2]


def as_of(spark: SparkSession, context: HistoryContext, version: int) -> list[Row]:
    """The rows that the page's question for a time gives, asked for a version."""
    page = (Path(__file__).parents[3] / "docs" / "history.md").read_text()
    (question,) = (sql for sql in page.partition("```sql\n")[2].partition("```")[0].split("\n\n") if "PARTITION" in sql)
    question = question.replace("order_id", "id").replace("history/sales.schema/orders", context.history.uri)
    then = question.replace("_commit_timestamp <= '2026-01-31 18:30:00'", f"_commit_version <= {version}")
    return sorted(spark.sql(then).select("id", "name").collect())


def of_source(spark: SparkSession, place: Place, version: int) -> list[Row]:
    """The source at the version."""
    return sorted(spark.read.format("delta").option("versionAsOf", version).load(place.source).collect())


def test_the_pages_question_for_a_time_gives_the_table_of_then(spark: SparkSession, place: Place) -> None:
    place.create()
    place.update(1)
    place.delete(2)
    place.append(10)
    context = place.context(lambda: spark)
    keep(context)
    for version in (0, 1, 2, 3):
        assert as_of(spark, context, version) == of_source(spark, place, version)


@_BY_BOTH
def test_a_history_of_a_feed_switched_on_late_has_the_whole_table_as_of_every_version_from_its_start(
    spark: SparkSession, place: Place, *, stream: bool
) -> None:
    place.create(feed=False)
    place.append(10)
    place.set(delta__enableChangeDataFeed="true")  # version 2
    place.update(1)
    context = place.context(lambda: spark, stream=stream)
    assert ranges(keep(context)) == [(2, 2), (3, 3)]
    place.delete(2)
    place.append(11)
    assert ranges(keep(context)) == ([(4, 4), (5, 5)] if stream else [(4, 5)])
    for version in (2, 3, 4, 5):
        assert as_of(spark, context, version) == of_source(spark, place, version)
    begun = kept_rows(spark, context).where("_commit_version = 2").select("_change_type", "_commit_timestamp").collect()
    times = {row[1].timestamp() for row in begun}
    dated = place.context().source
    assert ([row[0] for row in begun], times) == (["insert"] * 4, {dated.times(dated.state()).at(2) / 1000})


@_BY_BOTH
def test_a_history_may_start_at_a_version_or_with_the_earliest_commit_and_has_no_rows_from_before(
    spark: SparkSession, place: Place, *, stream: bool
) -> None:
    place.create(feed=False)
    place.set(delta__enableChangeDataFeed="true")
    place.append(10)
    place.append(11)
    chosen = place.context(lambda: spark, name="chosen", stream=stream, start=VersionPoint(3))
    assert ranges(keep(chosen)) == [(3, 3)]
    earliest = place.context(lambda: spark, name="earliest", stream=stream, snapshot=False)
    assert ranges(keep(earliest)) == ([(1, 2), (3, 3)] if stream else [(1, 3)])
    assert (versions_of(spark, chosen), versions_of(spark, earliest)) == ([3], [2, 3])


def after_each_plan(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], None]) -> None:
    """Let something happen to the source when a plan has been made."""

    def overtaken(context: HistoryContext, newest: HistoryCommit | None, skip_to: int | None) -> HistoryPlan:
        found = plan_history(context, newest, skip_to)
        happen()
        return found

    monkeypatch.setattr("mirror_assets.features.history.with_spark.keep.plan_history", overtaken)


def test_a_stream_that_a_new_schema_stops_is_started_again(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create()
    context = place.context(lambda: spark, stream=True)
    # Delta 3.2 asks for the versions of the protocol.
    mapped = "delta.columnMapping.mode = 'name', delta.minReaderVersion = 2, delta.minWriterVersion = 5"
    spark.sql(f"ALTER TABLE delta.`{place.source}` SET TBLPROPERTIES ({mapped})")
    spark.sql(f"INSERT INTO delta.`{place.source}` VALUES (4, 'n4')")
    said: list[str] = []

    def rename() -> None:
        if DeltaTable(place.source).version() == 2:
            spark.sql(f"ALTER TABLE delta.`{place.source}` RENAME COLUMN name TO label")

    after_each_plan(monkeypatch, rename)
    kept = list(keep_history(context, said.append))
    assert ranges(kept) == [(0, 0), (1, 2), (3, 3)]
    assert sum("the stream could not continue" in line for line in said) == 1
    assert versions_of(spark, context) == [0, 0, 0, 2]


def test_a_source_with_the_historys_own_column_is_refused(spark: SparkSession, place: Place) -> None:
    place.create()
    place.append(10, _Table_ID=pa.array(["x"]))
    context = place.context(lambda: spark)
    with raises_row(HISTORY_COLUMNS_UNFIT, match="a column `_Table_ID`, which is the history's own"):
        keep(context)
    assert versions_of(spark, context) == [0, 0, 0]


def test_a_stream_keeps_no_more_than_was_planned_for(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create()
    context = place.context(lambda: spark, stream=True)

    def append() -> None:
        if DeltaTable(place.source).version() < 2:
            place.append(20, more=pa.array([1.5]))

    after_each_plan(monkeypatch, append)
    assert ranges(keep(context)) == [(0, 0), (1, 1), (2, 2)]
    assert versions_of(spark, context) == [0, 0, 0, 1, 2]


_MANY_FILES = (
    "CREATE TABLE {t} (id INT, part STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    "INSERT INTO {t} SELECT /*+ REPARTITION(5, id) */ CAST(id AS INT), IF(id % 2 = 0, 'a', 'b') FROM range(40)",
    "DELETE FROM {t} WHERE id < 5",
    "OPTIMIZE {t}",
    "INSERT INTO {t} SELECT /*+ REPARTITION(5, id) */ CAST(id + 100 AS INT), 'a' FROM range(40)",
)


@pytest.fixture
def histories(spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch) -> tuple[HistoryContext, ...]:
    """Histories by slices and, not begun, by a stream of one file a batch; two of five versions insert many files."""
    for statement in _MANY_FILES:
        spark.sql(statement.format(t=f"delta.`{place.source}`"))
    monkeypatch.setattr(stream, "_FILES_PER_BATCH", 1)
    by_slices = place.context(lambda: spark, name="slices")
    keep(by_slices)
    return by_slices, place.context(lambda: spark, name="stream", stream=True)


def test_a_commit_that_is_spread_over_several_batches_is_kept_whole(
    spark: SparkSession, histories: tuple[HistoryContext, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_slices, by_stream = histories
    batches: list[int] = []
    take = stream._Batches._take

    def counted(self: stream._Batches, rows: DataFrame) -> None:
        batches.append(len({row[0] for row in rows.select("_commit_version").collect()}))
        take(self, rows)

    monkeypatch.setattr(stream._Batches, "_take", counted)
    kept = keep(by_stream)
    assert len(batches) > len(_MANY_FILES)  # some commit came in several batches
    assert [v for first, last in ranges(kept) for v in range(first, last + 1)] == [0, 1, 2, 3, 4]
    assert len(kept) > 1
    assert rows_of(kept_rows(spark, by_stream)) == rows_of(kept_rows(spark, by_slices))


def test_a_stream_that_dies_while_it_holds_half_a_commit_loses_and_doubles_nothing(
    spark: SparkSession, histories: tuple[HistoryContext, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_slices, by_stream = histories

    def die_behind_the_first(rows: DataFrame, history: HistoryLog, commit: HistoryCommit) -> HistoryCommit:
        if commit.generation > 1:
            raise SOURCE_UNAVAILABLE(uri=history.uri, why="killed")
        return append_rows(rows, history, commit)

    with monkeypatch.context() as killed:
        killed.setattr(stream, "append_rows", die_behind_the_first)
        with raises_row(SOURCE_UNAVAILABLE):
            keep(by_stream)
    assert ranges(keep(by_stream))[-1][1] == 4
    assert rows_of(kept_rows(spark, by_stream)) == rows_of(kept_rows(spark, by_slices))
