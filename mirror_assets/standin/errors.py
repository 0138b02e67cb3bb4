"""Errors of the stand-in's mirror."""

from __future__ import annotations

from enum import Enum

from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, RetryError, StopError


class StopReason(str, Enum):
    """Reasons why replication of a table stops; stable names, shown as the table's error code."""

    METADATA_INVALID = "metadata_invalid"
    METADATA_UNSUPPORTED = "metadata_unsupported"
    KEYS_CHANGED = "keys_changed"
    KEY_COLUMN_MISSING = "key_column_missing"
    FILE_EMPTY = "file_empty"
    FILE_INVALID = "file_invalid"
    MARKER_INVALID = "marker_invalid"
    MARKER_NEEDS_KEYS = "marker_needs_keys"
    COLUMN_REPEATED = "column_repeated"
    TYPE_CHANGED = "type_changed"
    TYPE_UNSUPPORTED = "type_unsupported"
    SCHEMA_MERGE_FAILURE = "schema_merge_failure"
    NAME_TAKEN = "name_taken"
    MIRROR_LOST = "mirror_lost"


_REPLACE_FILE = "delete the file and publish a valid one under the same name; later files wait for it."
_REBUILD = "rebuild the table: delete its folder, wait until the replicator has dropped the table, then land it again."
_METADATA = "replace it with a valid _metadata.json that has the keys that were declared first."
_NEXT_STEPS = {
    StopReason.METADATA_INVALID: _METADATA,
    StopReason.METADATA_UNSUPPORTED: "land Parquet files in sequence; only Fabric itself replicates the other forms.",
    StopReason.KEYS_CHANGED: f"{_METADATA} To change keys, rebuild the table.",
    StopReason.TYPE_CHANGED: _REBUILD,
    StopReason.SCHEMA_MERGE_FAILURE: _REBUILD,
    StopReason.NAME_TAKEN: "remove one of the two folders: a table without a schema folder belongs to schema dbo.",
    StopReason.MIRROR_LOST: _REBUILD,
}


class TableStopped(StopError):
    """Replication of a table has stopped; `path` is the file that stopped it."""

    path: str
    reason: StopReason


TABLE_STOPPED = ErrorRow(
    ErrorCode.TABLE_STOPPED,
    TableStopped,
    "Replication of a table has stopped.",
    "{path}: {why}.",
    _REPLACE_FILE,
    "mirror-assets status --table TABLE",
)


def table_stopped(path: str, reason: StopReason, why: str) -> TableStopped:
    """Return TABLE_STOPPED with the next step of this reason."""
    return TABLE_STOPPED(path=path, reason=reason, why=why, next_step=_NEXT_STEPS.get(reason))


MIRROR_BUSY = ErrorRow(
    ErrorCode.TABLE_BUSY,
    RetryError,
    "Another process polls the same mirror.",
    "another replicator is polling into {root}.",
    "poll again when it has finished.",
    "mirror-assets status --table TABLE    # the other run and its host",
)


class MirrorUnreadable(StopError):
    """A mirror table or its status file can't be read."""


MIRROR_UNREADABLE = ErrorRow(
    ErrorCode.MIRROR_UNREADABLE,
    MirrorUnreadable,
    "A table of the stand-in, or its status file, can't be read.",
    "{path} can't be read: {why}.",
    "if it is a status file, delete it and poll again; else rebuild its table.",
    "mirror-assets replicate\nmirror-assets rebuild TABLE",
)


def first_line(error: BaseException) -> str:
    """Return the error's text without the stack traces that Arrow, Delta and Spark append."""
    if isinstance(error, MirrorError):
        return str(error)
    lines = [line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
