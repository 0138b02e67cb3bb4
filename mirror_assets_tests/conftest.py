"""Fixtures that many rooms share: one Spark session per test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from mirror_assets.delta.session import open_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The run's only Spark session, on two cores, with its warehouse in a folder of the run."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = open_session({"spark.master": "local[2]", "spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()
