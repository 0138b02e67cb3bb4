"""The errors of the pipeline."""

from __future__ import annotations

from mirror_assets.config.setting_values import Changes
from mirror_assets.errors import (
    REBUILD_STEP,
    ErrorCode,
    ErrorRow,
    MirrorError,
    RebuildError,
    RetryError,
    SettingError,
    StopError,
)
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.redaction import redacted
from mirror_assets.source.actions import Protocol
from mirror_assets.source.breaks import Break, BreakKind
from mirror_assets.source.errors import ROWS_CHANGED, SourceLoss
from mirror_assets.source.table_properties import ROW_TRACKING_COST, enable_row_tracking, how_to_enable
from mirror_assets.verify.check_result import CheckResult

MIRROR_SLOW = ErrorRow(
    ErrorCode.TABLE_BUSY,
    RetryError,
    "A mirror that has not dropped or reloaded a table in time.",
    "waited {seconds:.0f} s for {what}.",
    "see that the replicator runs (`mirror-assets replicate`, or `mirror-assets fabric status`), then run the "
    "same command again: it continues where it stopped.",
    "mirror-assets status --table TABLE    # the other run and its host",
)
TABLE_BUSY = ErrorRow(
    ErrorCode.TABLE_BUSY,
    RetryError,
    "Another run works on the table.",
    "{table}: {who}.",
    "wait for it, or end it, then run again; the lease of a process that was killed on another machine expires "
    "after 5 minutes.",
    "mirror-assets status --table TABLE    # the other run and its host",
)
RUN_KILLED = ErrorRow(
    ErrorCode.RUN_KILLED,
    SettingError,
    "A run that worked on the table was killed, or ran out of memory.",
    "{table}: run {run} ended while it worked on the table: it was killed.",
    "nothing: the table is retried, from the second time on after a pause. If the error persists, read the run's "
    "log, and give Spark more memory (`spark.driver.memory`) or use smaller slices.",
    "mirror-assets status --table TABLE    # the reason",
)
TABLE_HELD = ErrorRow(
    ErrorCode.TABLE_HELD,
    StopError,
    "The table needs a rebuild that only a person may start (`on_break: hold`).",
    "{table} is on hold for approval: {why}",
    REBUILD_STEP + "; or fix what the message names and materialize the slice that failed.",
    "mirror-assets rebuild TABLE",
)
REPAIR_REFUSED = ErrorRow(
    ErrorCode.REPAIR_REFUSED,
    StopError,
    "A repair can't make the mirror equal to the source: the table has no keys, its columns or keys have changed,"
    " its first load has not finished, or the source ends before the covered version. Nothing was changed.",
    "{table} can't be repaired: {why}. Nothing was changed.",
    "run `mirror-assets run --table {table}` if it loads or lands; else `mirror-assets rebuild {table}`.",
    "mirror-assets rebuild TABLE",
)
REPAIR_TOO_EARLY = ErrorRow(
    ErrorCode.TABLE_BUSY,
    RetryError,
    "A repair while the mirror has not applied all landing files.",
    "{table} can't be repaired yet: {why}. Nothing was changed.",
    "wait for the replicator (`mirror-assets replicate`, or `mirror-assets fabric status`), then repair again.",
    "mirror-assets status --table TABLE    # the other run and its host",
)
SOURCE_BROKE = ErrorRow(
    ErrorCode.SOURCE_BREAK,
    RebuildError,
    "A commit of the source can't follow the landed commits; `undo` says what to try before a rebuild, if anything.",
    "{table}: version {version} of the source can't follow the landed commits: {why}.",
    "{undo}" + REBUILD_STEP + ", or set on_break: rebuild.",
    "mirror-assets plan --table TABLE      # the commit that stops the table, and why\nmirror-assets rebuild TABLE",
)
SNAPSHOT_LOST = ErrorRow(
    ErrorCode.DATA_FILE_MISSING,
    SourceLoss,
    "The version whose snapshot is being loaded in chunks can't be read any more.",
    "{table}: {loading.chunk} chunks of version {loading.key.last} have landed, others can't be read: {why}",
    REBUILD_STEP
    + ": it begins with the source's newest version; keep delta.deletedFileRetentionDuration longer than a "
    "load takes.",
    "mirror-assets rebuild TABLE",
)
SNAPSHOT_UNDER_WAY = ErrorRow(
    ErrorCode.SLICE_NOT_READY,
    StopError,
    "A slice must wait until another snapshot is loaded.",
    "{table}: slice {key} can't land yet: {loading}.",
    "materialize slice {loading.key} first; it continues where it stopped.",
    "mirror-assets run --table TABLE",
)
NO_SLICE = ErrorRow(
    ErrorCode.NO_SLICE,
    SettingError,
    "The range of a partition key can't be one slice.",
    "{table}: partition {key} is not one slice: {why}.",
    "materialize the slices that runs register, or that `mirror-assets plan` shows.",
    "mirror-assets plan --table TABLE",
)


def not_one_slice(table: str, key: str, version: int | None) -> SettingError:
    """Return NO_SLICE; another slice begins at `version`, or the source has no such commit if it is None."""
    why = "the source has no such commit" if version is None else f"another slice begins at version {version}"
    return NO_SLICE(table=table, key=key, why=why)


class ChecksFailed(StopError):
    """Blocking checks failed; nothing of the slice was published. `results` are those of all its checks."""

    key: SliceKey
    results: tuple[CheckResult, ...]


CHECKS_FAILED = ErrorRow(
    ErrorCode.CHECKS_FAILED,
    ChecksFailed,
    "Blocking checks failed; nothing of the slice was published.",
    "{table}: slice {key} was not published: {problems}.",
    "do what the message of the check says.",
    "mirror-assets check --table TABLE",
)


def slice_checks_failed(table: str, key: SliceKey, results: tuple[CheckResult, ...]) -> ChecksFailed:
    """Return CHECKS_FAILED with the next step of the first check that failed."""
    failed = [result for result in results if result.problems]
    problems = "; ".join(f"{result.check}: {result.message}" for result in failed)
    return CHECKS_FAILED(table=table, key=key, problems=problems, results=results, next_step=failed[0].next_step)


MIRROR_FAILED = ErrorRow(
    ErrorCode.TABLE_STOPPED,
    StopError,
    "A table that the replicator has stopped during its rebuild.",
    "{table}: the replicator has stopped the table: {why}.",
    "fix what the message names, then " + REBUILD_STEP + " again: it continues where it stopped.",
    "mirror-assets rebuild TABLE",
)
UNEXPECTED = ErrorRow(
    ErrorCode.UNEXPECTED,
    StopError,
    "An exception that is not one of these: a defect of this program, or of a library.",
    "{table}: unexpected {kind}: {why}.",
    "run again; if the error persists, report it with Spark's messages. No slice was partly published.",
    "mirror-assets doctor",
)


def unexpected(table: str, error: Exception) -> StopError:
    """Return UNEXPECTED for an exception, without secrets."""
    why = str(error).strip().partition("\n")[0]
    if type(error).__module__.startswith(("py4j", "pyspark")):
        from mirror_assets.spark_messages import spark_facts  # loaded already when such an error occurs

        why = spark_facts(error).why  # the innermost cause: the message begins with the call
    return UNEXPECTED(table=table, kind=type(error).__name__, why=redacted(why)[:400].rstrip(". "))


def stop_error(table: TableName, stop: Break) -> MirrorError:
    """Return the error of a break; its family says whether a rebuild may follow."""
    if stop.kind is BreakKind.ROWS_CHANGED:
        return ROWS_CHANGED(table=str(table), version=stop.version, why=stop.message)
    undo = "set these settings back, or " if stop.kind is BreakKind.COLUMNS_CHANGED else ""
    return SOURCE_BROKE(table=str(table), version=stop.version, why=stop.message, undo=undo)


ROW_TRACKING_OFF = ErrorRow(
    ErrorCode.ROW_TRACKING_DISABLED,
    SettingError,
    "`changes: row_tracking` is set, and the source's row tracking is off.",
    "{table}: row tracking of {uri} is off, so its changes can't be derived from its files.",
    "run `{statement}`, then run again. " + ROW_TRACKING_COST,
    "ALTER TABLE delta.`/lake/orders` SET TBLPROPERTIES (delta.enableRowTracking = true)",
)
FEED_OFF = ErrorRow(
    ErrorCode.FEED_DISABLED,
    SettingError,
    "The source records no change data feed.",
    "{table}: the change data feed of {uri} is off, so its changes can't be read.",
    "{how} The feed begins with that commit: what is in the table by then lands as a snapshot. Or set `changes: "
    "files`, which needs no property of the source.",
    "ALTER TABLE delta.`/lake/orders` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
)


def not_recorded(table: str, uri: str, protocol: Protocol, changes: Changes) -> SettingError:
    """Return the error for a source whose change data feed, or row tracking, is off."""
    if changes is Changes.ROW_TRACKING:
        return ROW_TRACKING_OFF(table=table, uri=uri, statement=enable_row_tracking(uri))
    return FEED_OFF(table=table, uri=uri, how=how_to_enable(uri, protocol))


CHECK_NAME_TAKEN = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "Two checks of a table have the same name.",
    "{table} has two checks with the name {name!r}, one of them a SliceCheck of this project.",
    "give the SliceCheck another name.",
    "mirror-assets validate",
)
TABLE_NOWHERE = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "Neither mirror.yaml nor the landing zone has a table of this name.",
    "neither {file} nor {root} has a table {table!r}.",
    "use a table of one of them{meant}",
    "mirror-assets status",
)
