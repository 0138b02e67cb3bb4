"""What messages need of Spark: the cause chain of an exception as the JVM has it, and rows that Python can hold.

Below all packages that use Spark, because the encoder and `reconcile` both need it, and neither may import the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.column_types import Family, column_type
from mirror_assets.spark_api import condition_of, java_exception, server_trace
from mirror_assets.spark_names import quoted

_DEPTH = 20
_MAX_TEXT = 400
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_READ = re.compile(r"Encountered error while reading file (\S.*?)\. ")
_LOCAL = re.compile("^file:/+")
_NAMES_EXCEPTION = re.compile(r"^\S*Exception: ")
_NOT_FOUND = ("FileNotFoundException", "NoSuchFileException", "SparkFileNotFoundException")
_NOT_FOUND_CONDITIONS = ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST")
# Java also raises FileNotFoundException for permissions and limits; the operating system's reason is in brackets.
_REASON = re.compile(r"\(([A-Z][^()]*)\)$")
# Behind the message of an exception: the trace in this process's JVM, and the one of a server.
_TRACE = re.compile(r"\n\tat |\s*JVM stacktrace:")
_WITHOUT_DELTA = frozenset({"DATA_SOURCE_NOT_FOUND", "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG"})
_DELTA = re.compile(r"\bdelta\b", re.IGNORECASE)
_NO_SUCH_FILE = "No such file or directory"
# Where the exceptions of a failed stage did not reach the driver, the message has all its causes as text.
_CAUSE_LINE = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)


def spark_facts(error: Exception) -> SparkFacts:
    """Return the cause chain of the exception from the JVM; one from its text if there is no JVM, or it has died."""
    java, text = java_exception(error), server_trace(error) or str(error)
    causes = [] if java is not None else [_outermost(error)]
    try:
        while java is not None and len(causes) < _DEPTH:
            text = java.getMessage() or ""
            causes.append(SparkCause.of(java.getClass().getSimpleName(), text))
            java = java.getCause()
        # The text of the innermost exception may have further causes.
        causes += (SparkCause.of(name.rpartition(".")[2], message) for name, message in _CAUSE_LINE.findall(text))
    except Py4JError:  # the JVM has died: only the text is left
        causes = []
    return SparkFacts(tuple(causes or [_outermost(error)]))


def _outermost(error: Exception) -> SparkCause:
    """Return the exception itself as PySpark shows it: it puts the condition in front of the text."""
    message = _one_line(str(error))
    found = _CONDITION.search(message)
    known = condition_of(error) if isinstance(error, PySparkException) else None
    return SparkCause(type(error).__name__, known or (found[1] if found else None), message)


@dataclass(frozen=True)
class SparkFacts:
    """The cause chain of an exception, outermost first, with at least one cause."""

    causes: tuple[SparkCause, ...]

    @property
    def conditions(self) -> frozenset[str]:
        """The error conditions of all causes, such as `DELTA_MISSING_CHANGE_DATA`."""
        return frozenset(cause.condition for cause in self.causes if cause.condition is not None)

    @property
    def names(self) -> frozenset[str]:
        """The class names of all causes: some have no condition in Spark 3.5 and Delta 3."""
        return frozenset(cause.name for cause in self.causes)

    @property
    def lacks_delta(self) -> bool:
        """Whether Spark doesn't know Delta's reader, or not its extension."""
        return bool(self.conditions & _WITHOUT_DELTA) and any(_DELTA.search(cause.message) for cause in self.causes)

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


def _one_line(text: str) -> str:
    """Return the message up to the stack trace, in one line."""
    return " ".join(_TRACE.split(text, maxsplit=1)[0].split())


def readable(rows: DataFrame) -> DataFrame:
    """Return the rows with dates and timestamps as texts: Python has none before year 1 and after 9999."""
    texts = {
        field.name: F.col(quoted(field.name)).cast("string")
        for field in rows.schema
        if column_type(field.dataType.simpleString()).family is Family.TIME
    }
    return rows.withColumns(texts) if texts else rows
