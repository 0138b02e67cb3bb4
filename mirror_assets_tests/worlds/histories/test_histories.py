"""Histories at random: after every step nothing is lost, doubled or partial, and each ends equal to its source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.histories.machine import ChoosingHistories, run
from mirror_assets_tests.worlds.histories.setup import SALT, Way

# Many statements in one test: on a machine that others use, they may take minutes.
pytestmark = [pytest.mark.timeout(900), pytest.mark.long(30)]
# Histories that hold a good deal each; a seed that makes one fail belongs here until it is a test of its own.
SEEDS = {Way.FEED: 8, Way.FILES: 5, Way.TRACKED: 6, Way.APPENDS: 90, Way.KEYLESS: 3}
CHOOSING_SEEDS = {Way.FEED: 1, Way.FILES: 2, Way.TRACKED: 3, Way.COMPACT: 4, Way.APPENDS: 5, Way.KEYLESS: 6}


@pytest.mark.parametrize("way", smoke_first(list(SEEDS), 2), ids=lambda way: way.value)
def test_every_history_ends_equal_to_its_source(adaptive_spark: SparkSession, tmp_path: Path, way: Way) -> None:
    run(adaptive_spark, tmp_path, way, histories=1, steps=3, seed=SEEDS[way])


# Histories whose condition makes rows enter and leave the mirror.
@pytest.mark.parametrize("way", smoke_first(list(CHOOSING_SEEDS), 2), ids=lambda way: way.value)
def test_every_history_ends_equal_to_the_chosen_rows_and_values(
    adaptive_spark: SparkSession, tmp_path: Path, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALT", SALT)
    run(adaptive_spark, tmp_path, way, histories=1, steps=3, seed=CHOOSING_SEEDS[way], machine=ChoosingHistories)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("way", Way, ids=lambda way: way.value)
def test_many_long_histories_end_equal_to_their_source(adaptive_spark: SparkSession, tmp_path: Path, way: Way) -> None:
    run(adaptive_spark, tmp_path, way, histories=10, steps=30)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("way", Way, ids=lambda way: way.value)
def test_many_histories_end_equal_to_the_chosen_rows_and_values(
    adaptive_spark: SparkSession, tmp_path: Path, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALT", SALT)
    run(adaptive_spark, tmp_path, way, histories=5, steps=12, machine=ChoosingHistories)
