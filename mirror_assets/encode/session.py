"""Opens Spark sessions that read Delta tables and write landing files: one per table, all on one Spark context."""

from __future__ import annotations

import logging
import os
import pwd
import re
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast
from weakref import WeakKeyDictionary, WeakSet

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from mirror_assets.byte_settings import CONTEXT_SETTINGS, HADOOP, context_unfit, require_fixed, session_settings
from mirror_assets.encode.connect import remote_beside, remote_session
from mirror_assets.encode.errors import JARS_MISSING, JARS_UNKNOWN, MAVEN_UNREACHABLE, spark_not_started
from mirror_assets.encode.jvm import Jvm
from mirror_assets.encode.machine import can_write, require_machine
from mirror_assets.encode.spark_start import EXCLUDES, PACKAGES, UTF_8_LOCALE, QuickStart, resolving_alone, start_jvm
from mirror_assets.encode.spark_version import DELTA, REMOTE, delta_package, has_delta, require_named, with_version
from mirror_assets.process import search_as_usual, user_cache
from mirror_assets.redaction import redacted, redacted_error
from mirror_assets.spark_api import SPARK_ERRORS, is_classic, settings_of

_EXTENSIONS, _DELTA_EXTENSION = "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG, _DELTA_CATALOG = "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
# Dependencies of Delta's JARs that every Spark has, in its own version: 50 of 87 MB to download.
_IN_SPARK = ("org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime")
_MAX_TEXT = 400
_NOT_BUILT, _CAUSE = "Error while instantiating", re.compile(r"Caused by: [\w.$]+: (.+)")
# Lines of the JVM that are read when it doesn't start, and those in the message.
_READ_LINES, _LINES = 1000, 12
_NOT_RESOLVED = "unresolved dependency"
# Ivy's, for Maven Central if it doesn't respond; if it lacks the package, another repository may still not respond.
_UNREACHABLE = re.compile(r"(?:Host |Server access error at url https://)(?!\S*spark-packages)\S+(?: not found| \()")
_STARTING = threading.Lock()
_OWNED: dict[str, tuple[SparkContext, JavaObject]] = {}
# Contexts whose settings were checked.
_CHECKED: WeakSet[SparkContext] = WeakSet()
# The settings of the newest session of a context, also as a map of its JVM: most sessions have the same.
_GIVEN: WeakKeyDictionary[SparkContext, tuple[dict[str, str], JavaObject]] = WeakKeyDictionary()
_COORDINATION = f"{HADOOP}outputCommitCoordination.enabled"
# A cluster's core-site.xml has these, and a Spark on this machine can't use them: its file system, in which the context
# would look for the warehouse before a session has another, and codecs of JARs that only the cluster has.
_NO_CLUSTER = {f"{HADOOP}fs.defaultFS": "file:///", f"{HADOOP}io.compression.codecs": ""}


def spark_settings(
    extra: Mapping[str, str] | None = None, packages: Sequence[str] = (), jars_folder: Path | None = None
) -> dict[str, str]:
    """Return the settings of an embedded session; `extra` overrides them.

    `packages` are Maven coordinates that it needs beside Delta's, those of Hadoop without a version. Packages and
    extensions of `extra` are appended to the default ones, but an empty `spark.jars.packages` in `extra` removes all
    packages. With `jars_folder`, their JARs come from there. Where no Delta fits the
    installed Spark, it starts without: only Delta's own reader needs it. For a Spark Connect server, only `extra` is
    returned. Raises JARS_MISSING.
    """
    wanted = dict(extra or {})
    if REMOTE in wanted:
        return wanted
    delta = delta_package()
    settings = {
        # A task may fail three times before its job fails, as on a cluster; plain `local[*]` allows no failure.
        "spark.master": "local[*,4]",
        EXCLUDES: _joined(_IN_SPARK),
        "spark.app.name": "mirror-assets",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "3g",
        # The tasks of a small slice don't wait until all of a large one's have begun.
        "spark.scheduler.mode": "FAIR",
        # Delta's default, 50 partitions, costs seconds.
        "spark.databricks.delta.snapshotPartitions": "2",
        # VACUUM lists a folder with this many tasks, however small it is; the default, 10,000 tasks, takes minutes.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
        # Only the UI shows the text of a plan, and writing it takes milliseconds of each statement.
        "spark.sql.ui.explainMode": "simple",
        # A slice has about eight compiled classes: with Spark's default, 100, a run over many tables compiles them
        # again for every slice.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Recording the Python call site of each column costs several JVM calls per column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Rows are taken out of a batch one by one: the batch of a wide table has to fit the processor's cache. With
        # Spark's 4,096 rows, 200 columns take a fifth longer; narrow tables don't care (docs/performance.md).
        "spark.sql.parquet.columnarReaderBatchSize": "1024",
        "spark.log.level": "ERROR",
        # No session can set this one (`CONTEXT_SETTINGS`): a context that we start has it from the start.
        _COORDINATION: "true",
        # PySpark's only one, whatever spark-defaults.conf has.
        "spark.submit.deployMode": "client",
        # Executors encode file names as their locale says; the one of this process is `start_jvm`'s.
        "spark.executorEnv.LC_ALL": UTF_8_LOCALE,
    }
    lists = {PACKAGES: _merged_packages((*([delta] if delta else ()), *map(with_version, packages)), wanted)}
    # With a class that isn't there, Spark's catalog could not even read a Parquet file.
    if has_delta() or DELTA in lists[PACKAGES] or "delta-spark" in wanted.get("spark.jars", ""):
        lists[_EXTENSIONS] = _joined((_DELTA_EXTENSION, *_items(wanted.pop(_EXTENSIONS, ""))))
        settings[_CATALOG] = _DELTA_CATALOG
    if jars_folder is not None:
        jars = jars_in(jars_folder, _items(lists[PACKAGES]))
        lists |= {PACKAGES: "", "spark.jars": _joined((*map(str, jars), *_items(wanted.pop("spark.jars", ""))))}
    return settings | lists | wanted


def open_session(
    settings: Mapping[str, str], secrets: Mapping[str, str] | None = None, owner: str | None = None
) -> SparkSession:
    """Return a session with these settings, separate from all others, on the running Spark context or on a new one.

    It also has the settings that decide bytes (`byte_settings`). Settings of the Spark context take effect only if this
    call starts it. `secrets` are set on the session alone: a new context's settings appear in the JVM's command line,
    which every user of the machine can read.

    An `owner`, such as a table's name, gets the same session on each call in a process, with the settings applied
    again: Spark never frees the half megabyte that a session holds once it has read Delta tables. Raises
    SPARK_NOT_STARTED, CONNECT_UNNAMED, CONNECT_UNFIT, SETTING_FIXED and context_unfit.
    """
    require_fixed(settings)
    if REMOTE in settings:
        return remote_session({**settings, **(secrets or {})}, owner)
    require_named(settings)
    # At level DEBUG, py4j logs each call with its arguments, and settings may be secrets.
    logging.getLogger("py4j").setLevel(logging.INFO)
    _hide_expressions()
    try:
        with _STARTING:
            shared = _running_session() or _start(settings)
        require_context(shared)
        return _with_settings(shared, {**settings, **(secrets or {})}, owner)
    except SPARK_ERRORS as error:
        raise spark_not_started(_first_line(error)) from redacted_error(error)


def own_session(handed: SparkSession, owner: str | None = None) -> SparkSession:
    """Return a session of this package that is made from one of a project, which stays unchanged.

    It has the project's settings, because they may say how Spark reaches stores, and those that decide bytes. Raises
    CONNECT_UNFIT and context_unfit.
    """
    if not is_classic(handed):
        return remote_beside(handed, owner)
    _hide_expressions()
    require_context(handed)
    return _with_settings(handed, settings_of(handed), owner)


def _with_settings(shared: SparkSession, settings: Mapping[str, str], owner: str | None) -> SparkSession:
    """Return the owner's session on the context of `shared`, with these settings and those that decide bytes."""
    context, wanted = shared.sparkContext, session_settings(settings)
    known, given = _GIVEN.get(context, ({}, None))
    search_as_usual()
    if given is None:
        Jvm(shared).hide_values()
    if known != wanted:
        given = Jvm(shared).java_map(wanted)
        _GIVEN[context] = (wanted, given)
    # Like Spark's builder on a running context, this ignores settings that can't change any more. PySpark would send a
    # dictionary in a request for each of its 200 settings, at each slice.
    return SparkSession(context, _session_of(shared, owner), cast("dict[str, str]", given))


def require_context(spark: SparkSession) -> None:
    """Raise context_unfit if the session's context decides bytes by a setting that no session can change."""
    context = spark.sparkContext
    if context in _CHECKED:
        return
    # A session's view of Hadoop's settings, those of XML files included, has no public method.
    hadoop = Jvm(spark).session.sessionState().newHadoopConf()
    for setting in CONTEXT_SETTINGS:
        # Spark reads the first kind from its own settings, and Hadoop the second kind from its XML files as well.
        found = context.getConf().get(setting.name) if setting.value else hadoop.get(setting.name.removeprefix(HADOOP))
        if found is not None and found != setting.value:
            raise context_unfit(setting, found)
    _CHECKED.add(context)


def _hide_expressions() -> None:
    """Don't log the query of an error: an expression may have secrets. The error itself is raised, without them."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def spark_has_started() -> bool:
    """Return whether this process has a Spark context."""
    return _running_session() is not None


def spark_has_ended() -> bool:
    """Return whether the JVM that this process started has ended: nothing in the process can use Spark any more."""
    started = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 pyspark has no public way to ask
    return isinstance(started, subprocess.Popen) and started.poll() is not None


def _merged_packages(ours: Sequence[str], wanted: dict[str, str]) -> str:
    """Take the Maven coordinates out of `wanted` and join them to ours; those of the same artefact replace ours."""
    theirs = _items(wanted.pop(PACKAGES, ",".join(ours)))
    if not theirs:
        return ""
    # By `group:name` of `group:name:version`; Delta's name has the version of Spark, or not.
    replaced = {coordinate.rpartition(":")[0] for coordinate in theirs if coordinate not in ours}
    has_other = any(coordinate.startswith(DELTA) and coordinate not in ours for coordinate in theirs)
    kept = (own for own in ours if own.rpartition(":")[0] not in replaced and not (has_other and own.startswith(DELTA)))
    return _joined((*kept, *theirs))


def _items(listed: str) -> list[str]:
    return [item.strip() for item in listed.split(",") if item.strip()]


def _joined(items: Iterable[str]) -> str:
    """Return the distinct items as a comma-separated list."""
    return ",".join(dict.fromkeys(items))


def _running_session() -> SparkSession | None:
    """Return any session of the running context, or None; new sessions don't inherit its settings."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _start(settings: Mapping[str, str]) -> SparkSession:
    """Start a Spark context and return its session. Raises MACHINE_UNFIT, MAVEN_UNREACHABLE and SPARK_NOT_STARTED."""
    require_machine(settings)
    if settings.get("spark.master", "").startswith("local"):
        settings = {**settings, **_NO_CLUSTER}
    quick, printed = QuickStart.of(settings), deque[str](maxlen=_READ_LINES)
    with ExitStack() as alone:
        if quick.started().get(PACKAGES):
            alone.enter_context(resolving_alone())
        # Another process may have resolved the packages while this one waited.
        started, builder = quick.started(), SparkSession.builder
        if started.get(PACKAGES) and not can_write(Path(pwd.getpwuid(os.getuid()).pw_dir)):
            # Ivy's default is in this folder, whatever HOME is.
            started.setdefault("spark.jars.ivy", str(user_cache() / "ivy"))
        for name, value in started.items():
            builder = builder.config(name, value)
        try:
            start_jvm(started, printed)
            session = builder.getOrCreate()
        except (*SPARK_ERRORS, ConnectionError) as error:  # the second where the JVM has ended
            lines = [redacted(line) for line in printed.copy()]  # the JVM may still print
            if lines and _NOT_RESOLVED in lines[-1] and any(map(_UNREACHABLE.search, lines)):
                raise MAVEN_UNREACHABLE(packages=_items(started[PACKAGES])) from redacted_error(error)
            raise spark_not_started(_first_line(error), lines[-_LINES:]) from redacted_error(error)
        quick.keep_jars(session)
    return session


def _session_of(shared: SparkSession, owner: str | None) -> JavaObject:
    """Return the owner's Scala session on this context; create one on its first call, and on each without an owner."""
    if owner is None:
        return Jvm(shared).session.newSession()
    with _STARTING:
        context, known = _OWNED.get(owner, (None, None))
        if context is not shared.sparkContext:
            known = Jvm(shared).session.newSession()
            _OWNED[owner] = (shared.sparkContext, known)
    return known


def _first_line(error: Exception) -> str:
    """Return the first line of the message; for py4j's errors the second, because py4j adds one in front.

    A session that can't be built has the reason, such as the name of a setting, in its cause only.
    """
    cause = _CAUSE.search(redacted(str(error))) if _NOT_BUILT in str(error) else None
    if cause is not None:
        return cause[1][:_MAX_TEXT]
    lines = [line.strip(" :") for line in redacted(str(error)).splitlines() if line.strip(" :")]
    behind = 1 if isinstance(error, Py4JJavaError) else 0
    return "".join(lines[behind : behind + 1]).rstrip(".")[:_MAX_TEXT]


def jars_in(folder: Path, packages: Sequence[str]) -> tuple[Path, ...]:
    """Return the folder's JARs. Raises JARS_MISSING unless those of the packages (`group:name:version`) are there."""
    jars = tuple(sorted(folder.glob("*.jar")))
    wanted = {package: "-".join(package.split(":")[1:3]) for package in packages}
    lacking = [package for package, name in wanted.items() if not any(jar.stem.endswith(name) for jar in jars)]
    if lacking:
        raise JARS_MISSING(folder=folder, packages=lacking)
    return jars


def fill_jar_folder(folder: Path, settings: Mapping[str, str]) -> tuple[Path, ...]:
    """Copy the JARs of the settings' packages and their dependencies into the folder; return them.

    Starts Spark to resolve unknown packages. Raises JARS_UNKNOWN if Spark doesn't report the JARs, SPARK_NOT_STARTED,
    and OSError.
    """
    if not QuickStart.of(settings).jars:
        open_session(settings)
    jars = QuickStart.of(settings).jars
    if not jars:
        raise JARS_UNKNOWN(packages=settings.get(PACKAGES) or "no packages")
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(Path(shutil.copy(jar, folder)) for jar in jars)


def finished_share() -> float:
    """Return the share of the tasks that have ended, of the stages that Spark runs now; 0 if it runs none here."""
    context = SparkContext._active_spark_context  # noqa: SLF001 the public way would start one
    if context is None or spark_has_ended():
        return 0.0
    try:
        tracker = context.statusTracker()
        stages = [found for stage in tracker.getActiveStageIds() if (found := tracker.getStageInfo(stage))]
    except (Py4JError, OSError, AttributeError):  # it ends meanwhile
        return 0.0
    tasks = sum(stage.numTasks for stage in stages)
    return sum(stage.numCompletedTasks for stage in stages) / tasks if tasks else 0.0
