"""Catalog-managed tables from end to end: random histories, every way of changes, checks, and other readers."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.features.history.history_log import HistoryContext, HistoryLog
from mirror_assets.features.history.with_spark.keep import keep_history
from mirror_assets.lakes.catalogs import KnownLocations
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE
from mirror_assets.pipeline.repair_table import repair_table
from mirror_assets.source.batching import Limits
from mirror_assets.spark_api import arrow_table
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests import figures
from mirror_assets_tests.delta_reader import read_changes
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landed_rows import rows_of, source_rows
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.histories.history import SALT, Way
from mirror_assets_tests.worlds.unity.histories import ManagedHistory, ManagedLab
from mirror_assets_tests.worlds.unity.managed import ManagedTable
from mirror_assets_tests.worlds.unity.server import LoopbackUnity

_MANY = tuple((number, tuple(Way)[number % len(Way)]) for number in range(36))


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("number", "way"), _MANY, ids=lambda value: getattr(value, "value", value))
def test_many_long_histories_end_equal_to_their_source(
    adaptive_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    unity: LoopbackUnity,
    number: int,
    way: Way,
) -> None:
    monkeypatch.setenv("SALT", SALT)
    seed = int(request.config.getoption("--hypothesis-seed") or 0) + number
    outcome = ManagedHistory(adaptive_spark, tmp_path, seed, way, unity).run(bursts=8)
    for figure, amount in outcome.figures.items():
        figures.report("histories of managed tables", figure, amount, case=way.value)
    assert outcome.failure is None, "\n".join([outcome.failure or "", *outcome.steps])


_CREATE = (
    (
        "CREATE TABLE {t} (id INT, name STRING, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES "
        "(delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true, delta.enableRowTracking = true, "
        "delta.checkpointPolicy = 'v2', delta.checkpointInterval = 3)"
    ),
    "INSERT INTO {t} SELECT /*+ REPARTITION(4) */ CAST(id AS INT), concat('n', id), 'a b/%' FROM range(12)",
)
_CHANGES = (
    "DELETE FROM {t} WHERE id IN (1, 2)",
    "UPDATE {t} SET name = 'changed' WHERE id = 3",
    (
        "MERGE INTO {t} t USING (SELECT 4 AS id UNION ALL SELECT 77) s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, 'new', NULL)"
    ),
)


def managed_lab(
    spark: SparkSession, root: Path, unity: LoopbackUnity, table: str = ""
) -> tuple[ManagedLab, ManagedTable]:
    """A lab of a table in which Spark has made its first two commits."""
    lab = ManagedLab(spark, root, unity=unity)
    lab.configure(table, "slices: {max_rows: 5}")
    made = lab.managed()
    lab.sql(*_CREATE)
    made.ratify()
    return lab, made


@pytest.mark.long(30)
@pytest.mark.parametrize("changes", smoke_first(["feed", "files", "row_tracking"], 1))
def test_the_load_in_chunks_and_every_way_of_changes(
    spark: SparkSession, tmp_path: Path, unity: LoopbackUnity, changes: str
) -> None:
    lab, made = managed_lab(spark, tmp_path, unity, f"changes: {changes}")
    assert len(lab.mirror()) > 1, "in chunks"
    lab.sql(*_CHANGES)
    made.ratify()
    made.copy_checkpoints()
    made.publish(3, clean=True)
    assert lab.mirror()
    assert lab.is_equal
    assert rows_of(DeltaTable(lab.status.location).to_pyarrow_table(), ("id", "name", "p")) == source_rows(
        spark, made.writer
    )


@pytest.mark.long(30)
def test_reconcile_finds_a_difference_and_repair_lands_it(
    spark: SparkSession, tmp_path: Path, unity: LoopbackUnity
) -> None:
    lab, made = managed_lab(spark, tmp_path, unity)
    lab.mirror()
    lab.sql(*_CHANGES)
    made.ratify()
    made.copy_checkpoints()
    lab.mirror()
    assert lab.is_equal
    DeltaTable(lab.status.location).delete("id = 5")
    DeltaTable(lab.status.location).update({"name": "'other'"}, predicate="id = 3")
    found = lab.compare()
    assert (found.state, found.source_rows, found.mirror_rows) == (ReconcileState.DIFFERENT, 10, 9)
    assert {sample.key for sample in found.samples} == {("3",), ("5",)}
    assert repair_table(lab.context, lab.replicator, lambda _: None)
    assert lab.is_equal


@pytest.mark.long(20)
@pytest.mark.parametrize("stream", smoke_first([False, True], 1), ids=["slices", "stream"])
def test_a_history_has_the_feed(spark: SparkSession, tmp_path: Path, unity: LoopbackUnity, stream: bool) -> None:
    lab, made = managed_lab(spark, tmp_path, unity)
    lab.sql(*_CHANGES)
    made.ratify()
    made.publish(2)
    place = tmp_path / "history"
    limits = Limits(max_commits=2, max_rows=1_000, max_bytes=1 << 30)
    context = HistoryContext("orders", lab.context.log, HistoryLog("orders", str(place)), limits, lambda: spark, stream)
    made_commits = list(keep_history(context, lambda _: None))
    assert [(commit.first, commit.last) for commit in made_commits] == [(0, 1), (2, 3), (4, 4)]
    columns = ("id", "name", "p", "_change_type", "_commit_version")
    kept = rows_of(DeltaTable(str(place)).to_pyarrow_table(), columns)
    feed = read_changes(spark, str(made.writer), 0, 4).select(*columns)
    assert kept == rows_of(arrow_table(feed), columns)
    rows = spark.read.format("delta").load(str(place))
    times = rows.selectExpr("_commit_version", "unix_millis(_commit_timestamp)").distinct().collect()
    assert {row[0]: row[1] for row in times} == {version: made.time_ms(version) for version in (1, 2, 3, 4)}


@pytest.mark.long(20)
def test_an_older_response_stops_a_mirror_and_another_table_is_mirrored_again(
    spark: SparkSession, tmp_path: Path, unity: LoopbackUnity, known_locations: KnownLocations
) -> None:
    lab, _ = managed_lab(spark, tmp_path, unity)
    lab.mirror()
    known_locations.newest.clear()  # as in another process
    unity.alter = lambda loaded: {**loaded, "commits": loaded["commits"][1:], "latest-table-version": 0}
    with raises_row(SOURCE_UNAVAILABLE, match="version 0 is the newest, and version 1 is needed"):
        lab.mirror()
    unity.alter = lambda loaded: loaded
    other = ManagedTable(unity, "main.sales.orders", tmp_path / "other", tmp_path / "managed" / "other")
    spark.sql(
        f"CREATE TABLE delta.`{other.writer}` USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS "
        "SELECT CAST(id AS INT) AS id, 'x' AS name FROM range(3)"
    )
    other.ratify()
    assert lab.manifest().epoch == 1
    lab.mirror()
    assert lab.manifest().epoch == 2
    assert lab.is_equal
