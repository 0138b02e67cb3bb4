"""Errors of encoding: the installed Spark and its session, what a query meets, and rows that can't land.

Errors of a source that Spark reports are rows of `source/errors.py`; `spark_errors.py` translates Spark's exceptions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mirror_assets.errors import ErrorCode, ErrorRow, RetryError, SettingError, StopError

_INSTALL = "pip install 'mirror-assets[spark]'"

SPARK_MISSING = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A Python package of Spark is not installed.",
    "the Python package {package} is not installed, and this step needs Spark.",
    f"run `{_INSTALL}`; with a Spark of the platform's own, see docs/spark-versions.md.",
    "mirror-assets doctor --table TABLE",
)
SPARK_UNSUPPORTED = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "The installed PySpark is older than 3.5.",
    "PySpark {found} is installed, and mirror_assets needs Spark 3.5 or newer.",
    f"run `{_INSTALL}` in an environment of its own, or choose a runtime with a newer Spark.",
    "mirror-assets doctor --table TABLE",
)
CONNECT_UNNAMED = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "The environment names a Spark Connect server, and mirror.yaml doesn't.",
    "SPARK_REMOTE, or the API mode of Spark, asks for Spark Connect, and `spark.remote` names no server.",
    "name the server in `spark.remote`, or unset SPARK_REMOTE, SPARK_API_MODE and spark.api.mode.",
    "mirror-assets doctor --table TABLE",
)
CONNECT_UNFIT = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A Spark Connect server, or its session, that can't be used.",
    "the Spark Connect server can't be used: {why}.",
    "{next_step}",
    "mirror-assets doctor --table TABLE",
)
JARS_MISSING = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A folder of JARs lacks some that the session needs.",
    "spark.jars_folder {folder} has no JAR of {packages}.",
    "run `mirror-assets download-jars FOLDER` on a machine that can download them, and copy the folder here.",
    "mirror-assets doctor --table TABLE",
)
JARS_UNKNOWN = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "Spark doesn't report the JARs of these packages.",
    "can't determine the JARs of {packages}.",
    "remove spark.jars, spark.jars.ivy and spark.jars.packages from spark.settings, use a local master, and retry.",
    "mirror-assets doctor --table TABLE",
)
MACHINE_UNFIT = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A variable, a folder, the Java or the user of this machine is unfit for Spark. No JVM was started.",
    "Spark can't start on this machine: {why}.",
    "{next_step}",
    "mirror-assets doctor",
)
MAVEN_UNREACHABLE = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "Spark has to download JARs, and this machine can't reach Maven.",
    "Maven can't be reached from this machine, and Spark needs JARs of {packages}.",
    "run `mirror-assets download-jars FOLDER` where there is a network, copy the folder here, and set "
    "`spark.jars_folder` to it. For a proxy, set -Dhttps.proxyHost and -Dhttps.proxyPort in "
    "spark.driver.extraJavaOptions of `spark.settings`: Java doesn't read proxy variables.",
    "mirror-assets download-jars FOLDER",
)
SPARK_NOT_STARTED = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "Spark did not start, or rejected a setting.",
    "Spark did not start: {why}.{said}",
    "correct what the message names, in `spark.settings`{variables} or on the machine that runs Spark; then run again.",
    "mirror-assets doctor --table TABLE",
)
# Variables that Spark's scripts or the JVM read when they start.
_VARIABLES = (
    *("JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
    *("PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DIST_CLASSPATH"),
    *("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS"),
)


def spark_not_started(why: str, printed: Sequence[str] = ()) -> SettingError:
    """Return SPARK_NOT_STARTED with the variables that are set; `printed` are the JVM's last lines, without secrets."""
    said = "\n  ".join((" The JVM's last lines:", *printed)) + "\n" if printed else ""
    variables = "".join(f", {name}" for name in _VARIABLES if os.environ.get(name))
    return SPARK_NOT_STARTED(why=why, said=said, variables=variables)


FILE_SYSTEM_MISSING = ErrorRow(
    ErrorCode.SPARK_INTERRUPTED,
    RetryError,
    "A Spark that was started before a table in such a store was known.",
    "{table}: it is stored at {scheme}://, and Spark was started without the JARs for it.",
    "start the process again, which will load them; to have them from the start, name the store in `stores`.",
    "mirror-assets run --table TABLE",
)
KEYS_UNUSABLE = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A Spark that can't use the keys that a catalog hands out.",
    "{table}: its catalog hands out keys, and {why} can't use them.",
    "run this table with a Spark of this program's own, from version 4.0 on; or name its store in `stores` with a "
    "credential that may read it, and set `credentials: stores` for the catalog.",
    "mirror-assets doctor --table TABLE",
)
TYPE_UNREADABLE = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A column with a type, or a widening of its type, that the Spark in use doesn't have.",
    "{place}: this Spark can't read the column `{column}`: {why}.",
    "run with a newer Spark (docs/spark-versions.md has what each can read), or rewrite the column at the source.",
    "mirror-assets doctor --table TABLE",
)
SPARK_DISK_FULL = ErrorRow(
    ErrorCode.STORE_FULL,
    RetryError,
    "No space was left in a folder of Spark. Nothing was published.",
    "{place}: no space left for Spark: {why}.",
    "free space on the named disk, then run again; nothing was lost.",
    "df -h\nmirror-assets run",
)
SPARK_DENIED = ErrorRow(
    ErrorCode.STORE_DENIED,
    SettingError,
    "A store, or the file system, denied Spark access.",
    "{place}: the store denied Spark access: {why}.",
    "grant the account that Spark runs as read and write access to the named path, or correct its credentials; then "
    "run again.",
    "mirror-assets doctor --table TABLE    # as this process and as Spark",
)
EXPRESSION_FAILED = ErrorRow(
    ErrorCode.EXPRESSION_FAILED,
    SettingError,
    "`where` or an expression of `columns` can't be computed for a row, such as a division by zero or a text that"
    " is no number. The message has Spark's condition, and not the row's values.",
    "{place}: an expression of `columns`, or `where`, fails for a row: {condition}.",
    "correct the expression, for example with try_cast, try_divide or nullif, then run again; nothing was lost. "
    "`mirror-assets preview` shows its values.",
    "mirror-assets preview TABLE --limit 100",
)
ROWS_MISPLACED = ErrorRow(
    ErrorCode.ROWS_MISPLACED,
    StopError,
    "Spark wrote rows into other parts than planned.",
    "{table}: Spark wrote {rows} rows of versions {first} to {last} into other files than planned; nothing of the"
    " slice was published.",
    "run again; if it repeats, remove settings that move partitions from `spark.settings`, and report it.",
    "mirror-assets run --table TABLE",
)
DUPLICATE_KEY = ErrorRow(
    ErrorCode.DUPLICATE_KEY,
    StopError,
    "The source has several rows with the same key; a mirror with keys can hold only one of them.",
    "{table}: {rows} changes repeat a key within one commit, for example {samples}; nothing of the slice was "
    "published.",
    "remove the duplicate rows from the source, or choose `keys` that are unique; then run `mirror-assets rebuild "
    "{table}`: the commit stays in the feed.",
    "mirror-assets rebuild TABLE",
)


def duplicate_key(table: str, rows: int, samples: tuple[str, ...]) -> StopError:
    """Return DUPLICATE_KEY for a number of rows, with samples of their keys."""
    return DUPLICATE_KEY(table=table, rows=rows, samples="; ".join(samples))
