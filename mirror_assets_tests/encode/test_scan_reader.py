"""Scans against Delta's public readers: versions, change rows, and the rows that differ between two versions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode import scan_reader
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.errors import RetryError
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import VersionPart, scan_changes, scan_differences, scan_version
from mirror_assets_tests.delta_reader import read_changes, read_version
from mirror_assets_tests.encode.histories import History
from mirror_assets_tests.handmade_table import HandmadeTable, commit_info
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.scans import scanned_changes
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.source.handmade import column

# One process makes the histories once for all tests that read them.
pytestmark = pytest.mark.xdist_group("random histories")
_HIVE = "__HIVE_DEFAULT_PARTITION__"


def _rows(frame: DataFrame, *left_out: str) -> list[str]:
    return sorted(str(row.asDict()) for row in frame.drop(*left_out).collect())


@pytest.fixture(scope="module", params=[False, True], ids=["change files", "deletion vectors"])
def history(request: pytest.FixtureRequest, history_of: Callable[[int, bool], History]) -> History:
    """Commits of any kind; their changes are in files of changes, or follow from deletion vectors."""
    return history_of(2, request.param)


def test_the_changes_of_a_random_history_are_those_of_deltas_feed(spark: SparkSession, history: History) -> None:
    for first in range(1, history.tip + 1, 3):
        last = min(first + 3, history.tip)
        public = read_changes(spark, history.uri, first, last)
        found = scanned_changes(spark, history.uri, first, last)
        assert found.columns == public.columns
        assert _rows(found) == _rows(public)


def test_a_scan_of_some_commits_has_their_rows(spark: SparkSession, history: History) -> None:
    scan = scan_changes(DeltaLog(history.uri), CommitRange(1, history.tip))
    for first, last in ((1, 1), (2, 4), (5, history.tip)):
        public = read_changes(spark, history.uri, first, last)
        found = read_scan(spark, scan.of_commits(first, last))
        assert _rows(found, "_commit_timestamp") == _rows(public, "_commit_timestamp")


def test_every_version_of_a_random_history_is_deltas(spark: SparkSession, history: History) -> None:
    for version in range(0, history.tip + 1, 2):
        found = read_scan(spark, scan_version(DeltaLog(history.uri), version))
        assert _rows(found) == _rows(read_version(spark, history.uri, version))


def test_a_scan_opens_no_other_file(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{uri}` (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    for id_ in range(3):
        spark.sql(f"INSERT INTO delta.`{uri}` VALUES ({id_})")
    of_second = scanned_changes(spark, uri, 2, 2)
    first, second, third = ({file.path for file in DeltaLog(uri).snapshot(version).files} for version in (1, 2, 3))
    for path in third - (second - first):
        (tmp_path / "t" / path).unlink()
    assert [row["id"] for row in of_second.collect()] == [1]


def test_the_schema_is_that_of_the_last_commit(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{uri}` (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (1)")
    spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS (added STRING)")
    assert "added" not in scanned_changes(spark, uri, 1, 1).columns
    assert "added" in scanned_changes(spark, uri, 1, 2).columns


@pytest.mark.parametrize(
    "more", smoke_first(["", ", delta.enableInCommitTimestamps = true, delta.columnMapping.mode = 'name'"])
)
@pytest.mark.parametrize("most_numbers", [2_000_000, 0], ids=["numbers", "bitmaps"])
def test_changes_of_vectors_are_those_of_deltas_feed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, most_numbers: int
) -> None:
    """Forty rows in one file, in a folder whose name the log writes in another way."""
    monkeypatch.setattr(scan_reader, "_MOST_NUMBERS", most_numbers)
    uri = str(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE delta.`{uri}` (id BIGINT, part STRING) USING delta PARTITIONED BY (part) TBLPROPERTIES "
        f"(delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true{more})"
    )
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT id, 'x y%z' FROM range(0, 40, 1, 1)")
    for number in range(4):
        spark.sql(f"DELETE FROM delta.`{uri}` WHERE id IN ({number}, {39 - number})")
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT id, 'other' FROM range(40, 60, 1, 1)")
    spark.sql(f"RESTORE delta.`{uri}` TO VERSION AS OF 3")  # brings rows back, and removes a whole file
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id IN (2, 37)")
    assert len(_rows(scanned_changes(spark, uri, 1, 8))) == 40 + 8 + 20 + (20 + 4) + 2
    for first, last in ((1, 8), (4, 7), (8, 8)):
        assert _rows(scanned_changes(spark, uri, first, last)) == _rows(read_changes(spark, uri, first, last))


@pytest.mark.parametrize("sparse", [1, 128], ids=["numbers", "bitmaps"])
def test_rows_that_vectors_hide_are_not_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: int
) -> None:
    monkeypatch.setattr(scan_reader, "_SPARSE", sparse)
    uri = str(tmp_path / "t")
    spark.range(0, 3000, 1, 2).write.format("delta").option("delta.enableDeletionVectors", "true").save(uri)
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id % 7 = 0 OR id IN (1499, 2999)")
    found = read_scan(spark, scan_version(DeltaLog(uri), 1))
    assert _rows(found) == _rows(read_version(spark, uri, 1))


def test_the_one_hidden_row_of_a_single_file_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """One file, so nothing differs between files; and so few rows that they are found by their numbers."""
    uri = str(tmp_path / "t")
    spark.range(0, 1000, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true").save(uri)
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 500")
    assert read_scan(spark, scan_version(DeltaLog(uri), 1)).where("id BETWEEN 499 AND 501").count() == 2


@pytest.mark.parametrize("most_numbers", [2_000_000, 0], ids=["numbers", "bitmaps"])
def test_few_rows_of_large_files_are_picked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_numbers: int
) -> None:
    monkeypatch.setattr(scan_reader, "_MOST_NUMBERS", most_numbers)
    uri = str(tmp_path / "t")
    options = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    spark.range(0, 2000, 1, 2).write.format("delta").options(**options).save(uri)
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id IN (500, 1700)")
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 600")
    found = scanned_changes(spark, uri, 1, 2)
    assert sorted((row["id"], row["_change_type"], row["_commit_version"]) for row in found.collect()) == [
        (500, "delete", 1),
        (600, "delete", 2),
        (1700, "delete", 1),
    ]


def test_change_files_are_read_beside_many_data_files(spark: SparkSession, tmp_path: Path) -> None:
    """Many files are found by listing their folder, and a listing leaves out `_change_data`."""
    uri = str(tmp_path / "t")
    spark.range(0, 10, 1, 1).write.format("delta").option("delta.enableChangeDataFeed", "true").save(uri)
    spark.range(10, 110, 1, 40).write.format("delta").mode("append").save(uri)
    spark.sql(f"UPDATE delta.`{uri}` SET id = -id WHERE id = 3")
    assert _rows(scanned_changes(spark, uri, 1, 2)) == _rows(read_changes(spark, uri, 1, 2))


def _partitioned(path: Path, type_: str, value: str, **metadata: object) -> str:
    """A table with one row, whose partition has this text."""
    table = HandmadeTable(path, column("id"), column("p", type_, metadata=metadata), partitioned_by=["p"])
    table.commit(commit_info(), table.add({"id": 1}, partition={"p": value}, name="a/b.parquet"))
    return str(path)


def test_a_partition_of_fixed_length_is_padded(spark: SparkSession, tmp_path: Path) -> None:
    uri = _partitioned(tmp_path / "t", "string", "ab", __CHAR_VARCHAR_TYPE_STRING="char(5)")
    assert _rows(read_scan(spark, scan_version(DeltaLog(uri), 0))) == _rows(read_version(spark, uri, 0))
    assert read_scan(spark, scan_version(DeltaLog(uri), 0)).collect()[0]["p"] == "ab   "


@pytest.mark.parametrize("text", ["", _HIVE])
@pytest.mark.parametrize("type_", ["integer", "date", "string", "binary"])
def test_texts_for_null_are_null_where_they_are_no_value(
    spark: SparkSession, tmp_path: Path, type_: str, text: str
) -> None:
    uri = _partitioned(tmp_path / "t", type_, text)
    found = read_scan(spark, scan_version(DeltaLog(uri), 0)).collect()[0]["p"]
    assert (found is None) == (type_ in ("integer", "date"))
    if (type_, text) not in (("integer", _HIVE), ("date", _HIVE)):  # Delta's reader fails
        assert read_version(spark, uri, 0).collect()[0]["p"] == found


@pytest.mark.parametrize(("type_", "text"), [("integer", "1.0"), ("integer", "x"), ("date", "soon")])
def test_a_partition_whose_text_is_no_value_is_refused(
    spark: SparkSession, tmp_path: Path, type_: str, text: str
) -> None:
    uri = _partitioned(tmp_path / "t", type_, text)
    with pytest.raises(Exception, match=f"partition column `p` is .*, and a file has the value {text}"):
        read_scan(spark, scan_version(DeltaLog(uri), 0)).collect()


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Lab:
    """Version 0: a file of ids 0 to 99, another of 100 to 199, with deletion vectors."""
    made = Lab(spark, tmp_path)
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    spark.range(0, 200, 1, 2).write.format("delta").options(**properties).save(made.uri)
    return made


def _differences(lab: Lab, before: int, last: int) -> tuple[list[int], list[int]]:
    """The ids that only one of two versions has, as far as they are read."""
    scans = scan_differences(DeltaLog(lab.uri), CommitRange(before + 1, last))
    old, new = (sorted(row["id"] for row in read_scan(lab.spark, one).collect()) for one in (scans.before, scans.last))
    return old, new


def test_of_a_file_with_another_vector_only_the_rows_are_read_that_the_other_version_hides(lab: Lab) -> None:
    lab.sql(
        "DELETE FROM {t} WHERE id IN (3, 99, 140)",
        "DELETE FROM {t} WHERE id IN (4, 98)",
        "RESTORE {t} TO VERSION AS OF 1",
    )
    assert _differences(lab, 0, 2) == ([3, 4, 98, 99, 140], [])
    assert _differences(lab, 1, 2) == ([4, 98], [])
    assert _differences(lab, 2, 3) == ([], [4, 98])
    assert _differences(lab, 1, 3) == ([], [])


def test_a_file_that_the_other_version_has_not_is_read_whole_but_for_its_hidden_rows(lab: Lab) -> None:
    lab.sql("DELETE FROM {t} WHERE id = 7", "DELETE FROM {t} WHERE id < 100", "INSERT INTO {t} VALUES (300)")
    assert _differences(lab, 1, 3) == ([id_ for id_ in range(100) if id_ != 7], [300])


def test_row_ids_and_versions_are_deltas(lab: Lab) -> None:
    lab.sql("DELETE FROM {t} WHERE id = 7", "UPDATE {t} SET id = -id WHERE id % 50 = 3", "OPTIMIZE {t}")
    found = read_scan(lab.spark, scan_version(DeltaLog(lab.uri), 3), row_ids=True)
    public = read_version(lab.spark, lab.uri, 3).select("id", "_metadata.row_id", "_metadata.row_commit_version")
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, public.collect()))


def test_files_of_a_version_are_read_once_each(spark: SparkSession, tmp_path: Path) -> None:
    """Also with deletion vectors, mapped column names and folders that are named after values."""
    uri = str(tmp_path / "parted")
    made = (
        "CREATE TABLE {t} (id INT, `a b` STRING, part STRING) USING delta PARTITIONED BY (part) "
        "TBLPROPERTIES (delta.columnMapping.mode = 'name', delta.enableDeletionVectors = true)"
    )
    inserted = "INSERT INTO {t} SELECT id, 'x', concat('/ %', id % 3) FROM range(12)"
    more, deleted = "INSERT INTO {t} SELECT id, 'y', NULL FROM range(12, 20)", "DELETE FROM {t} WHERE id IN (3, 15)"
    for statement in (made, inserted, more, deleted):
        spark.sql(statement.format(t=f"delta.`{uri}`"))
    whole, log = read_version(spark, uri, 3), DeltaLog(uri)
    files = len(log.snapshot(3).files)
    chunks = [scan_version(log, 3, VersionPart(first, end, files)) for first, end in pairwise([0, 1, 2, files])]
    assert [len(chunk.files) for chunk in chunks] == [1, 1, files - 2]
    assert [file.path for chunk in chunks for file in chunk.files] == [file.path for file in log.snapshot(3).files]
    rows = [row for chunk in chunks for row in _rows(read_scan(spark, chunk))]
    assert sorted(rows) == _rows(whole)
    with pytest.raises(RetryError, match=f"version 3 had 99 files, and has {files} now"):
        scan_version(log, 3, VersionPart(0, 1, 99))
    with pytest.raises(RetryError, match="version 3 is of another table now"):
        scan_version(log, 3, VersionPart(table_id="another"))


def test_many_files_of_few_folders_are_read_by_their_folders(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "a [b] {c} ü%20")
    spark.range(0, 60, 1, 12).selectExpr("id", "concat('p ', id % 2) AS part").write.format("delta").partitionBy(
        "part"
    ).save(uri)
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id % 12 = 3")
    log = DeltaLog(uri)
    by_name = _rows(read_scan(spark, scan_version(log, 1)))
    monkeypatch.setattr(scan_reader, "_MANY_FILES", 2)
    monkeypatch.setattr(scan_reader, "_FILES_OF_FOLDER", 2)
    by_folder = read_scan(spark, scan_version(log, 1))
    assert _rows(by_folder) == by_name == _rows(read_version(spark, uri, 1))


def test_a_value_that_all_files_share_is_an_optional_column(spark: SparkSession, tmp_path: Path) -> None:
    """Spark writes a constant as REQUIRED, which can't be dropped from the mirror."""
    uri = str(tmp_path / "t")
    spark.range(3).selectExpr("id", "'x' AS part").write.format("delta").partitionBy("part").save(uri)
    found = read_scan(spark, scan_version(DeltaLog(uri), 0))
    assert found.schema["part"].nullable
    assert _rows(found) == _rows(read_version(spark, uri, 0))


def test_null_in_a_column_that_has_none_fails(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{uri}` (id BIGINT, name STRING NOT NULL) USING delta")
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (1, 'a')")
    (path,) = (file.path for file in DeltaLog(uri).snapshot(1).files)
    file = tmp_path / "t" / path
    file.with_name(f".{file.name}.crc").unlink()
    pq.write_table(pa.table({"id": [1], "name": pa.array([None], pa.string())}), file)
    with pytest.raises(Exception, match="column `name` is NOT NULL"):
        read_scan(spark, scan_version(DeltaLog(uri), 1)).collect()


@pytest.mark.parametrize("files", [1, 3])
def test_columns_may_be_called_as_ours(spark: SparkSession, tmp_path: Path, files: int) -> None:
    uri = str(tmp_path / "t")
    names = ("c0", "c1", "p0", "path", "row", "kind", "version", "words", "_metadata", "of_path", "number")
    columns = ", ".join(f"id + {at} AS `{name}`" for at, name in enumerate(names))
    table = spark.range(0, 9, 1, files).selectExpr(*columns.split(", "))
    table.write.format("delta").partitionBy("p0").save(uri)
    assert _rows(read_scan(spark, scan_version(DeltaLog(uri), 0))) == _rows(read_version(spark, uri, 0))
