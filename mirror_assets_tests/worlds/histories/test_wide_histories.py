"""Mirrors stay equal to their sources while features change and odd commits appear inside a slice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests import figures
from mirror_assets_tests.worlds.histories.setup import Way
from mirror_assets_tests.worlds.histories.wide import WideHistory

_PROOF = "wide histories"
# All that a history does follows from its seed and its way.
_SEEDS = {Way.FEED: 101, Way.COMPACT: 102, Way.FILES: 103, Way.TRACKED: 104, Way.KEYLESS: 105, Way.APPENDS: 106}
_MANY = tuple((seed, tuple(Way)[seed % len(Way)]) for seed in range(1, 51))


def _run(spark: SparkSession, root: Path, seed: int, way: Way, bursts: int) -> None:
    outcome = WideHistory(spark, root, seed, way).run(bursts)
    for figure, amount in outcome.figures().items():
        figures.report(_PROOF, figure, amount, case=way.value)
    assert outcome.failure is None, "\n".join([outcome.failure or "", *outcome.steps])


@pytest.mark.long(30)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("way", "seed"), [pytest.param(way, seed, id=way.value) for way, seed in _SEEDS.items()])
def test_a_mirror_follows_changes_of_features_within_a_slice(
    adaptive_spark: SparkSession, tmp_path: Path, way: Way, seed: int
) -> None:
    _run(adaptive_spark, tmp_path, seed, way, bursts=4)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("seed", "way"), _MANY, ids=lambda value: getattr(value, "value", value))
def test_fifty_mirrors_follow_long_histories_of_changing_features(
    adaptive_spark: SparkSession, tmp_path: Path, seed: int, way: Way
) -> None:
    _run(adaptive_spark, tmp_path, seed, way, bursts=12)
