"""Translates exceptions of Spark and Delta into MirrorErrors, by the exception classes and messages of the JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, RetryError, SettingError, StopError
from mirror_assets.lakes.store_faults import store_error, store_named
from mirror_assets.redaction import redacted_error
from mirror_assets.source.losses import (
    FEED_REFUSED,
    FILE_DAMAGED,
    FILE_UNFOUND,
    HISTORY_REFUSED,
    SPARK_FAILED,
    SPARK_INTERRUPTED,
)
from mirror_assets.spark_messages import spark_facts

_DAMAGED = re.compile(
    r"[Cc]hecksum ?(?:error|Exception)|is not a Parquet file|[Cc]ould not read footer|CANNOT_READ_FILE_FOOTER"
    r"|ParquetDecodingException|EOFException|Reached the end of stream|ZstdException|can not read class org\.apache"
)
# AWS's SDK and S3's file system in Hadoop, where they name no address.
_BY_STORE = re.compile(r"\(Service: \w+, Status Code: \d+|awssdk|fs\.s3a\.")
# The class of SQLSTATE for values that an expression can't compute with.
_DATA_EXCEPTION = re.compile(r"SQLSTATE: 22")
_NO_FEED = "DELTA_MISSING_CHANGE_DATA"
_EXPIRED = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
# Exception classes and message texts of Hadoop's file systems: local, S3 and Azure.
_ACCESS_DENIED = re.compile(
    r"AccessDenied|AccessControlException|NoAuthWithAWS|CredentialInitialization|ParentNotDirectory"
    r"|Permission denied|Read-only file system|Mkdirs failed to create|No AWS Credentials|, 40[13], "
)
_TRANSIENT = re.compile(
    r"FetchFailed|ExecutorLost|BlockNotFound|SocketTimeout|SocketException|ConnectException|ConnectTimeout|UnknownHost"
    r"|ClosedChannel|NoRouteToHost|InterruptedIO|Missing an output location for shuffle|Connection reset"
    r"|Too many open files|Input/output error|Stale file handle|, (?:408|429|50[0234]), "
)


@contextmanager
def spark_errors(place: str) -> Iterator[None]:
    """Translate exceptions of Spark in the block into MirrorErrors; `place` names the table and the operation."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        safe = redacted_error(error)
        meant = spark_error(safe, place)
        # Spark's own message has the value of a row.
        raise meant from (None if meant.code is ErrorCode.EXPRESSION_FAILED else safe)


def spark_error(error: Exception, place: str) -> MirrorError:  # noqa: PLR0911 each kind of error is one return
    """Return the MirrorError for an exception of Spark; `place` names the table and the operation in its message."""
    facts = spark_facts(error)
    why, text = facts.why, facts.classes_and_text
    if _NO_FEED in facts.conditions:
        return FEED_REFUSED(place=place, why=why)
    if _EXPIRED in facts.conditions:
        return HISTORY_REFUSED(place=place, why=why)
    if _DATA_EXCEPTION.search(text):
        return EXPRESSION_FAILED(place=place, condition=min(facts.conditions, default="a data exception"))
    if _NO_SPACE.search(text):
        return SPARK_DISK_FULL(place=place, why=why)
    # A fault of the store that Spark reads from, not of the one that it writes to.
    what, _, written = place.partition(" into ")
    store = store_named(text)
    if (store is not None and store != store_named(written)) or (store is None and _BY_STORE.search(text)):
        fault = store_error(what.partition(",")[0], store or store_named(what), text)
        if fault is not None:
            return fault
    if facts.unfound is not None:
        return FILE_UNFOUND(place=place, why=facts.unfound)
    if _ACCESS_DENIED.search(text):
        return SPARK_DENIED(place=place, why=why)
    if _TRANSIENT.search(text):
        return SPARK_INTERRUPTED(place=place, why=why)
    return FILE_DAMAGED(place=place, why=why) if _DAMAGED.search(text) else SPARK_FAILED(place=place, why=why)


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


ROWS_MISPLACED = ErrorRow(
    ErrorCode.ROWS_MISPLACED,
    StopError,
    "Spark wrote rows into other parts than planned.",
    "{table}: Spark wrote {rows} rows of versions {first} to {last} into other files than planned; nothing of the"
    " slice was published.",
    "run again; if it repeats, remove settings that move partitions from `spark.settings`, and report it.",
    "mirror-assets run --table TABLE",
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
SPARK_UNFIT = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "The Spark session of a project's own resource can't read Delta tables.",
    "the project's Spark session can't be used: {why}.",
    "correct what the message names where the session is created, then start the process again.",
    "mirror-assets doctor --table TABLE",
)
SPARK_NOT_STARTED = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "Spark did not start, or rejected a setting.",
    "Spark did not start: {why}.{said}",
    "correct what the message names, in `spark.settings` or on the machine that runs Spark; then run again.",
    "mirror-assets doctor --table TABLE",
)


def spark_not_started(why: str, printed: Sequence[str] = ()) -> SettingError:
    """Return SPARK_NOT_STARTED; `printed` are the last lines of the JVM, without secrets."""
    said = "\n  ".join((" The JVM's last lines:", *printed)) + "\n" if printed else ""
    return SPARK_NOT_STARTED(why=why, said=said)


PACKAGE_REFUSED = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "`spark.jars.packages` with another Delta version than the installed delta-spark.",
    "spark.settings: spark.jars.packages names {wanted}; the installed delta-spark needs {installed}.",
    "remove it: Delta's JARs are added without it; for another Delta version, install another delta-spark.",
    "mirror-assets plan --config path/to/mirror.yaml    # lists all mistakes with their lines",
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
