"""Operations that a mirror can't follow: each is a break, found in the log before Spark reads anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.format import MarkerCounts
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.worlds.operations.breaks import BY_RUST, BY_SPARK, Breaking, break_behind, create
from mirror_assets_tests.worlds.operations.features import RUST
from mirror_assets_tests.worlds.operations.history import mirror_and_compare
from mirror_assets_tests.worlds.operations.source import Source

_FOLLOWED_BY_CHANGES = ("column renamed", "type widened", "decimal widened")


@pytest.mark.parametrize(("begin", "breaking"), [(create, BY_SPARK), (RUST.create, BY_RUST)], ids=["Spark", "delta-rs"])
def test_every_operation_that_cannot_be_followed_is_found_in_the_log(
    spark: SparkSession, tmp_path: Path, begin: Callable[[Source], None], breaking: Sequence[Breaking]
) -> None:
    source = Source(spark, str(tmp_path / "orders"))
    begin(source)
    wrong = [found for one in breaking if (found := _mismatch(source, one))]
    assert wrong == []


def _mismatch(source: Source, breaking: Breaking) -> str | None:
    """What is wrong with the break that the operation makes, if anything."""
    before = DeltaLog(source.uri).state()
    breaking.do(source)
    found = break_behind(source, before)
    return None if found and found.kind is breaking.kind else f"{breaking.name}: {found}, not {breaking.kind}"


def test_a_mirror_goes_on_behind_a_rebuild(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure()
    source = Source(spark, lab.uri)
    create(source)
    list(mirror_and_compare(lab))
    for breaking in BY_SPARK:
        if breaking.name in _FOLLOWED_BY_CHANGES:
            breaking.do(source)
    assert list(mirror_and_compare(lab)) == []
    source.sql(
        "UPDATE {t} SET part = 5000000000, amount = 9999999999.99, title = 'new' WHERE id = 1",
        "DELETE FROM {t} WHERE id IN (2, 3)",
    )
    (changes,) = mirror_and_compare(lab)
    assert (changes.record.epoch, changes.record.markers) == (2, MarkerCounts(updates=1, deletes=2))
