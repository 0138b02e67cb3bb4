"""What Spark says when it fails, as facts: the causes of an exception, without what they mean to us.

A failure in a task comes to Python as one text; the exceptions behind it, each with its own message, are only on the
JVM's side. What matters is mostly the deepest: around a deletion vector that is gone, for example, lies an exception
that names the data file, which is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

_DEPTH = 20
_MAX_TEXT = 400
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_READ = re.compile(r"Encountered error while reading file (\S.*?)\. ")
_BEHIND_JAVA = re.compile(r"^\S*Exception: ")
_NOT_FOUND = ("FileNotFoundException", "NoSuchFileException")
# Java gives one exception for all that can keep a file from being opened; the system's own words come in brackets.
_REASON = re.compile(r"\(([A-Z][^()]*)\)$")
_NO_SUCH_FILE = "No such file or directory"


@dataclass(frozen=True)
class SparkCause:
    """One exception: its class without package, Spark's error condition or None, its message in one line."""

    name: str
    condition: str | None
    message: str

    @property
    def reason(self) -> str | None:
        """The operating system's words, where the message ends with them."""
        found = _REASON.search(self.message)
        return found[1] if found else None

    @property
    def told(self) -> str:
        """Class and message, the latter without what it repeats."""
        short = self.message[:_MAX_TEXT].rstrip(". ")
        return short if self.condition is not None or _BEHIND_JAVA.match(short) else f"{self.name}: {short}"


@dataclass(frozen=True)
class SparkFacts:
    """An exception's causes, the outermost first; there is at least one."""

    causes: tuple[SparkCause, ...]

    @cached_property
    def conditions(self) -> frozenset[str]:
        """Spark's and Delta's error conditions (`DELTA_MISSING_CHANGE_DATA`)."""
        return frozenset(cause.condition for cause in self.causes if cause.condition is not None)

    @cached_property
    def names(self) -> frozenset[str]:
        """The classes, without packages."""
        return frozenset(cause.name for cause in self.causes)

    @cached_property
    def root(self) -> SparkCause:
        """The deepest cause that has a message."""
        return next((cause for cause in reversed(self.causes) if cause.message), self.causes[0])

    @cached_property
    def text(self) -> str:
        """All messages."""
        return "\n".join(cause.message for cause in self.causes)

    @cached_property
    def why(self) -> str:
        """The deepest message, and the file that was being read when another cause names it."""
        reading = next((found[1] for cause in self.causes if (found := _READ.search(cause.message))), None)
        told = self.root.told
        return told if reading is None or reading in told else f"{told} (while reading {reading})"

    @cached_property
    def unfound(self) -> str | None:
        """The deepest message which says that a file is not there, and names it; None where nothing says so."""
        for cause in reversed(self.causes):
            if cause.name in _NOT_FOUND:
                return cause.told if cause.reason in (None, _NO_SUCH_FILE) else None
        found = [
            cause for cause in self.causes if cause.condition in ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST")
        ]
        return found[-1].told if found else None


def spark_facts(error: Exception) -> SparkFacts:
    """What the exception says: by its causes in the JVM, or by its text where they are out of reach (Spark Connect)."""
    java = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    try:
        causes = _causes(java)
    except Py4JError:  # the JVM is gone: the text is all there is
        causes = ()
    return SparkFacts(causes or (_of_text(error),))


def _causes(thrown: JavaObject | None) -> tuple[SparkCause, ...]:
    found: list[SparkCause] = []
    while thrown is not None and len(found) < _DEPTH:
        message = _one_line(thrown.getMessage() or "")
        condition = _CONDITION.match(message)
        name = thrown.getClass().getSimpleName()
        found.append(SparkCause(name, condition[1] if condition else None, message))
        thrown = thrown.getCause()
    return tuple(found)


def _of_text(error: Exception) -> SparkCause:
    """The only cause that is known; PySpark's own text has the condition in front."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    message = _one_line(str(error))
    found = _CONDITION.search(message)
    return SparkCause(type(error).__name__, condition or (found[1] if found else None), message)


def _one_line(text: str) -> str:
    """The message without the stack trace and the advice behind it."""
    return " ".join(text.partition("\n\tat ")[0].split())
