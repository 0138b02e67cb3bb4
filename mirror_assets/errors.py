"""The error tree, grouped by the reaction of the code that catches an error.

    MirrorError
    ├── RetryError      a temporary problem: retry later
    ├── SettingError    fix the setting, or the source's property, that it names
    ├── RebuildError    the slice can't follow the landed ones: rebuild the table
    ├── StopError       a state that the project did not leave: a person decides
    └── UnknownOutcome  a request may or may not have taken effect: read the result back

Each package's `errors.py` has its errors, with their messages: what happened, where, and the next step. An error that
is caught by type is a class with its facts as attributes. Any other is a function that takes the facts and returns an
error of its family with a code. `family` is the branch in one word, for errors as data.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar


class ErrorCode(str, Enum):
    """Stable names of every error, for logs, metadata and callers that match on them."""

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
    # direct lake
    VACUUM_REFUSED = "vacuum_refused"
    # history
    HISTORY_GAP = "history_gap"
    HISTORY_UNFIT = "history_unfit"
    # mirror
    CHECKS_FAILED = "checks_failed"
    MIRROR_UNREADABLE = "mirror_unreadable"
    TABLE_STOPPED = "table_stopped"
    COVERED_VERSION_GONE = "covered_version_gone"
    FABRIC_UNAVAILABLE = "fabric_unavailable"
    FABRIC_REFUSED = "fabric_refused"
    MIRRORING_STOPPED = "mirroring_stopped"
    # alerts
    RECEIVER_REFUSED = "receiver_refused"
    # anything else
    UNEXPECTED = "unexpected"


NEXT = " Next: "


class MirrorError(Exception):
    """Root of the tree. The message is `what`, then the next step."""

    code: ErrorCode
    family: ClassVar[str] = "error"

    def __init__(self, what: str, next_step: str, *, code: ErrorCode | None = None) -> None:
        """Keep both halves of the message; `what` names the table, file or setting.

        `code` is for an error that is not caught by its class: a function of the package creates it.
        """
        self.what = what
        self.next_step = next_step
        if code is not None:
            self.code = code
        super().__init__(f"{what}{NEXT}{next_step}")


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


def rebuild_step(table: str) -> str:
    """Return the step that starts a rebuild of the table: the job, then the command."""
    return f"launch the job `rebuild`, or run `mirror-assets rebuild {table}`"
