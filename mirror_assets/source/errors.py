"""Errors of a source: its address, its log, its columns; and of reading its rows with Spark."""

from __future__ import annotations

import re
from dataclasses import replace

from mirror_assets.errors import REBUILD_STEP, ErrorCode, ErrorRow, RebuildError, RetryError, SettingError, StopError
from mirror_assets.lakes.errors import SourceUnreadable

# Delta's shorthands for one version of a table, such as `orders@v2` and `orders@20240428091500000`.
_ONE_VERSION = re.compile(r"@(?:v\d+|\d{17})/*\Z", re.IGNORECASE)


def leave_out_version(address: str) -> str | None:
    """Return the next step for an address that ends with Delta's shorthand for one version; None for others."""
    found = _ONE_VERSION.search(address)
    return found and (
        f"leave out `{found[0]}` of the address: a table is read as a whole, not at one version. To mirror only "
        "changes from a version or a time on, set the table's `start` in mirror.yaml."
    )


class SourceNotDelta(SettingError):
    """The address has no Delta log."""


SOURCE_NOT_DELTA = ErrorRow(
    ErrorCode.SOURCE_NOT_DELTA,
    SourceNotDelta,
    "The address has no Delta log.",
    "{uri} is not a Delta table: it has no commits in `_delta_log`.",
    "restore the table if it was moved or unmounted: mirroring then continues automatically. For a new table, "
    "correct its address (the setting `source`), or write the table first.",
    "mirror-assets doctor --table TABLE",
)


def source_not_delta(uri: str) -> SourceNotDelta:
    """Return SOURCE_NOT_DELTA, with the next step for an address that names one version of a table."""
    return SOURCE_NOT_DELTA(uri=uri, next_step=leave_out_version(uri))


CHANGE_FILE_INCOMPLETE = ErrorRow(
    ErrorCode.SOURCE_UNREADABLE,
    SourceUnreadable,
    "The log lacks a change file's partition values. The data files of the commit may have them.",
    "{uri} can't be read: its log has the change file {path} without its partition values.",
    "rebuild the table's mirror, or set `changes: files` for it.",
    "mirror-assets rebuild TABLE",
)


class LogGap(RebuildError):
    """A required commit is not in the log."""

    version: int


LOG_GAP = ErrorRow(
    ErrorCode.LOG_GAP,
    LogGap,
    "A required commit is not in the Delta log.",
    "{uri}: commit {version} is not in the Delta log (cleaned up, or lost).",
    "restore the file if the table is unreadable without it, else rebuild its mirror; to retain commits longer, "
    "increase `delta.logRetentionDuration` or run more often.",
    "mirror-assets doctor --table TABLE --no-spark\nmirror-assets rebuild TABLE",
)
FILE_OVERWRITTEN = ErrorRow(
    ErrorCode.SOURCE_BREAK,
    RebuildError,
    "The log has two data files of one name, so the rows of the first one can't be read.",
    "{uri}: a commit adds another file under the same name, {path}, so its old rows are lost.",
    "rebuild the table's mirror. The source's writer must give each data file a new name.",
    "mirror-assets plan --table TABLE      # the commit that stops the table, and why\nmirror-assets rebuild TABLE",
)
COLUMN_UNFIT = ErrorRow(
    ErrorCode.SOURCE_UNFIT,
    SettingError,
    "A column's type has no counterpart in the landing zone.",
    "{table}: column `{column}` has type {column_type}, which a landing file can't hold.",
    "cast it at the source, or name the other columns in the table's `columns`.",
    "mirror-assets doctor --table TABLE",
)
ROWS_CHANGED = ErrorRow(
    ErrorCode.ROWS_CHANGED,
    StopError,
    "A commit changes or removes rows of a table with `changes: append_only`.",
    "{table}: `changes: append_only` can't continue: {why}.",
    REBUILD_STEP
    + ", which starts again with a snapshot after this commit; or, if the source's change data feed was on by then,"
    " set `changes: feed` with `keys`, which mirrors such commits.",
    "mirror-assets plan --table TABLE      # the commit\nmirror-assets rebuild TABLE",
)
DELTA_MISSING = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A Spark session without Delta's own reader, which reconcile, repair and `history` need.",
    "{what} needs Delta's own reader, and the Spark session doesn't have it.",
    "install a delta-spark that fits the Spark (docs/spark-versions.md); in a session of your own, or on a server, add "
    "its JARs, and set spark.sql.extensions and spark.sql.catalog.spark_catalog to Delta's classes.",
    "mirror-assets doctor --table TABLE",
)
SOURCE_UNSUPPORTED = ErrorRow(
    ErrorCode.SOURCE_UNFIT,
    SettingError,
    "A table that requires a feature, a version or a type that the log reader doesn't support.",
    "{uri} uses {why}, which this reader doesn't support.",
    "remove it at the source (a table feature: `ALTER TABLE delta.`{uri}` DROP FEATURE …`), or mirror a copy "
    "without it.",
    "mirror-assets doctor --table TABLE",
)
COLUMNS_ALIKE = ErrorRow(
    ErrorCode.SOURCE_UNFIT,
    SettingError,
    "A table with two columns, or fields of a struct, whose names differ in case only.",
    "{uri} has {name!r} and another column or field whose name differs from it in case only. Spark and Fabric "
    "ignore case, so they can't distinguish the two.",
    "rename one of them, with the program that made them.",
    "mirror-assets doctor --table TABLE",
)
NO_COLUMNS = ErrorRow(
    ErrorCode.SOURCE_UNFIT,
    SettingError,
    "A table that was created before its columns were known.",
    "{uri} has no columns yet: its log has an empty schema, or none.",
    "write its first rows, or add columns; if it has columns now, create a checkpoint. Then run again.",
    "mirror-assets doctor --table TABLE",
)
DATABRICKS_ONLY = ErrorRow(
    ErrorCode.SOURCE_UNREADABLE,
    SettingError,
    "An address that only a cluster of Databricks can open.",
    "{uri} is an address that only Databricks' own clusters can open.",
    "use the address of the underlying storage, like `abfss://container@account.dfs.core.windows.net/path` or "
    "`s3://bucket/path`: `dbutils.fs.mounts()` lists those of mounts. Copy tables from the root of DBFS, which "
    "has no such address, to storage of yours.",
    "mirror-assets doctor --table TABLE",
)
PROPERTY_UNREADABLE = ErrorRow(
    ErrorCode.SOURCE_UNFIT,
    SettingError,
    "A table property with a value that Delta doesn't write.",
    "the property {name} of {uri} can't be read: {why}.",
    "set it, like ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ({name} = 'interval 30 days').",
    "mirror-assets doctor --table TABLE",
)
SCHEMA_UNREADABLE = ErrorRow(
    ErrorCode.SOURCE_UNFIT,
    SettingError,
    "A schema in the log that Delta doesn't write.",
    "the source's schema can't be parsed: {why}.",
    "leave the table out of mirror.yaml, or copy it into a table of plain types.",
    "mirror-assets doctor --table TABLE",
)
RANGE_REFUSED = ErrorRow(
    ErrorCode.VERSION_REFUSED,
    SettingError,
    "The source doesn't have this range of commits, or it can't be mirrored.",
    "{uri} has no such range: {why}.",
    "choose another range.",
    "mirror-assets plan --table TABLE",
)
START_REFUSED = ErrorRow(
    ErrorCode.VERSION_REFUSED,
    SettingError,
    "The mirror can't begin at the table's `start`.",
    "the mirror of {uri} can't begin with `start: {start}`: {why}.",
    "{advice}, `start: latest`, or `start: snapshot`, which lands the whole table; then run again.",
    "mirror-assets plan --table TABLE",
)


def start_refused(uri: str, start: str, why: str, readable: int | None = None) -> SettingError:
    """Return START_REFUSED; `readable` is the first version with which the mirror can begin, if known."""
    advice = "choose another start" if readable is None else f"set `start: {{version: {readable}}}`, the earliest"
    return START_REFUSED(uri=uri, start=start, why=why, advice=advice)


class SourceLoss(RebuildError):
    """Rows of the source that log and store prove to be lost; only reading them shows it."""

    needs_reading = True
    version: int
    file: str


class SparkInterrupted(RetryError):
    """Spark was interrupted, or a file was not found: one of the source, or one of Spark's own; `why` names it."""

    why: str


class SparkFailed(StopError):
    """Spark failed for another reason."""


DATA_FILE_MISSING = ErrorRow(
    ErrorCode.DATA_FILE_MISSING,
    SourceLoss,
    "A file that the log names for a version to read is not in the store, for example after VACUUM.",
    "{table}: {file}, a file of version {version} of {uri}, was deleted.",
    REBUILD_STEP + "; set delta.deletedFileRetentionDuration to more than the lag.",
    "mirror-assets rebuild TABLE",
)
SPARK_INTERRUPTED = ErrorRow(
    ErrorCode.SPARK_INTERRUPTED,
    SparkInterrupted,
    "Spark lost one of its own files or a connection; the source is not affected.",
    "{place}: Spark was interrupted: {why}.",
    "run again; if the error persists, make sure that no program deletes files in spark.local.dir while Spark works.",
    "mirror-assets run --table TABLE",
)
FILE_UNFOUND = replace(
    SPARK_INTERRUPTED,
    cause="A file was not found: one of the source that is not proved to be lost, or one of Spark's own.",
)
SPARK_FAILED = ErrorRow(
    ErrorCode.SPARK_FAILED,
    SparkFailed,
    "Spark failed for another reason.",
    "{place}: Spark failed: {why}.",
    "correct the cause that the message names, or read Spark's log; then run again.",
    "mirror-assets doctor --table TABLE",
)
FILE_DAMAGED = ErrorRow(
    ErrorCode.DATA_FILE_UNREADABLE,
    SparkFailed,
    "A file exists, but its content is not what was written.",
    "{place}: a file can't be read as it was written: {why}.",
    "restore the file that the message names, or write its rows again at the source and run `mirror-assets rebuild`; "
    "nothing of the slice was published.",
    "mirror-assets rebuild TABLE",
)
