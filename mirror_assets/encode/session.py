"""Spark sessions that read Delta tables and write landing files: their settings, and one for each table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from mirror_assets.encode.private.jvm import Jvm
from mirror_assets.encode.spark_errors import PackageRefused, SparkNotStarted
from mirror_assets.redaction import redacted, redacted_error

# Delta's Spark artefacts carry Spark's minor version in their name since Delta 4.1.
_SPARK_LINE, _SCALA = "4.2", "2.13"
_PACKAGES, _EXTENSIONS = "spark.jars.packages", "spark.sql.extensions"
_DELTA = "io.delta:delta-spark"
_MAX_TEXT = 400
_STARTING = threading.Lock()
_OWNED: dict[str, tuple[SparkContext, JavaObject]] = {}
# What Hadoop is to know begins with this among Spark's settings.
HADOOP = "spark.hadoop."


def delta_package() -> str:
    """The Maven coordinate of Delta's JARs for the installed delta-spark."""
    return f"{_DELTA}_{_SPARK_LINE}_{_SCALA}:{version('delta-spark')}"


def spark_settings(extra: Mapping[str, str] | None = None, packages: Sequence[str] = ()) -> dict[str, str]:
    """Settings of an embedded session, overridden by `extra`; Delta's default of 50 partitions costs seconds.

    `packages` are Maven coordinates that it needs beside Delta's. Packages and extensions of `extra` come behind these
    and do not replace them; an empty `spark.jars.packages` in `extra` means none at all. Raises PackageRefused.
    """
    wanted = dict(extra or {})
    settings = {
        # A task may fail three times before the job does, as on a cluster: by itself, `local[*]` allows none.
        "spark.master": "local[*,4]",
        "spark.app.name": "mirror-assets",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "3g",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # The feed is read from commits. Files of compacted ones say the same, or their writer was wrong.
        "spark.databricks.delta.deltaLog.minorCompaction.useForReads": "false",
        # VACUUM lists a folder in as many tasks, however small it is: by default 10,000, which take minutes.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
        "spark.sql.session.timeZone": "UTC",
        # Remembering where in Python each column was made costs several calls of the JVM for each.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.log.level": "ERROR",
    }
    lists = {
        _PACKAGES: _packages((delta_package(), *packages), wanted.pop(_PACKAGES, None)),
        _EXTENSIONS: _joined(("io.delta.sql.DeltaSparkSessionExtension", *_items(wanted.pop(_EXTENSIONS, "")))),
    }
    return settings | lists | wanted


def open_session(
    settings: Mapping[str, str], secrets: Mapping[str, str] | None = None, owner: str | None = None
) -> SparkSession:
    """A session of the caller's own with these settings, on the running Spark context or on a new one.

    What is set on it, by its holder or by Delta, concerns no other session; nothing is set on one that runs already.
    Settings of the context count only where it starts with them. `secrets` are settings that only the session gets:
    those of a new context stand in the JVM's command line, which every user of the machine sees.

    An `owner`, such as a table, gets the same session each time in a process, with these settings anew: Spark does not
    give back the memory of a session that has read Delta tables, half a megabyte. Spark Connect has one session a
    process: it is shared. Raises SparkNotStarted.
    """
    hidden = secrets or {}
    # At DEBUG py4j logs each call with its arguments, settings among them.
    logging.getLogger("py4j").setLevel(logging.INFO)
    try:
        with _STARTING:
            shared = _running() or _started(settings)
        if not hasattr(shared, "_jsparkSession"):
            for name, value in hidden.items():
                shared.conf.set(name, value)
            return shared
        # Hadoop takes what a session has by the name that it knows itself.
        own = {**settings, **{name.removeprefix(HADOOP): value for name, value in hidden.items()}}
        # As Spark's own builder does it for a running session: what can't be changed any more is passed over.
        return SparkSession(shared.sparkContext, _own(shared, owner), own)
    except (PySparkException, Py4JJavaError) as error:
        raise SparkNotStarted(_first_words(error)) from redacted_error(error)


def _own(shared: SparkSession, owner: str | None) -> JavaObject:
    """The owner's session of this context as Scala has it, a new one if there is none, or no owner."""
    if owner is None:
        return Jvm(shared).session.newSession()
    with _STARTING:
        context, known = _OWNED.get(owner, (None, None))
        if context is not shared.sparkContext:
            known = Jvm(shared).session.newSession()
            _OWNED[owner] = (shared.sparkContext, known)
    return known


def _running() -> SparkSession | None:
    """A session of the running context; which one does not matter, as a new one takes over none of its settings."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _started(settings: Mapping[str, str]) -> SparkSession:
    """The session of a new context, or of Spark Connect."""
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _first_words(error: Exception) -> str:
    """What Spark says first; py4j begins with a line of its own."""
    lines = [line.strip(" :") for line in redacted(str(error)).splitlines() if line.strip(" :")]
    behind = 1 if isinstance(error, Py4JJavaError) else 0
    return "".join(lines[behind : behind + 1]).rstrip(".")[:_MAX_TEXT]


def _packages(ours: Sequence[str], wanted: str | None) -> str:
    """Our coordinates, then those that are wanted; another version of an artefact of ours takes its place."""
    if wanted is not None and not _items(wanted):
        return ""
    theirs = _items(wanted or "")
    for coordinate in theirs:
        if coordinate.startswith(_DELTA) and coordinate != delta_package():
            raise PackageRefused(coordinate, delta_package())
    replaced = {_artefact(coordinate) for coordinate in theirs if coordinate not in ours}
    return _joined((*(own for own in ours if _artefact(own) not in replaced), *theirs))


def _artefact(coordinate: str) -> str:
    """`group:name` of `group:name:version`."""
    return coordinate.rpartition(":")[0]


def _items(listed: str) -> list[str]:
    return [item.strip() for item in listed.split(",") if item.strip()]


def _joined(items: Iterable[str]) -> str:
    """The items, each once, as Spark writes lists."""
    return ",".join(dict.fromkeys(items))
