"""Fixtures that many packages share: one Spark session per test run."""

from __future__ import annotations

import gc
import shutil
import signal
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import hypothesis
import pytest
from dagster._core.storage.defs_state import base as defs_state
from pyspark.sql import SparkSession

from mirror_assets.encode.session import open_session, own_session, spark_settings
from mirror_assets.lakes.azure_identity import HADOOP_AZURE
from mirror_assets.lakes.s3 import HADOOP_AWS
from mirror_assets.process import search_rarely
from mirror_assets_tests import quick_jvm
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.worlds.lakes.s3_server import S3Server
from mirror_assets_tests.worlds.onelake import LoopbackOneLake

# How long an example takes is a matter of the machine.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

# Collecting and importing 6,000 tests takes 13 seconds instead of 22: Python's default spends the rest on searching for
# garbage among objects that live to the end.
search_rarely()

# Two of its three gigabytes from the start, half of them for new objects: a heap grows by one collection of all garbage
# after the other, which take half of the collector's time while a session is young.
_HEAP = "-Xms2g -Xmn1g"

pytest_plugins = [
    "mirror_assets_tests.figures",
    "mirror_assets_tests.worlds.fixtures",
    "mirror_assets_tests.worlds.fabric.fixtures",
]


@pytest.fixture(autouse=True)
def no_storage_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances of Dagster that end in another order than they began leave a dead one behind for the process.

    One that the garbage collector ends within a test puts back what was there before it, so each test has a variable
    of its own: on another one, Dagster sets no storage.
    """
    monkeypatch.setattr(defs_state, "_current_storage", ContextVar("_current_storage", default=None))


def pytest_configure() -> None:
    """Handle SIGINT as in a terminal.

    A suite that a script starts in the background ignores it, and so do its children: Dagster's servers, which handle
    SIGTERM like SIGINT, would then never end.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Let no later search for garbage visit the tests and all that they import."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let each file run in one process, and what takes longest begin first: then no process ends long before another.

    A test marked `long` may run apart from its file. Each process has a Spark session of its own, and what is shared
    by tests of several files is made anew in each.
    """
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            apart = item.get_closest_marker("long")
            item.add_marker(pytest.mark.xdist_group(item.name if apart else item.nodeid.partition("::")[0]))
    if hasattr(config, "workerinput"):
        items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    """How long a test takes, by its marker, on one core; those without one take a few seconds of Spark's, or less."""
    marker = item.get_closest_marker("long")
    return float(marker.args[0]) if marker else float("spark" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, onelake_server: LoopbackOneLake, s3_server: S3Server
) -> Iterator[SparkSession]:
    """The process's only Spark session, with its warehouse in a folder of the run; it reaches OneLake and S3."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    reaching = onelake_server.spark_settings() | s3_server.spark_settings()
    own = {
        "spark.master": "local[2]",
        "spark.sql.warehouse.dir": str(warehouse),
        "spark.driver.extraJavaOptions": f"{_HEAP} {quick_jvm.LONG} {reaching['spark.driver.extraJavaOptions']}",
    }
    with pytest.MonkeyPatch.context() as environment:
        for name, value in onelake_server.environment().items():
            environment.setenv(name, value)  # the JVM takes them with it
        session = open_session(spark_settings(quick_jvm.SMALL_DATA | reaching | own, [HADOOP_AZURE, HADOOP_AWS]))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def adaptive_spark(spark: SparkSession) -> SparkSession:
    """A session that plans again as it goes, like users' sessions, for what depends on it.

    Only then does Spark know where shuffled rows lie when it puts partitions together, and moves them.
    """
    session = own_session(spark)
    session.conf.set("spark.sql.adaptive.enabled", "true")
    return session


@pytest.fixture(scope="session")
def _new_orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = Lab(spark, tmp_path_factory.mktemp("orders"))
    lab.create()
    return lab.root


@pytest.fixture(scope="session")
def _waiting_orders(spark: SparkSession, _new_orders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table four commits on, of which nothing is mirrored yet; its version 1 is."""
    lab = Lab(spark, tmp_path_factory.mktemp("waiting") / "lab")
    shutil.copytree(_new_orders, lab.root)
    lab.configure()
    lab.mirror()
    lab.change()
    return lab.root


@pytest.fixture(scope="session")
def _changed_orders(spark: SparkSession, _waiting_orders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table when that was mirrored, too: from version 1 to the tip, in three slices."""
    lab = Lab(spark, tmp_path_factory.mktemp("changed") / "lab")
    shutil.copytree(_waiting_orders, lab.root)
    lab.mirror()
    return lab.root


@pytest.fixture
def lab(spark: SparkSession, _new_orders: Path, _waiting_orders: Path, tmp_path: Path) -> Lab:
    """A table of ten orders at version 1, nothing mirrored yet."""
    shutil.copytree(_new_orders, tmp_path / "lab")
    made = Lab(spark, tmp_path / "lab", _waiting_orders)
    made.configure()
    return made


@pytest.fixture
def waiting(spark: SparkSession, _waiting_orders: Path, tmp_path: Path) -> Lab:
    """The table at version 5, mirrored to version 1: two slices of changes wait."""
    shutil.copytree(_waiting_orders, tmp_path / "lab")
    return Lab(spark, tmp_path / "lab")


@pytest.fixture
def mirrored(spark: SparkSession, _changed_orders: Path, tmp_path: Path) -> Lab:
    """The table at version 5, mirrored: a snapshot slice and two of changes, three landing files, nothing applied."""
    shutil.copytree(_changed_orders, tmp_path / "lab")
    return Lab(spark, tmp_path / "lab")
