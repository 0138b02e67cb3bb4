"""The encoder: replaying its parts in order gives the source, whatever the history and the cut into parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.changes import ChangesSlice, GroupRead, count_commit_rows, encode_changes, encoded_groups
from mirror_assets.encode.columns import CHANGE_TYPE
from mirror_assets.encode.errors import DUPLICATE_KEY
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_changes
from mirror_assets.source.schema import LandedColumn
from mirror_assets_tests.delta_reader import read_changes, read_version
from mirror_assets_tests.encode.histories import History
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.smoke import smoke_first

# One process makes the histories once for all tests that read them.
pytestmark = pytest.mark.xdist_group("random histories")

_COLUMNS = (
    LandedColumn("id", "int"),
    LandedColumn("part", "int"),
    LandedColumn("name", "string"),
    LandedColumn("amount", "decimal(10,2)"),
)


_MIXED_MERGE = (
    "MERGE INTO {t} USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND id = 2 THEN UPDATE SET id = 1"
)


def _empty(spark: SparkSession, folder: Path) -> str:
    """The URI of a new table with a feed."""
    spark.sql(
        f"CREATE TABLE delta.`{folder}` (id INT, part INT, name STRING, amount DECIMAL(10, 2)) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    return str(folder)


def _slice(
    uri: str, first: int, last: int, parts_each: int, columns: tuple[LandedColumn, ...] = _COLUMNS
) -> ChangesSlice:
    versions = range(first, last + 1)
    assignments = tuple(
        PartAssignment(version, index * parts_each, parts_each) for index, version in enumerate(versions)
    )
    scan = scan_changes(DeltaLog(uri), CommitRange(first, last))
    return ChangesSlice("t", scan, ("id",), columns, assignments, target_rows=1000)


def _landed(folder: Path) -> Iterator[dict[str, object]]:
    for file in sorted(folder.rglob("*.parquet")):
        yield from pq.read_table(file).to_pylist()


def _replay(rows: dict[object, dict[str, object]], folder: Path) -> None:
    """Apply the landed rows one by one, refusing what a strict replicator could not do."""
    for row in _landed(folder):
        marker, key = row.pop(ROW_MARKER), row["id"]
        if marker == Marker.DELETE:
            assert rows.pop(key, None) is not None
        else:
            assert (key in rows) == (marker == Marker.UPDATE)
            rows[key] = row


def _source(spark: SparkSession, uri: str, version: int) -> dict[object, dict[str, object]]:
    return {row["id"]: row.asDict() for row in read_version(spark, uri, version).collect()}


def _in_runs(slice_: ChangesSlice, *, mixed: bool) -> ChangesSlice:
    """The same slice with every commit unpaired that can be; `mixed`: those that can't be, too."""
    versions = [assignment.version for assignment in slice_.assignments]
    commits = DeltaLog(slice_.scan.uri).commits(versions[0], versions[-1])
    pairs = zip(slice_.assignments, commits, strict=True)
    return replace(
        slice_,
        assignments=tuple(replace(assignment, unpaired=mixed or not commit.mixes) for assignment, commit in pairs),
    )


def _rows_read(groups: Sequence[GroupRead], folder: Path) -> int:
    """What was counted, or what the files of a group without counts have."""
    found = 0
    for number, one in enumerate(groups):
        files = sorted((folder / f"{number:05d}").glob("*.parquet"))
        landed = sum(pq.read_metadata(file).num_rows for file in files)
        found += sum(astuple(one.counted.scanned)) if one.counted else landed
    return found


@pytest.mark.parametrize(("seed", "deletion_vectors"), smoke_first([(2, True), (1, False), (3, True)]))
def test_replaying_the_parts_gives_the_source(
    spark: SparkSession,
    tmp_path: Path,
    history_of: Callable[[int, bool], History],
    seed: int,
    *,
    deletion_vectors: bool,
) -> None:
    history = history_of(seed, deletion_vectors)
    rows: dict[object, dict[str, object]] = {}
    for first in range(1, history.tip + 1, 4):
        last = min(first + 3, history.tip)
        folder = tmp_path / f"parts-{first}"
        slice_ = _slice(history.uri, first, last, 1 + seed % 2)
        slice_ = _in_runs(slice_, mixed=first > 1) if seed > 1 else slice_
        groups = encode_changes(spark, slice_, str(folder), {})
        _replay(rows, folder)
        assert rows == _source(spark, history.uri, last)
        assert _rows_read(groups, folder) == read_changes(spark, history.uri, first, last).count()


def test_the_plan_has_one_shuffle_one_sort_and_one_window(
    spark: SparkSession, history_of: Callable[[int, bool], History]
) -> None:
    history = history_of(2, False)
    slice_ = _slice(history.uri, 1, history.tip, 2)
    (group,) = encoded_groups(spark, slice_, {})
    plan = group.rows._jdf.queryExecution().executedPlan().toString()
    operators = [line.strip(" +-:").split(" ")[0] for line in plan.splitlines()]
    assert operators.count("Exchange") == 1
    assert operators.count("Sort") == 1
    assert operators.count("Window") == 1
    assert "hashpartitioning(__shuffle_key" in plan


@pytest.mark.parametrize(
    ("files", "size", "is_one_task"), [(1, 900, True), (8, 900, True), (9, 900, False), (1, 0, False)]
)
def test_one_task_reads_a_few_small_files_and_a_shuffle_follows_others(
    spark: SparkSession, tmp_path: Path, files: int, size: int, *, is_one_task: bool
) -> None:
    """A remote store takes time for each request. A removed file of size 0 may be large: its size is optional."""
    uri = _empty(spark, tmp_path / "table")
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (1, 1, 'a', 1), (2, 1, 'b', 1)")
    spark.sql(f"UPDATE delta.`{uri}` SET name = 'c' WHERE id = 1")
    slice_ = _slice(uri, 2, 2, 1)
    (file,) = slice_.scan.files
    scan = replace(slice_.scan, files=(replace(file, bytes=size),) * files)
    (group,) = encoded_groups(spark, replace(slice_, scan=scan), {})
    plan = group.rows._jdf.queryExecution().executedPlan().toString()
    assert ("Exchange" not in plan) == is_one_task


def test_footers_carry_the_receipt_and_optional_columns(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE delta.`{uri}` (id INT NOT NULL, name STRING NOT NULL, tags MAP<STRING, INT>) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (1, 'a', map('x', 1)), (2, 'b', map('y', NULL))")
    columns = (
        LandedColumn("id", "int", nullable=False),
        LandedColumn("name", "string", nullable=False),
        LandedColumn("tags", "string", nested=True),
    )
    encode_changes(spark, _slice(uri, 1, 1, 1, columns), str(tmp_path / "out"), {"receipt": "r"})
    (file,) = (tmp_path / "out").rglob("*.parquet")
    parquet = pq.ParquetFile(file)
    spark_schema = json.loads(parquet.schema_arrow.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert spark_schema["fields"][0]["metadata"] == {"receipt": "r"}
    assert [parquet.schema.column(index).max_definition_level for index in range(3)] == [1, 1, 1]
    assert parquet.metadata.row_group(0).column(0).compression == "ZSTD"
    assert {row["id"]: row["tags"] for row in _landed(tmp_path / "out")} == {1: '{"x":1}', 2: '{"y":null}'}


def test_two_rows_of_one_key_in_a_commit_are_refused_with_examples(spark: SparkSession, tmp_path: Path) -> None:
    uri = _empty(spark, tmp_path / "t")
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (1, 0, 'a', 1), (7, 0, 'b', 1), (7, 0, 'c', 1)")
    with raises_row(DUPLICATE_KEY, match="id=7") as caught:
        encode_changes(spark, _slice(uri, 1, 1, 1), str(tmp_path / "out"), {})
    assert caught.value.facts["rows"] == 1


@pytest.mark.parametrize(
    ("statement", "unpaired"),
    [
        ("UPDATE {t} SET name = 'x' WHERE id < 5", True),
        ("UPDATE {t} SET id = CASE id WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE id END WHERE id < 3", True),  # keys swapped
        ("UPDATE {t} SET id = id + 100 WHERE id < 3", False),
        (_MIXED_MERGE, False),
    ],
)
def test_what_must_be_paired_is_paired(spark: SparkSession, tmp_path: Path, statement: str, *, unpaired: bool) -> None:
    uri = _empty(spark, tmp_path / "t")
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT id, 0, 'a', 1 FROM range(1, 10, 1, 1)")
    spark.sql(statement.format(t=f"delta.`{uri}`"))
    slice_ = _slice(uri, 2, 2, 1)
    slice_of_one = replace(slice_, assignments=(replace(slice_.assignments[0], unpaired=True),))
    encoded = encode_changes(spark, slice_of_one, str(tmp_path / "out"), {})
    rows = _source(spark, uri, 1)
    _replay(rows, tmp_path / "out")
    assert rows == _source(spark, uri, 2)
    assert [one.group.commits_of(0) for one in encoded] == [(2, 2)]
    (planned,) = encoded_groups(spark, slice_of_one, {})
    assert ("Window" in planned.rows._jdf.queryExecution().executedPlan().toString()) != unpaired


@pytest.mark.parametrize("half", ["id_hash & 4294967295", "shiftright(id_hash, 32)"])
def test_an_update_changes_its_key_also_where_half_of_the_hash_stays(spark: SparkSession, half: str) -> None:
    hashed = spark.range(200_000).withColumn("id_hash", F.xxhash64("id"))
    old, new = hashed.groupBy(F.expr(half)).agg(F.min("id"), F.max("id")).where("min(id) < max(id)").collect()[0][1:]
    kinds = f"CASE id WHEN {old} THEN 'update_preimage' ELSE 'update_postimage' END AS {CHANGE_TYPE}"
    changes = hashed.where(F.col("id").isin(old, new)).selectExpr("id", kinds)
    assert count_commit_rows(changes, ["id"]).changes_keys


def test_each_run_has_files_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    uri = _empty(spark, tmp_path / "t")
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT id, 0, 'a', 1 FROM range(1, 10, 1, 1)")
    spark.sql(f"UPDATE delta.`{uri}` SET name = 'b' WHERE id < 4")
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (20, 0, 'c', 1)")
    slice_ = _in_runs(_slice(uri, 1, 3, 1), mixed=False)
    for paired in (None, 1):
        assignments = tuple(
            replace(assignment, unpaired=index != paired) for index, assignment in enumerate(slice_.assignments)
        )
        folder = tmp_path / f"out-{paired}"
        encoded = encode_changes(spark, replace(slice_, assignments=assignments), str(folder), {})
        assert [pq.read_metadata(file).num_rows for file in sorted(folder.rglob("*.parquet"))] == [9, 3, 1]
        assert [one.group.commits_of(0) for one in encoded] == [(1, 1), (2, 2), (3, 3)]
