"""Translates exceptions of Spark and Delta into MirrorErrors, by the exception classes and messages of the JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError, StopError
from mirror_assets.redaction import redacted_error
from mirror_assets.source.losses import (
    FeedRefused,
    FileDamaged,
    FileUnfound,
    HistoryRefused,
    SparkFailed,
    SparkInterrupted,
)
from mirror_assets.source.store_faults import store_error, store_named

_DEPTH = 20
_MAX_TEXT = 400
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_READ = re.compile(r"Encountered error while reading file (\S.*?)\. ")
_LOCAL = re.compile("^file:/+")
_NAMES_EXCEPTION = re.compile(r"^\S*Exception: ")
_NOT_FOUND = ("FileNotFoundException", "NoSuchFileException")
_NOT_FOUND_CONDITIONS = ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST")
# Java also raises FileNotFoundException for permissions and limits; the operating system's reason is in brackets.
_REASON = re.compile(r"\(([A-Z][^()]*)\)$")
_NO_SUCH_FILE = "No such file or directory"
# Where the exceptions of a failed stage did not reach the driver, the message has all its causes as text.
_CAUSE_LINE = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
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
        return FeedRefused(place, why)
    if _EXPIRED in facts.conditions:
        return HistoryRefused(place, why)
    if _DATA_EXCEPTION.search(text):
        return expression_failed(place, min(facts.conditions, default="a data exception"))
    if _NO_SPACE.search(text):
        return RetryError(
            f"{place}: no space left for Spark: {why}.",
            "free space on the named disk, then run again; nothing was lost.",
            code=ErrorCode.STORE_FULL,
        )
    # A fault of the store that Spark reads from, not of the one that it writes to.
    what, _, written = place.partition(" into ")
    store = store_named(text)
    if (store is not None and store != store_named(written)) or (store is None and _BY_STORE.search(text)):
        fault = store_error(what.partition(",")[0], store or store_named(what), text)
        if fault is not None:
            return fault
    if facts.unfound is not None:
        return FileUnfound(place, facts.unfound)
    if _ACCESS_DENIED.search(text):
        return SettingError(
            f"{place}: the store denied Spark access: {why}.",
            "grant the account that Spark runs as read and write access to the named path, or correct its credentials; "
            "then run again.",
            code=ErrorCode.STORE_DENIED,
        )
    if _TRANSIENT.search(text):
        return SparkInterrupted(place, why)
    return FileDamaged(place, why) if _DAMAGED.search(text) else SparkFailed(place, why)


def spark_facts(error: Exception) -> SparkFacts:
    """Return the exception's cause chain from the JVM; if the JVM has died, one from its text."""
    java = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    causes: list[SparkCause] = []
    try:
        text = ""
        while java is not None and len(causes) < _DEPTH:
            text = java.getMessage() or ""
            causes.append(SparkCause.of(java.getClass().getSimpleName(), text))
            java = java.getCause()
        # The text of the innermost exception may have further causes.
        causes += (SparkCause.of(name.rpartition(".")[2], message) for name, message in _CAUSE_LINE.findall(text))
    except Py4JError:  # the JVM has died: only the text is left
        causes = []
    if not causes:
        message = _one_line(str(error))
        # PySpark puts the condition in front of the text.
        found = _CONDITION.search(message)
        known = error.getCondition() if isinstance(error, PySparkException) else None
        causes = [SparkCause(type(error).__name__, known or (found[1] if found else None), message)]
    return SparkFacts(tuple(causes))


@dataclass(frozen=True)
class SparkFacts:
    """The cause chain of an exception, outermost first, with at least one cause."""

    causes: tuple[SparkCause, ...]

    @property
    def conditions(self) -> frozenset[str]:
        """The error conditions of all causes, such as `DELTA_MISSING_CHANGE_DATA`."""
        return frozenset(cause.condition for cause in self.causes if cause.condition is not None)

    @property
    def classes_and_text(self) -> str:
        """The class names of all causes without packages, then their messages, one a line."""
        return "\n".join((" ".join(cause.name for cause in self.causes), *(cause.message for cause in self.causes)))

    @property
    def why(self) -> str:
        """The innermost message, with the file that Spark was reading if another cause names it."""
        text = next((cause for cause in reversed(self.causes) if cause.message), self.causes[0]).short_text
        reading = next((found[1] for cause in self.causes if (found := _READ.search(cause.message))), None)
        is_named = reading is None or _LOCAL.sub("", reading) in text
        return text if is_named else f"{text} (while reading {reading})"

    @property
    def unfound(self) -> str | None:
        """The innermost message that names a missing file; None if no cause says that a file is missing."""
        for cause in reversed(self.causes):
            if cause.name in _NOT_FOUND:
                reason = _REASON.search(cause.message)
                return cause.short_text if reason is None or reason[1] == _NO_SUCH_FILE else None
        found = [cause for cause in self.causes if cause.condition in _NOT_FOUND_CONDITIONS]
        return found[-1].short_text if found else None


@dataclass(frozen=True)
class SparkCause:
    """One exception of a cause chain: class without package, Spark's error condition or None, message in one line."""

    name: str
    condition: str | None
    message: str

    @classmethod
    def of(cls, name: str, text: str) -> SparkCause:
        """Return the cause of a class with a message, which may begin with a condition in brackets."""
        message = _one_line(text)
        condition = _CONDITION.match(message)
        return cls(name, condition[1] if condition else None, message)

    @property
    def short_text(self) -> str:
        """The shortened message, after the class name unless it begins with a condition or an exception's name."""
        short = self.message[:_MAX_TEXT].rstrip(". ")
        return short if self.condition is not None or _NAMES_EXCEPTION.match(short) else f"{self.name}: {short}"


class DuplicateKey(StopError):
    """The source has several rows with the same key; a mirror with keys can hold only one of them."""

    code = ErrorCode.DUPLICATE_KEY

    def __init__(self, table: str, rows: int, samples: tuple[str, ...]) -> None:
        self.table, self.rows, self.samples = table, rows, samples
        super().__init__(
            f"{table}: {rows} changes repeat a key within one commit, for example {'; '.join(samples)}; "
            "nothing of the slice was published.",
            "remove the duplicate rows from the source, or choose `keys` that are unique; then run "
            f"`mirror-assets rebuild {table}`: the commit stays in the feed.",
        )


def rows_misplaced(table: str, rows: int, first: int, last: int) -> StopError:
    """Return the error for rows that Spark wrote into other files than planned."""
    return StopError(
        f"{table}: Spark wrote {rows} rows of versions {first} to {last} into other files than planned; nothing of "
        "the slice was published.",
        "run again; if it repeats, remove settings that move partitions from `spark.settings`, and report it.",
        code=ErrorCode.ROWS_MISPLACED,
    )


def expression_failed(place: str, condition: str) -> SettingError:
    """Return the error for a value of a row with which an expression of the table can't be computed."""
    return SettingError(
        f"{place}: an expression of `columns`, or `where`, fails for a row: {condition}.",
        "correct the expression, for example with try_cast, try_divide or nullif, then run again; nothing was lost. "
        "`mirror-assets preview` shows its values.",
        code=ErrorCode.EXPRESSION_FAILED,
    )


def session_unfit(what: str, found: str, proved: Sequence[str]) -> SettingError:
    """Return the error for a Delta version on which its private classes are not proved."""
    return SettingError(
        f"{what} needs private classes of Delta {' or '.join(proved)}; the Spark session has Delta {found}.",
        "install the extra `spark`, or give the session these JARs: see docs/spark-versions.md.",
        code=ErrorCode.SESSION_UNFIT,
    )


def spark_unfit(why: str, next_step: str) -> SettingError:
    """Return the error for the Spark session of a project's own resource that can't read Delta tables."""
    return SettingError(f"the project's Spark session can't be used: {why}.", next_step, code=ErrorCode.SESSION_UNFIT)


class SparkNotStarted(SettingError):
    """Spark did not start, or rejected a setting."""

    code = ErrorCode.SESSION_UNFIT

    def __init__(self, why: str, printed: Sequence[str] = ()) -> None:
        """`printed` are the last lines of the JVM, without secrets."""
        said = "\n  ".join((" The JVM's last lines:", *printed)) + "\n" if printed else ""
        super().__init__(
            f"Spark did not start: {why}.{said}",
            "correct what the message names, in `spark.settings` or on the machine that runs Spark; then run again.",
        )


def package_refused(wanted: str, installed: str) -> SettingError:
    """Return the error for `spark.jars.packages` with another Delta version than the installed delta-spark."""
    return SettingError(
        f"spark.settings: spark.jars.packages names {wanted}; the installed delta-spark needs {installed}.",
        "remove it: Delta's JARs are added without it; for another Delta version, install another delta-spark.",
        code=ErrorCode.CONFIG_INVALID,
    )


def _one_line(text: str) -> str:
    """Return the message up to the stack trace, in one line."""
    return " ".join(text.partition("\n\tat ")[0].split())
