"""Which rows of two versions are read to find out in what they differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.encode.private import table_version
from mirror_assets.encode.private.table_version import TableVersion, has_own_reader, read_files
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.batching import FileChunk
from mirror_assets_tests.errors import raises
from mirror_assets_tests.lab import Lab


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Lab:
    """Version 0: a file of ids 0 to 99, another of 100 to 199, with deletion vectors."""
    made = Lab(spark, tmp_path)
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    spark.range(0, 200, 1, 2).write.format("delta").options(**properties).save(made.uri)
    return made


def read(lab: Lab, version: int, other: int) -> list[int]:
    here, there = (TableVersion.opened(lab.spark, lab.uri, at) for at in (version, other))
    found = here.differences(there)[0]
    assert sorted(found.frame.collect()) == sorted(there.differences(here)[1].frame.collect())
    return sorted(row["id"] for row in found.frame.collect())


def test_the_private_classes_are_used_with_the_delta_on_which_they_are_proved(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_own_reader(lab.spark)
    monkeypatch.setattr(table_version, "_PROVED_VERSIONS", frozenset({"9.9.9"}))
    assert not has_own_reader(lab.spark)
    with raises(SettingError, ErrorCode.SESSION_UNFIT, match=r"Delta 9\.9\.9; the Spark session has Delta \d"):
        read_files(lab.spark, lab.uri, 0, FileChunk(0, 1, 0, 1, 2, 200, 1))


def test_of_a_file_with_another_vector_only_the_rows_are_read_that_the_other_version_hides(lab: Lab) -> None:
    lab.sql(
        "DELETE FROM {t} WHERE id IN (3, 99, 140)",
        "DELETE FROM {t} WHERE id IN (4, 98)",
        "RESTORE {t} TO VERSION AS OF 1",
    )
    assert read(lab, 0, 2) == [3, 4, 98, 99, 140]
    assert read(lab, 1, 2) == [4, 98]
    assert read(lab, 3, 2) == [4, 98]
    assert read(lab, 2, 3) == read(lab, 1, 3) == []


def test_a_file_that_the_other_version_has_not_is_read_whole_but_for_its_hidden_rows(lab: Lab) -> None:
    lab.sql("DELETE FROM {t} WHERE id = 7", "DELETE FROM {t} WHERE id < 100", "INSERT INTO {t} VALUES (300)")
    assert read(lab, 1, 2) == [id_ for id_ in range(100) if id_ != 7]
    assert read(lab, 3, 0) == [300]
