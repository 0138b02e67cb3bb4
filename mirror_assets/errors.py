"""The error tree, grouped by the reaction of the code that catches an error.

    MirrorError
    ├── RetryError      a temporary problem: retry later
    ├── SettingError    fix the setting, or the source's property, that it names
    ├── RebuildError    the slice can't follow the landed ones: rebuild the table
    ├── StopError       a state that the project did not leave: a person decides
    └── UnknownOutcome  a request may or may not have taken effect: read the result back

Each package's `errors.py` is a table: a row has the code, the message (what happened, and where), the next step and a
command. docs/errors.md is written from the rows. A row is called with the facts of its message, and returns the error.
A row's errors have a class of their own: `except LOG_GAP.error`. Only an error whose facts a catcher needs has a class
below its family here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from inspect import get_annotations
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, cast


class Code(str, Enum):
    """A stable name of an error, for logs, metadata and callers that match on it. Each feature has codes of its own."""


class ErrorCode(Code):
    """The codes of the core."""

    # storage
    STORE_UNAVAILABLE = "store_unavailable"
    STORE_FULL = "store_full"
    STORE_DENIED = "store_denied"
    PATH_REFUSED = "path_refused"
    OUTCOME_UNKNOWN = "outcome_unknown"
    FILE_SYSTEM_UNFIT = "file_system_unfit"
    CREDENTIAL_UNFIT = "credential_unfit"
    CERTIFICATE_REFUSED = "certificate_refused"
    TOKEN_REFUSED = "token_refused"  # noqa: S105 a code
    ITEM_MISSING = "item_missing"
    STORE_THROTTLED = "store_throttled"
    STORE_REFUSED = "store_refused"
    # configuration
    CONFIG_INVALID = "config_invalid"
    # source
    SOURCE_UNREADABLE = "source_unreadable"
    SOURCE_NOT_DELTA = "source_not_delta"
    SOURCE_UNFIT = "source_unfit"
    FEED_DISABLED = "feed_disabled"
    ROW_TRACKING_DISABLED = "row_tracking_disabled"
    VERSION_REFUSED = "version_refused"
    LOG_GAP = "log_gap"
    SOURCE_BREAK = "source_break"
    DATA_FILE_MISSING = "data_file_missing"
    DATA_FILE_UNREADABLE = "data_file_unreadable"
    DUPLICATE_KEY = "duplicate_key"
    EXPRESSION_FAILED = "expression_failed"
    SPARK_FAILED = "spark_failed"
    ROWS_MISPLACED = "rows_misplaced"
    SPARK_INTERRUPTED = "spark_interrupted"
    SESSION_UNFIT = "session_unfit"
    ROWS_CHANGED = "rows_changed"
    SOURCE_UNAVAILABLE = "source_unavailable"
    # catalogs
    CATALOG_UNAVAILABLE = "catalog_unavailable"
    CATALOG_REFUSED = "catalog_refused"
    CATALOG_TABLE_REFUSED = "catalog_table_refused"
    LOCATION_UNKNOWN = "location_unknown"
    # landing zone
    NAME_REFUSED = "name_refused"
    LANDING_DAMAGED = "landing_damaged"
    FOREIGN_CHANGE = "foreign_change"
    METADATA_DIFFERS = "metadata_differs"
    SLICE_NOT_READY = "slice_not_ready"
    SLICE_NOT_STAGED = "slice_not_staged"
    SLICE_OUTDATED = "slice_outdated"
    TABLE_BUSY = "table_busy"
    TABLE_HELD = "table_held"
    NO_SLICE = "no_slice"
    REPAIR_REFUSED = "repair_refused"
    RUN_KILLED = "run_killed"
    # mirror
    CHECKS_FAILED = "checks_failed"
    MIRROR_UNREADABLE = "mirror_unreadable"
    TABLE_STOPPED = "table_stopped"
    COVERED_VERSION_GONE = "covered_version_gone"
    # anything else
    UNEXPECTED = "unexpected"


NEXT = " Next: "


@dataclass(frozen=True)
class ErrorRecord:
    """An error as data, for reports and JSON: of a table, or of none. As a text, it is the message for people."""

    table: str | None
    code: str
    message: str
    next_step: str
    family: str

    def __str__(self) -> str:
        """The message, which names the table, and the next step."""
        text = f"{self.message}{NEXT}{self.next_step}" if self.next_step else self.message
        return text if self.table is None or self.table in text else f"{self.table}: {text}"


class MirrorError(Exception):
    """Root of the tree. The message is `what`, then the next step."""

    row: ClassVar[ErrorRow[MirrorError] | None] = None
    facts: Mapping[str, Any] = MappingProxyType({})  # those that the message was made of
    family: ClassVar[str] = "error"  # the branch in one word, for errors as data

    def __init__(self, what: str, next_step: str, *, code: Code) -> None:
        """Keep both halves of the message; `what` names the table, file or setting."""
        self.what, self.next_step, self.code = what, next_step, code
        super().__init__(f"{what}{NEXT}{next_step}")

    def record(self, table: str | None = None) -> ErrorRecord:
        """Return the error as data, as that of a table."""
        return ErrorRecord(table, self.code.value, self.what, self.next_step, self.family)

    @property
    def labels(self) -> dict[str, str]:
        """Code and family, as metadata of results that the error has caused."""
        return {"code": self.code.value, "family": self.family}


class RetryError(MirrorError):
    """Try again later; nothing has to be changed."""

    family = "retry"


class SettingError(MirrorError):
    """Fix the setting or the source's property named in the message, then run again."""

    family = "setting"


class RebuildError(MirrorError):
    """The table must be rebuilt; until then the landed files stay unchanged.

    `needs_reading`: neither the log nor the landing zone shows the error, only reading the source's rows.
    """

    family = "rebuild"
    needs_reading: ClassVar[bool] = False


class StopError(MirrorError):
    """Stop and let a person check; continuing could lose or double rows."""

    family = "stop"


class UnknownOutcome(MirrorError):
    """The request may have taken effect or not; read back before anything else."""

    family = "unknown"


_Raised_co = TypeVar("_Raised_co", bound=MirrorError, covariant=True)


@dataclass(frozen=True)
class ErrorRow(Generic[_Raised_co]):
    """A row of a package's table of errors: `LOG_GAP(uri=uri, version=3)` returns the error, for `raise`.

    `message` and `next_step` are templates: `{uri}` is the fact of this name, and docs/errors.md shows it as URI.
    `cause` says in general what has happened. `commands` are lines for a shell.
    """

    code: Code
    raises: type[_Raised_co]
    cause: str
    message: str
    next_step: str
    commands: str = ""

    @cached_property
    def error(self) -> type[_Raised_co]:
        """The class of this row's errors alone, for those who catch them."""
        return cast("type[_Raised_co]", type(self.raises.__name__, (self.raises,), {"row": self}))

    def __call__(self, *, next_step: str | None = None, **facts: object) -> _Raised_co:
        """Return the error; the facts that its class declares become its attributes.

        `next_step` replaces the row's where the caller knows a better one. Names in a tuple or list are shown in a row.
        """
        texts = {
            name: ", ".join(map(str, fact)) if isinstance(fact, tuple | list) else fact for name, fact in facts.items()
        }
        step = self.next_step.format(**texts) if next_step is None else next_step
        error = self.error(self.message.format(**texts), step, code=self.code)
        error.facts = facts
        for name in get_annotations(self.raises).keys() & facts.keys():
            setattr(error, name, facts[name])
        return error


# A part of next steps: it starts a rebuild, by the job or by the command.
REBUILD_STEP = "launch the job `rebuild`, or run `mirror-assets rebuild {table}`"
