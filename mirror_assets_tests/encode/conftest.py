"""Random histories that the tests of this package only read, each made once per process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests.encode.histories import History, random_history


@pytest.fixture(scope="session")
def history_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, bool], History]:
    """Returns the history of seven commits with a seed, with or without deletion vectors."""

    @cache
    def made(seed: int, deletion_vectors: bool) -> History:
        folder = tmp_path_factory.mktemp("history") / "t"
        return random_history(spark, folder, seed=seed, commits=7, deletion_vectors=deletion_vectors)

    return made
