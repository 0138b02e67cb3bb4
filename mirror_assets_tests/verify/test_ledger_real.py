"""The ledger against tables that Spark and delta-rs write: each balance is the difference of two counts by Delta."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.source.log import DeltaLog
from mirror_assets.verify.ledger_log import audit, commits_ledger, version_ledger

_MERGE = (
    "MERGE INTO {t} t USING (SELECT id + {c} AS id FROM range({b})) s ON t.id = s.id WHEN MATCHED AND s.id % 2 = 0 "
    "THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'm' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'i')"
)
_STATEMENTS = (
    "INSERT INTO {t} SELECT id + {a}, 'new' FROM range({b})",
    "DELETE FROM {t} WHERE id % 7 = {c}",
    "UPDATE {t} SET name = 'u{a}' WHERE id % 5 = {c}",
    "UPDATE {t} SET id = id + 1000 WHERE id % 11 = {c}",
    _MERGE,
    "MERGE INTO {t} t USING (SELECT -1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "INSERT OVERWRITE {t} SELECT id, 'o' FROM range({b})",
    "OPTIMIZE {t}",
    "RESTORE TABLE {t} TO VERSION AS OF {v}",
    "DELETE FROM {t} WHERE id < {c}",
)


@pytest.mark.parametrize(("vectors", "feed"), [("true", "true"), ("false", "false")])
def test_balances_are_the_differences_that_delta_counts(
    spark: SparkSession, tmp_path: Path, vectors: str, feed: str
) -> None:
    uri, seed = str(tmp_path / "t"), random.Random(f"{vectors} {feed}")
    table = f"delta.`{uri}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, name STRING) USING delta TBLPROPERTIES "
        f"(delta.enableChangeDataFeed = {feed}, delta.enableDeletionVectors = {vectors}, delta.checkpointInterval = 5)"
    )
    spark.range(60).selectExpr("id", "'first' AS name").repartition(3).write.format("delta").mode("append").save(uri)
    for number in range(9):
        statement = seed.choice(_STATEMENTS) if number >= 2 else _STATEMENTS[1 + number]
        newest = DeltaLog(uri).newest()
        spark.sql(
            statement.format(
                t=table, a=seed.randrange(1, 200), b=seed.randrange(1, 30), c=seed.randrange(5), v=newest - 1
            )
        )
    if vectors == "false":
        write_deltalake(uri, pa.table({"id": [1, 2], "name": ["r", "r"]}), mode="append")
        write_deltalake(uri, pa.table({"id": [3], "name": ["r"]}), mode="overwrite")
    log = DeltaLog(uri)
    newest = log.newest()
    counts = [
        spark.read.option("versionAsOf", version).format("delta").load(uri).count() for version in range(newest + 1)
    ]
    expected = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    assert [commit.rows for commit in audit(log)] == expected
    for first in range(1, newest + 1, 4):
        balances = commits_ledger(log, first, newest).by_statistics
        assert [commit.rows for commit in balances.commits] == expected[first:]
        assert not any(commit.contradictions for commit in balances.commits)
        assert commits_ledger(log, first, newest).by_footers.rows == balances.rows
    assert [version_ledger(log, version).by_statistics.rows for version in range(newest + 1)] == counts
