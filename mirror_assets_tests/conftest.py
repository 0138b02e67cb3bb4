"""Fixtures that many rooms share: one Spark session per test run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.delta.session import open_session, spark_settings
from mirror_assets_tests.lab import Lab

pytest_plugins = ["mirror_assets_tests.figures", "mirror_assets_tests.onelake.fixtures"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The run's only Spark session, on two cores, with its warehouse in a folder of the run."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = open_session(spark_settings({"spark.master": "local[2]", "spark.sql.warehouse.dir": str(warehouse)}))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def _new_orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = Lab(spark, tmp_path_factory.mktemp("orders"))
    lab.create()
    return lab.root


@pytest.fixture(scope="session")
def _changed_orders(spark: SparkSession, _new_orders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table six commits on; and where it was mirrored from version 1 to the tip, in three slices."""
    lab = Lab(spark, tmp_path_factory.mktemp("changed") / "lab")
    shutil.copytree(_new_orders, lab.root)
    lab.configure()
    lab.mirror()
    lab.change()
    lab.mirror()
    return lab.root


@pytest.fixture
def lab(spark: SparkSession, _new_orders: Path, tmp_path: Path) -> Lab:
    """A table of ten orders at version 1, nothing mirrored yet."""
    shutil.copytree(_new_orders, tmp_path / "lab")
    made = Lab(spark, tmp_path / "lab")
    made.configure()
    return made


@pytest.fixture
def mirrored(spark: SparkSession, _changed_orders: Path, tmp_path: Path) -> Lab:
    """The table at version 5, mirrored: a snapshot slice and two of changes, three landing files, nothing applied."""
    shutil.copytree(_changed_orders, tmp_path / "lab")
    return Lab(spark, tmp_path / "lab")
