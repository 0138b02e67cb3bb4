"""Histories at random: after every step nothing is lost, doubled or partial, and each ends equal to its source."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from pyspark.sql import SparkSession

from mirror_assets_tests import figures
from mirror_assets_tests.histories.machine import PROOF, Histories


def run(spark: SparkSession, root: Path, histories: int, steps: int) -> None:
    """Run that many histories. A failure is not made smaller: that would take hours of Spark."""
    numbers, began = itertools.count(), time.monotonic()
    profile = settings(
        max_examples=histories,
        stateful_step_count=steps,
        deadline=None,
        phases=(Phase.reuse, Phase.generate),
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )

    class Next(Histories):
        def __init__(self) -> None:
            super().__init__(spark, root / str(next(numbers)))

    run_state_machine_as_test(Next, settings=profile)
    figures.report(PROOF, "seconds", time.monotonic() - began)


def test_every_history_ends_equal_to_its_source(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, histories=3, steps=25)


@pytest.mark.soak
def test_many_long_histories_end_equal_to_their_source(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, histories=60, steps=60)
