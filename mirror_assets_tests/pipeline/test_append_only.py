"""Tables that are only ever appended to, with neither keys nor a feed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mirror_assets.encode.inserts import InsertsSlice, encode_inserts
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.errors import StopError
from mirror_assets.landing.format import SliceKind
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.errors import ROWS_CHANGED
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_changes
from mirror_assets.source.schema import LandedColumn
from mirror_assets.verify.landed import file_continuity, metadata_unchanged
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import TABLE, Lab

_APPEND_ONLY = "changes: append_only"


def _figure(slice_: ProcessedSlice, check: str, name: str) -> object:
    return next(result.metadata[name] for result in slice_.results if result.check == check)


def _declared(lab: Lab) -> object:
    return json.loads((lab.folder / "_metadata.json").read_bytes())


def _metadata_problems(lab: Lab, *keys: str) -> tuple[str, ...]:
    return metadata_unchanged(lab.store, TABLE, keys).problems


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Lab:
    """A table without keys and without a feed, with equal rows, at version 1; nothing mirrored yet."""
    lab = Lab(spark, tmp_path)
    lab.configure(_APPEND_ONLY, defaults="slices: {max_commits: 20}", keys="[]")
    lab.sql(
        "CREATE TABLE {t} (id INT, name STRING, amount DOUBLE) USING delta",
        "INSERT INTO {t} VALUES (1, 'a', 1), (1, 'a', 1), (2, NULL, 2)",
    )
    return lab


@pytest.mark.long(15)
def test_an_epoch_of_appends(events: Lab) -> None:
    lab = events
    lab.mirror()
    lab.sql(
        "INSERT INTO {t} VALUES (1, 'a', 1), (3, 'c', 3)",
        "OPTIMIZE {t}",
        "MERGE INTO {t} t USING (SELECT 4 AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, name, amount) VALUES (s.id, 'merged', 4)",
        "ALTER TABLE {t} ADD COLUMNS (tags ARRAY<STRING>)",
        "INSERT INTO {t} VALUES (5, 'e', 5, array('x'))",
    )
    before, after = lab.mirror()
    assert [slice_.record.kind for slice_ in (before, after)] == [SliceKind.APPENDS] * 2
    assert (before.planned.rows, before.planned.rows_exact, before.record.read.insert) == (3, True, 3)
    assert "__rowMarker__" not in pq.read_schema(lab.folder / lab.files[-1]).names
    assert _figure(before, "row_conservation", "written") == 3
    assert _declared(lab) == {}
    assert lab.is_equal

    # Keys that are added are declared with the next slice; until then nothing is wrong.
    lab.configure(_APPEND_ONLY, keys="[name]")
    assert _metadata_problems(lab, "name") == ()
    lab.sql("INSERT INTO {t} VALUES (6, 'f', 6, NULL)")
    lab.mirror()
    assert _declared(lab) == {"keyColumns": ["name"]}
    assert _metadata_problems(lab, "name") == ()
    assert _metadata_problems(lab) != ()
    assert file_continuity(lab.store, TABLE, None).passed
    assert lab.is_equal

    # Rows that change stop the table after the commits before them, until it is rebuilt.
    lab.sql("INSERT INTO {t} VALUES (7, 'g', 7, NULL)", "UPDATE {t} SET name = 'once' WHERE name = 'a' OR name IS NULL")
    with raises_row(ROWS_CHANGED, match=r"version \d+ \(UPDATE\)") as stopped:
        lab.mirror()
    assert isinstance(stopped.value, StopError)
    assert lab.manifest().covered == stopped.value.facts["version"] - 1
    lab.sql("DELETE FROM {t} WHERE name = 'once'")
    rebuild_table(lab.context, lab.replicator, lambda _: None)
    lab.sql("INSERT INTO {t} VALUES (8, 'h', 8, NULL)")
    lab.mirror()
    assert lab.is_equal


def test_a_mirror_that_has_a_row_once_too_often_is_different(events: Lab) -> None:
    events.mirror()
    events.replicator.poll()
    events.spark.sql(f"INSERT INTO delta.`{events.root}/mirror/{TABLE.schema}/{TABLE.table}` VALUES (2, NULL, 2)")
    result = reconcile_table(events.context, events.replicator)
    assert result.state is ReconcileState.DIFFERENT
    assert [(sample.key, sample.source_rows, sample.mirror_rows) for sample in result.samples] == [
        (("2", None, "2.0"), 1, 2)
    ]


def test_a_key_that_is_appended_twice_publishes_nothing(events: Lab) -> None:
    events.sql("DELETE FROM {t}")
    events.configure(_APPEND_ONLY, defaults="slices: {max_commits: 20}")
    events.mirror()
    events.sql("INSERT INTO {t} VALUES (1, 'a', 1)", "INSERT INTO {t} VALUES (1, 'b', 1)")
    with pytest.raises(ChecksFailed, match="key «id=1» has 2 rows that were appended"):
        events.mirror()


def test_appends_need_no_shuffle_and_no_feed_and_removed_rows_are_never_encoded(events: Lab, tmp_path: Path) -> None:
    events.sql("INSERT INTO {t} VALUES (3, 'c', 3)", "DELETE FROM {t} WHERE id = 3")
    columns, log = (LandedColumn("id", "int"),), DeltaLog(events.uri)
    appended, removed = (scan_changes(log, CommitRange(2, last), by_feed=False) for last in (2, 3))
    plan = read_scan(events.spark, appended).select("id")._jdf.queryExecution().executedPlan().toString()
    assert "Exchange" not in plan
    assert "Sort" not in plan
    slice_ = InsertsSlice("t", appended, 2, columns, 1, 1000)
    assert encode_inserts(events.spark, slice_, str(tmp_path / "one"), {}).counted is None
    assert [row["id"] for row in pq.read_table(tmp_path / "one").to_pylist()] == [3]
    with raises_row(ROWS_CHANGED, match="version 3 removes rows"):
        encode_inserts(events.spark, replace(slice_, scan=removed), str(tmp_path / "two"), {})
    assert not (tmp_path / "two").exists()


def test_columns_may_be_called_as_those_of_a_feed(spark: SparkSession, tmp_path: Path) -> None:
    """A copy of a change data feed is such a table."""
    lab = Lab(spark, tmp_path)
    lab.configure(_APPEND_ONLY, keys="[]")
    lab.sql(
        "CREATE TABLE {t} (id INT, _change_type STRING, _commit_version BIGINT) USING delta",
        "INSERT INTO {t} VALUES (1, 'insert', 7)",
    )
    lab.mirror()
    lab.sql("INSERT INTO {t} VALUES (1, 'delete', 8)")
    lab.mirror()
    assert lab.is_equal
