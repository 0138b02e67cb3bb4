"""What the log says of commits written by Spark, against what Spark's own change feed yields for them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.source.batching import Limits
from mirror_assets.source.breaks import BreakKind, Needs
from mirror_assets.source.commits import Commit
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.planner import Plan, PlanRequest, plan_slices

_INSERT = "INSERT INTO {t} SELECT id, 1, CAST(id % 2 AS INT) FROM range(0, 40, 1, 1)"
_DELETE = "DELETE FROM {t} WHERE id IN (3, 4)"
_MERGE = (
    "MERGE INTO {t} t USING (SELECT id + 30 id FROM range(15)) s ON t.id = s.id WHEN MATCHED AND t.id = 32 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET a = 0 WHEN NOT MATCHED THEN INSERT (id, a, p) VALUES (s.id, 1, 0)"
)
_MERGE_OF_NOTHING = (
    "MERGE INTO {t} t USING (SELECT id FROM range(9)) s ON t.id = s.id WHEN MATCHED AND t.a > 100 THEN DELETE "
    "WHEN NOT MATCHED AND s.id < 0 THEN INSERT (id, a, p) VALUES (s.id, 1, 0)"
)
_REPLACE_ROWS = "INSERT INTO {t} REPLACE WHERE id = 2 SELECT id, 1, 0 FROM range(2, 3)"
_OF_WHOLE_FILES = (
    "OPTIMIZE {t}",
    "DELETE FROM {t} WHERE p = 1",
    "INSERT OVERWRITE {t} SELECT id, 1, 0 FROM range(5)",
    "RESTORE {t} TO VERSION AS OF 2",
    "ALTER TABLE {t} ADD COLUMN c STRING",
)


@dataclass(frozen=True)
class _Source:
    log: DeltaLog
    commits: tuple[Commit, ...]
    feed: dict[int, int]


def _create(spark: SparkSession, path: Path, columns: str, partition: str = "", **properties: str) -> str:
    table = f"delta.`{path}`"
    listed = ", ".join(
        f"'delta.{name}' = '{value}'" for name, value in {"enableChangeDataFeed": "true", **properties}.items()
    )
    spark.sql(f"CREATE TABLE {table} ({columns}) USING delta {partition} TBLPROPERTIES ({listed})")
    return table


def _run(spark: SparkSession, table: str, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement.format(t=table))


def _read(spark: SparkSession, path: Path) -> _Source:
    log = DeltaLog(str(path))
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(str(path))
    counts = {row[0]: row[1] for row in feed.groupBy(F.col("_commit_version")).count().collect()}
    return _Source(log, log.commits(0, log.state().version), counts)


def _written(spark: SparkSession, path: Path, vectors: str, statements: Sequence[str]) -> _Source:
    columns = "id BIGINT, a INT, p INT"
    table = _create(spark, path, columns, "PARTITIONED BY (p)", enableDeletionVectors=vectors)
    _run(spark, table, *statements)
    source = _read(spark, path)
    exact = {commit.version: commit.rows for commit in source.commits if commit.rows_exact}
    assert all(exact.get(version, rows) == rows for version, rows in source.feed.items())
    for commit in source.commits:
        # Change files have no statistics; their rows are estimated by bytes. Delta's feed leaves a MERGE out if its
        # metrics say that nothing happened, though its actions replace files.
        assert commit.rows_exact is not commit.has_cdc
        assert commit.changes_data is (commit.version in source.feed) or commit.operation == "MERGE"
    return source


def test_rows_of_commits_with_change_files_are_those_of_the_feed(spark: SparkSession, tmp_path: Path) -> None:
    update = "UPDATE {t} SET a = a + 1, p = 1 - p WHERE id < 7"
    statements = (_INSERT, update, _DELETE, _MERGE, _REPLACE_ROWS, _MERGE_OF_NOTHING)
    commits = _written(spark, tmp_path, "false", statements).commits
    assert [commit.has_cdc for commit in commits] == [False, False, True, True, True, True, False]
    assert [commit.operation for commit in commits if not commit.changes_data] == ["CREATE TABLE"]


def test_rows_of_commits_with_deletion_vectors_are_those_of_the_feed(spark: SparkSession, tmp_path: Path) -> None:
    statements = (_INSERT, _DELETE, _REPLACE_ROWS, *_OF_WHOLE_FILES)
    commits = _written(spark, tmp_path, "true", statements).commits
    assert not any(commit.has_cdc for commit in commits)
    idle = [commit.operation for commit in commits if not commit.changes_data]
    assert idle == ["CREATE TABLE", "OPTIMIZE", "ADD COLUMNS"]


def test_live_rows_of_a_table_with_deletion_vectors(spark: SparkSession, tmp_path: Path) -> None:
    table = _create(spark, tmp_path, "id BIGINT", enableDeletionVectors="true")
    spark.range(0, 10, 1, 1).write.format("delta").mode("append").save(str(tmp_path))
    _run(spark, table, "DELETE FROM {t} WHERE id < 3")
    log = DeltaLog(str(tmp_path))
    assert (log.state().rows, log.state().stored_rows) == (7, 10)
    (tmp_path / "_delta_log" / f"{2:020d}.crc").unlink()
    unknown = log.state()
    assert (unknown.rows, unknown.stored_rows, unknown.likely_rows) == (None, 10, 10)


def _plan(log: DeltaLog, covered: int) -> Plan:
    state, landed = log.state(), log.state(covered)
    return plan_slices(
        PlanRequest(
            covered=covered,
            epoch=1,
            tip=state.version,
            tip_table_id=state.table_id,
            commits=log.commits(covered + 1, state.version),
            schema_string=landed.schema_string,
            needs=Needs(landed.table_id, ("id",)),
            limits=Limits(1000, 1_000_000, 1 << 30),
            target_rows=100,
            covered_table_id=landed.table_id,
        )
    )


_FOLLOWED = (
    "ALTER TABLE {t} ADD COLUMN (s STRUCT<x: INT>)",
    "INSERT INTO {t} VALUES (1, 1, NULL)",
    "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
    "ALTER TABLE {t} ADD COLUMN (s.y INT)",
    "ALTER TABLE {t} ALTER COLUMN a COMMENT 'amount'",
)


@pytest.fixture(scope="module")
def followed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a history that a mirror can follow."""
    path = tmp_path_factory.mktemp("followed")
    properties = {"columnMapping.mode": "name", "enableTypeWidening": "true"}
    _run(spark, _create(spark, path, "id BIGINT NOT NULL, a INT", **properties), *_FOLLOWED)
    return path


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("ALTER TABLE {t} RENAME COLUMN a TO z", BreakKind.RENAMED_COLUMN),
        ("ALTER TABLE {t} DROP COLUMN a", BreakKind.DROPPED_COLUMN),
        ("ALTER TABLE {t} RENAME COLUMN id TO z", BreakKind.KEY_CHANGED),
        ("ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT", BreakKind.CHANGED_TYPE),
        ("RESTORE {t} TO VERSION AS OF 0", BreakKind.RESTORED_SCHEMA),
        ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1L id", BreakKind.TABLE_REPLACED),
    ],
)
def test_what_spark_writes_for_a_break(
    spark: SparkSession, followed: Path, tmp_path: Path, statement: str, kind: BreakKind
) -> None:
    """The commits before it, which the mirror follows, are planned."""
    shutil.copytree(followed, tmp_path / "t")
    _run(spark, f"delta.`{tmp_path / 't'}`", statement)
    plan = _plan(DeltaLog(str(tmp_path / "t")), 0)
    assert [(planned.first, planned.last, planned.rows) for planned in plan.slices] == [(1, 2, 1), (3, 3, 0), (4, 5, 0)]
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (6, kind)


def test_what_spark_writes_without_a_break(spark: SparkSession, tmp_path: Path) -> None:
    """Each insert rewrites the identity column's high-water mark in the schema, and cuts nothing."""
    table = _create(spark, tmp_path, "id BIGINT GENERATED ALWAYS AS IDENTITY, a INT")
    _run(
        spark,
        table,
        "INSERT INTO {t} (a) VALUES (1)",
        "INSERT INTO {t} (a) VALUES (2)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    )
    log = DeltaLog(str(tmp_path))
    inserts = log.commits(1, 2)
    assert all(commit.metadata is not None for commit in inserts)
    plan = _plan(log, 0)
    assert plan.stop is None
    assert [(planned.first, planned.last, planned.rows) for planned in plan.slices] == [(1, 2, 2), (3, 3, 0)]
