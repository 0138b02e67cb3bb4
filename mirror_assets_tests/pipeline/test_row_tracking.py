"""Row tracking as the source of changes: for tables without a feed, with keys or with none."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.format import ChangeCounts
from mirror_assets.markers import ROW_ID, ROW_MARKER, Marker
from mirror_assets.pipeline.errors import SOURCE_BROKE
from mirror_assets.source.errors import DATA_FILE_MISSING
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import Lab

_WHOLE = "slices: {max_commits: 100}"


@pytest.fixture
def tracked(spark: SparkSession, tmp_path: Path) -> Lab:
    """Ten orders without a feed; three commits follow, and nothing has landed."""
    lab = Lab(spark, tmp_path)
    lab.configure("changes: row_tracking", _WHOLE)
    lab.sql(
        "CREATE TABLE {t} (id INT, name STRING, amount DOUBLE) USING delta TBLPROPERTIES "
        "(delta.enableRowTracking = true, delta.enableDeletionVectors = true)",
        "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10)",
    )
    return lab


def vacuum(lab: Lab) -> None:
    """Remove every file that the newest version does not have."""
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    lab.spark.conf.set(check, "false")
    lab.sql("VACUUM {t} RETAIN 0 HOURS")
    lab.spark.conf.unset(check)


def landed(lab: Lab, number: int) -> list[dict[str, object]]:
    return list(pq.read_table(lab.folder / f"{number:020d}.parquet").to_pylist())


def test_one_net_change_per_row_lands(tracked: Lab) -> None:
    tracked.mirror()
    tracked.sql(
        "UPDATE {t} SET amount = 100 WHERE id IN (1, 2)",
        "UPDATE {t} SET amount = 200 WHERE id = 1",
        "INSERT INTO {t} VALUES (77, 'new', 7)",
        "DELETE FROM {t} WHERE id = 77 OR id = 3",
        "OPTIMIZE {t}",
        "UPDATE {t} SET id = 500 WHERE id = 5",
    )
    (slice_,) = tracked.mirror()
    found = {(row["id"], row[ROW_MARKER], row["amount"]) for row in landed(tracked, 2)}
    assert found == {
        (1, Marker.UPDATE, 200.0),
        (2, Marker.UPDATE, 100.0),
        (3, Marker.DELETE, None),
        (5, Marker.DELETE, None),
        (500, Marker.INSERT, 2.5),
    }
    assert slice_.published.manifest.covered == 7
    assert tracked.is_equal


def test_rows_that_a_restore_brings_back_land(tracked: Lab) -> None:
    tracked.sql("UPDATE {t} SET amount = 1 WHERE id < 5", "DELETE FROM {t} WHERE id = 9")
    tracked.mirror()
    tracked.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    tracked.mirror()
    assert {(row["id"], row[ROW_MARKER]) for row in landed(tracked, 2)} == {
        *((id_, Marker.UPDATE) for id_ in range(5)),
        (9, Marker.INSERT),
    }
    assert tracked.is_equal


def test_rows_without_a_key_are_known_by_their_id(tracked: Lab) -> None:
    tracked.configure("changes: row_tracking", _WHOLE, keys="[]")
    tracked.sql("INSERT INTO {t} VALUES (1, 'n1', 0.5)")
    tracked.mirror()
    tracked.sql("UPDATE {t} SET amount = 5 WHERE id = 1", "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 8")
    tracked.mirror()
    assert pq.read_schema(tracked.folder / f"{1:020d}.parquet").names == [ROW_ID, "id", "name", "amount"]
    assert tracked.is_equal
    tracked.sql("UPDATE {t} SET name = 'both' WHERE id = 1", "OPTIMIZE {t}")
    tracked.mirror()
    assert [(row["id"], row[ROW_MARKER]) for row in landed(tracked, 3)] == [(1, Marker.UPDATE)] * 2
    assert tracked.is_equal


def test_rows_that_get_new_ids_by_a_rewrite_that_says_it_changes_no_data_land(tracked: Lab) -> None:
    tracked.configure("changes: row_tracking", _WHOLE, keys="[]")
    tracked.mirror()
    rows = tracked.spark.read.format("delta").load(tracked.uri)
    same = tracked.spark.createDataFrame(rows.collect(), rows.schema)
    same.write.format("delta").mode("overwrite").option("dataChange", "false").save(tracked.uri)
    tracked.sql("UPDATE {t} SET amount = 5 WHERE id = 1")
    (slice_,) = tracked.mirror()
    assert slice_.record.read == ChangeCounts(insert=10, delete=10)
    assert tracked.is_equal
    tracked.sql("OPTIMIZE {t}")
    (slice_,) = tracked.mirror()
    assert slice_.planned.parts == 0


def test_a_large_table_without_keys_is_loaded_in_chunks(tracked: Lab) -> None:
    tracked.configure("changes: row_tracking", "slices: {max_rows: 10}", keys="[]")
    tracked.sql("INSERT INTO {t} SELECT * FROM {t} WHERE id < 3")
    assert [str(slice_.planned.chunk) for slice_ in tracked.mirror()] == ["1 of 2", "2 of 2"]
    assert tracked.is_equal


def test_row_tracking_that_was_off_meanwhile_means_a_rebuild(tracked: Lab) -> None:
    tracked.configure("changes: row_tracking\n    on_break: hold")
    tracked.mirror()
    switch = "ALTER TABLE {{t}} SET TBLPROPERTIES (delta.enableRowTracking = {})"
    tracked.sql(switch.format("false"))
    with raises_row(SOURCE_BROKE, match="row tracking off"):
        tracked.mirror()
    tracked.sql("UPDATE {t} SET amount = 5 WHERE id = 1", switch.format("true"))
    with raises_row(SOURCE_BROKE, match="row tracking off"):
        tracked.mirror()
    tracked.configure("changes: row_tracking")
    tracked.mirror()
    assert tracked.is_equal


def test_row_tracking_switched_on_behind_what_has_landed_means_a_rebuild(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure()
    lab.create()
    lab.mirror()
    lab.configure("changes: row_tracking\n    on_break: hold")
    with raises_row(SOURCE_BROKE, match="row tracking was off at version 1"):
        lab.mirror()
    lab.configure("changes: row_tracking")
    with raises(SettingError, ErrorCode.ROW_TRACKING_DISABLED, match="ALTER TABLE"):
        lab.mirror()
    lab.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableRowTracking = true)")
    lab.mirror()
    lab.sql("UPDATE {t} SET amount = 5 WHERE id = 1")
    lab.mirror()
    assert lab.is_equal


def test_files_that_are_vacuumed_before_they_are_read_mean_a_rebuild(tracked: Lab) -> None:
    tracked.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableDeletionVectors = false)")
    tracked.configure("changes: row_tracking\n    on_break: hold")
    tracked.mirror()
    tracked.sql("UPDATE {t} SET amount = 5 WHERE id = 1")
    vacuum(tracked)
    with raises_row(DATA_FILE_MISSING):
        tracked.mirror()
    tracked.configure("changes: row_tracking")
    tracked.mirror()
    assert tracked.is_equal
