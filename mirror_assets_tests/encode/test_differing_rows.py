"""Sums of hashes by bucket of keys, and how they change between versions of a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from mirror_assets.encode.private.table_version import TableVersion, read_version
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.differing_rows import BucketTotals, Sides, bucket_totals, differing_rows, totals_change
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.smoke import smoke_first


def _totals(rows: DataFrame) -> BucketTotals:
    return bucket_totals(rows.toDF("c0", "c1"), ["c0"])


def _change(before: TableVersion, after: TableVersion) -> BucketTotals:
    return totals_change(*(_totals(rows.frame.select("id", "amount")) for rows in after.differences(before)))


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Lab:
    """Two files of ten rows each, with deletion vectors."""
    made = Lab(spark, tmp_path)
    rows = spark.range(0, 20, 1, 2).selectExpr("id", "CAST(id AS DOUBLE) AS amount")
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(made.uri)
    return made


@pytest.mark.parametrize("commits", smoke_first([3, 1, 2, 4, 5, 6]))
def test_totals_change_by_exactly_the_differing_rows(lab: Lab, commits: int) -> None:
    """Forwards and backwards: vectors added, extended and removed, files rewritten, and rows that come back."""
    lab.sql(
        "DELETE FROM {t} WHERE id IN (3, 12)",
        "UPDATE {t} SET amount = -0.0 WHERE id IN (0, 4)",
        "OPTIMIZE {t}",
        "INSERT INTO {t} VALUES (3, 3.0), (3, 3.0)",
        "DELETE FROM {t} WHERE id >= 10",
        "RESTORE {t} TO VERSION AS OF 1",
    )
    versions = range(7)
    opened = [TableVersion.opened(lab.spark, lab.uri, at) for at in versions]
    whole = {at: _totals(read_version(lab.spark, lab.uri, at)) for at in versions}
    for before, after in ((at, at + step) for at in versions for step in (commits, -commits) if at + step in versions):
        change = _change(opened[before], opened[after])
        zero = (0,) * 4
        expected = {
            bucket: tuple(b - a for a, b in zip(old, new, strict=True))
            for bucket in whole[before].keys() | whole[after].keys()
            if (old := whole[before].get(bucket, zero)) != (new := whole[after].get(bucket, zero))
        }
        assert change == expected, (before, after)


def test_totals_change_by_the_differing_rows_of_files_without_statistics(spark: SparkSession, tmp_path: Path) -> None:
    made = Lab(spark, tmp_path)
    made.create_without_statistics()
    made.sql("DELETE FROM {t} WHERE id = 3")
    before, after = (TableVersion.opened(spark, made.uri, at) for at in (0, 1))
    change = _change(before, after)
    assert sum(total[0] for total in change.values()) == -1
    assert len(change) == 1


def test_only_rows_of_differing_buckets_are_compared(spark: SparkSession) -> None:
    source = spark.range(200).selectExpr("id AS c0", "id AS c1")
    mirror = source.selectExpr("c0", "IF(c0 < 100, -1, c1) AS c1")
    ours, theirs = (bucket_totals(side, ["c0"]) for side in (source, mirror))
    differing = sorted(bucket for bucket in ours if ours[bucket] != theirs[bucket])
    assert 90 < len(differing) <= 100
    sides = Sides(source, mirror, ("c0",))
    found = [differing_rows(sides, frozenset(chosen)).count() for chosen in (differing, differing[:9])]
    assert found[0] == 100
    assert 9 <= found[1] < 20
