"""Tables that are mirrored in one run do not meet in Spark: not in settings, and not in the thread's active session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests.orchestration.many_tables import ALL, KINDS, Lake
from mirror_assets_tests.scans import scanned_changes

_PLAIN, _VECTORS = KINDS[:2]
# Without a session that is active in its thread, each table that is mapped by id failed in the first run.
_FAILED_BEFORE = (("id", _PLAIN), ("none", _PLAIN), ("id", _VECTORS), ("name", _VECTORS))
_RUNS = 20


def _failed(lake: Lake) -> list[str | None]:
    return [report.error for report in lake.mirror() if report.error]


@pytest.mark.soak
def test_tables_mapped_by_id_land_beside_others(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    lake.create(_FAILED_BEFORE)
    assert _failed(lake) == []
    assert lake.differences() == []
    assert _failed(lake) == [], "the tables' sessions are used again"


def test_a_thread_that_has_called_no_spark_before_reads_a_table_mapped_by_id(
    spark: SparkSession, tmp_path: Path
) -> None:
    Lake(spark, tmp_path).create([("id", _PLAIN)])
    uri = str(tmp_path / "lake" / "plain_id")
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(lambda: scanned_changes(spark, uri, 1, 3).count()).result() == 30 + 20 + 1


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_twenty_runs_of_all_modes_and_features(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    lake.create(ALL)
    assert [error for _ in range(_RUNS) for error in _failed(lake)] == []
    assert lake.differences() == []
