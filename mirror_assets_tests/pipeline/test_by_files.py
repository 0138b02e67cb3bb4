"""Slices read by the files that differ: by `changes: files`, and where a change data feed can't be read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.format import SliceKind
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.pipeline.doctor import THEN, Asked, DoctorVerdict
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.source.errors import DATA_FILE_MISSING
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.handmade_table import HandmadeTable, commit_info, remove
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.pipeline.test_row_tracking import landed, vacuum
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.source.handmade import column

_WHOLE = "slices: {max_commits: 100}"
_SWITCH = "ALTER TABLE {{t}} SET TBLPROPERTIES (delta.enableChangeDataFeed = {})"


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Lab:
    """Ten orders in a table without properties; nothing has landed."""
    lab = Lab(spark, tmp_path)
    lab.configure("changes: files", _WHOLE)
    lab.sql(
        "CREATE TABLE {t} (id INT, name STRING, amount DOUBLE) USING delta",
        "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10)",
    )
    return lab


@pytest.fixture
def fed(spark: SparkSession, tmp_path: Path) -> Lab:
    """Ten orders with a feed, which have landed."""
    lab = Lab(spark, tmp_path)
    lab.configure("on_break: hold", _WHOLE)
    lab.create()
    lab.mirror()
    return lab


def test_one_net_change_per_key_lands_of_a_table_without_properties(files: Lab) -> None:
    files.mirror()
    files.sql(
        "UPDATE {t} SET amount = 100 WHERE id IN (1, 2)",
        "UPDATE {t} SET amount = IF(id = 1, 200D, -0.0D) WHERE id < 2",
        "INSERT INTO {t} VALUES (77, 'new', 7)",
        "DELETE FROM {t} WHERE id = 77 OR id = 3",
        "UPDATE {t} SET id = 500 WHERE id = 5",
        "UPDATE {t} SET name = name",
    )
    (slice_,) = files.mirror()
    found = {(row["id"], row[ROW_MARKER], str(row["amount"])) for row in landed(files, 2)}
    assert found == {
        (0, Marker.UPDATE, "-0.0"),
        (1, Marker.UPDATE, "200.0"),
        (2, Marker.UPDATE, "100.0"),
        (3, Marker.DELETE, "None"),
        (5, Marker.DELETE, "None"),
        (500, Marker.INSERT, "2.5"),
    }
    assert slice_.record.compared is not None
    assert (slice_.record.compared.before, slice_.record.compared.last, slice_.record.compared.because) == (1, 7, "")
    assert files.is_equal


def test_rows_beside_a_deleted_one_stay_in_a_file_without_statistics(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure("changes: files", _WHOLE)
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        rows = spark.range(0, 10, 1, 1).selectExpr("CAST(id AS INT) AS id", "'n' AS name", "id / 2 AS amount")
        rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(lab.uri)
    finally:
        spark.conf.unset("spark.databricks.delta.stats.collect")
    lab.mirror()
    lab.sql("DELETE FROM {t} WHERE id = 3")
    lab.mirror()
    assert [(row["id"], row[ROW_MARKER]) for row in landed(lab, 2)] == [(3, Marker.DELETE)]
    lab.sql("RESTORE {t} TO VERSION AS OF 0")
    lab.mirror()
    assert [(row["id"], row[ROW_MARKER]) for row in landed(lab, 3)] == [(3, Marker.INSERT)]
    assert lab.is_equal


def test_commits_that_only_rewrite_rows_cost_nothing(files: Lab) -> None:
    files.mirror()
    files.sql("INSERT INTO {t} VALUES (10, 'n10', 5)", "OPTIMIZE {t}", "UPDATE {t} SET name = '' WHERE id = 3")
    files.sql("INSERT INTO {t} VALUES (11, 'n11', 5)", "OPTIMIZE {t}")
    planned = [(one.first, one.last, one.compared) for one in plan_table(files.context).slices]
    assert [(first, last) for first, last, _ in planned] == [(2, 3), (4, 6)]
    assert [(one.before, one.last, one.files) for _, _, one in planned if one] == [(1, 2, 1), (3, 5, 3)]
    files.mirror()
    assert files.is_equal
    files.sql("INSERT INTO {t} VALUES (12, 'n12', 5)", "OPTIMIZE {t}")
    files.mirror()
    files.sql("OPTIMIZE {t} ZORDER BY (id)")
    (slice_,) = files.mirror()
    assert (slice_.planned.parts, slice_.planned.compared) == (0, None)
    assert files.is_equal


@pytest.mark.parametrize("compact", smoke_first(["false", "true"]))
def test_commits_without_a_feed_are_read_by_files_between_slices_of_the_feed(fed: Lab, compact: str) -> None:
    fed.configure(f"on_break: hold\n    compact: {compact}", _WHOLE)
    fed.sql(
        "UPDATE {t} SET amount = 5 WHERE id = 1",
        _SWITCH.format("false"),
        "UPDATE {t} SET amount = 6 WHERE id = 1",
        "DELETE FROM {t} WHERE id = 2",
        _SWITCH.format("true"),
        "INSERT INTO {t} VALUES (77, 'new', 7)",
    )
    lines = list[str]()
    slices = fed.mirror(lines.append)
    compared = [slice_.record.compared for slice_ in slices]
    assert [(slice_.planned.first, slice_.planned.last) for slice_ in slices] == [(2, 2), (3, 5), (6, 7)]
    assert [one.because if one else None for one in compared] == [
        None,
        "the change data feed was off at version 3",
        None,
    ]
    assert slices[1].record.kind is SliceKind.NET
    assert any("by files, because the change data feed was off at version 3" in line for line in lines)
    assert fed.is_equal


def test_a_feed_that_stays_off_is_replaced_by_files_for_good(fed: Lab) -> None:
    fed.sql(_SWITCH.format("false"), "UPDATE {t} SET amount = 6 WHERE id = 1")
    fed.mirror()
    fed.sql("DELETE FROM {t} WHERE id = 2")
    (slice_,) = fed.mirror()
    assert slice_.record.compared is not None
    answer = dict(THEN)["does it record changes as `changes` needs?"](Asked(fed.context))
    assert (answer.verdict, "read by files" in answer.words) == (DoctorVerdict.WARN, True)
    fed.sql("UPDATE {t} SET amount = 7 WHERE id = 1", _SWITCH.format("true"), "DELETE FROM {t} WHERE id = 3")
    assert [slice_.record.compared is None for slice_ in fed.mirror()] == [False, True]
    assert fed.is_equal


def test_a_slice_whose_change_files_were_vacuumed_is_read_by_files(fed: Lab) -> None:
    fed.sql("UPDATE {t} SET amount = 6 WHERE id = 1", "INSERT INTO {t} VALUES (77, 'new', 7)")
    for file in Path(fed.uri, "_change_data").glob("*.parquet"):
        file.unlink()
    lines = list[str]()
    (slice_,) = fed.mirror(lines.append)
    assert slice_.record.compared is not None
    assert "was deleted" in slice_.record.compared.because
    assert any("by files, because" in line for line in lines)
    assert fed.is_equal


def test_lost_change_files_and_lost_data_files_mean_a_rebuild(fed: Lab) -> None:
    fed.sql("UPDATE {t} SET amount = 6 WHERE id = 1")
    for file in Path(fed.uri, "_change_data").glob("*.parquet"):
        file.unlink()
    vacuum(fed)
    with raises_row(DATA_FILE_MISSING):
        fed.mirror()
    fed.configure("", _WHOLE)
    fed.mirror()
    assert fed.is_equal
    assert pq.read_schema(fed.folder / f"{1:020d}.parquet").names == ["id", "name", "amount"]


@pytest.mark.parametrize("keys", ["[id]", "[id, country]"])
def test_a_table_that_is_partitioned_by_an_overwrite_is_read_by_files(
    spark: SparkSession, tmp_path: Path, keys: str
) -> None:
    """Files of before have the new partition column as an ordinary one, and no partition values."""
    lab = Lab(spark, tmp_path)
    lab.configure("on_break: hold", _WHOLE, keys)
    lab.sql(
        "CREATE TABLE {t} (id INT, country STRING, v INT) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        "INSERT INTO {t} VALUES (1, 'usa', 1), (2, 'fra', 2), (3, 'fra', 3)",
    )
    lab.mirror()
    country = "'de'" if "country" in keys else "CAST(NULL AS STRING)"
    rows = spark.sql(f"SELECT * FROM VALUES (1, {country}, 1), (2, 'fra', 2), (3, 'fra', 4) AS t(id, country, v)")
    overwriting = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    overwriting.partitionBy("country").save(lab.uri)
    (slice_,) = lab.mirror()
    assert slice_.record.compared is not None
    assert lab.is_equal


def test_an_overwrite_may_make_a_column_not_null(spark: SparkSession, tmp_path: Path) -> None:
    """The rows that it removes have NULL there."""
    lab = Lab(spark, tmp_path)
    lab.configure("on_break: hold", _WHOLE)
    table = HandmadeTable(Path(lab.uri), column("id"), column("name", "string"))
    old = table.add({"id": 1, "name": None}, {"id": 2, "name": "b"})
    table.commit(commit_info(), old)
    lab.mirror()
    table.columns = (column("id"), column("name", "string", nullable=False))
    new = table.add({"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    table.commit(commit_info(), table.metadata(), remove(old), new)
    lab.mirror()
    assert lab.is_equal
