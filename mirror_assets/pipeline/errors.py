"""The errors of the pipeline."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, MirrorError, RebuildError, RetryError, SettingError, StopError, rebuild_step
from mirror_assets.landing.format import Loading
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.redaction import redacted
from mirror_assets.source.breaks import Break, BreakKind
from mirror_assets.source.errors import RowsChanged
from mirror_assets.verify.check_result import CheckResult


def mirror_slow(what: str, seconds: float) -> RetryError:
    """Return the error for a mirror that has not dropped or reloaded a table in time."""
    return RetryError(
        f"waited {seconds:.0f} s for {what}.",
        "see that the replicator runs (`mirror-assets replicate`, or `mirror-assets fabric status`), then run the "
        "same command again: it continues where it stopped.",
        code=ErrorCode.TABLE_BUSY,
    )


class TableBusy(RetryError):
    """Another run works on the table."""

    code = ErrorCode.TABLE_BUSY

    def __init__(self, table: str, who: str) -> None:
        super().__init__(
            f"{table}: {who}.",
            "wait for it, or end it, then run again; the lease of a process that was killed on another machine expires "
            "after 5 minutes.",
        )


class TableHeld(StopError):
    """The table needs a rebuild that only a person may start (`on_break: hold`)."""

    code = ErrorCode.TABLE_HELD

    def __init__(self, table: str, why: str) -> None:
        super().__init__(
            f"{table} is on hold for approval: {why.removeprefix(f'{table}: ')}",
            f"{rebuild_step(table)}; or fix what the message names and materialize the slice that failed.",
        )


class RepairRefused(StopError):
    """A slice of differences can't make the mirror equal; a rebuild can."""

    code = ErrorCode.REPAIR_REFUSED

    def __init__(self, table: str, why: str) -> None:
        super().__init__(
            f"{table} can't be repaired: {why}. Nothing was changed.",
            f"run `mirror-assets run --table {table}` if it loads or lands; else `mirror-assets rebuild {table}`.",
        )


def repair_too_early(table: str, why: str) -> RetryError:
    """Return the error for a repair while the mirror has not applied all landing files."""
    return RetryError(
        f"{table} can't be repaired yet: {why}. Nothing was changed.",
        "wait for the replicator (`mirror-assets replicate`, or `mirror-assets fabric status`), then repair again.",
        code=ErrorCode.TABLE_BUSY,
    )


class SourceBroke(RebuildError):
    """A commit of the source can't follow the landed commits; `undo` says what to try before a rebuild, if anything."""

    code = ErrorCode.SOURCE_BREAK

    def __init__(self, table: str, version: int, why: str, undo: str = "") -> None:
        super().__init__(
            f"{table}: version {version} of the source can't follow the landed commits: {why}.",
            f"{undo}{rebuild_step(table)}, or set on_break: rebuild.",
        )


class SnapshotLost(RebuildError):
    """The version whose snapshot is being loaded in chunks can't be read any more."""

    code = ErrorCode.DATA_FILE_MISSING
    needs_reading = True

    def __init__(self, table: str, loading: Loading, why: str) -> None:
        super().__init__(
            f"{table}: {loading.chunk} chunks of version {loading.key.last} have landed, others can't be read: {why}",
            f"{rebuild_step(table)}: it begins with the source's newest version; keep "
            "delta.deletedFileRetentionDuration longer than a load takes.",
        )


def snapshot_under_way(table: str, key: str, loading: Loading) -> StopError:
    """Return the error for a slice that must wait until another snapshot is loaded."""
    return StopError(
        f"{table}: slice {key} can't land yet: {loading}.",
        f"materialize slice {loading.key} first; it continues where it stopped.",
        code=ErrorCode.SLICE_NOT_READY,
    )


def not_one_slice(table: str, key: str, version: int | None) -> SettingError:
    """Return the error for a partition key whose range can't be one slice; a slice begins at `version`, if any."""
    why = "the source has no such commit" if version is None else f"another slice begins at version {version}"
    return SettingError(
        f"{table}: partition {key} is not one slice: {why}.",
        "materialize the slices that runs register, or that `mirror-assets plan` shows.",
        code=ErrorCode.NO_SLICE,
    )


class ChecksFailed(StopError):
    """Blocking checks failed; nothing of the slice was published. `results` are those of all its checks.

    The next step is that of the first check that failed.
    """

    code = ErrorCode.CHECKS_FAILED

    def __init__(self, table: str, key: SliceKey, results: tuple[CheckResult, ...]) -> None:
        self.key, self.results = key, results
        failed = [result for result in results if result.problems]
        problems = "; ".join(f"{result.check}: {result.message}" for result in failed)
        super().__init__(f"{table}: slice {key} was not published: {problems}.", failed[0].next_step)


def mirror_failed(table: str, why: str) -> StopError:
    """Return the error for a table that the replicator has stopped during its rebuild."""
    return StopError(
        f"{table}: the replicator has stopped the table: {why}.",
        f"fix what the message names, then {rebuild_step(table)} again: it continues where it stopped.",
        code=ErrorCode.TABLE_STOPPED,
    )


def unexpected(table: str, error: Exception) -> StopError:
    """Return the error for an exception that is not ours: a defect here, or in a library."""
    why = str(error).strip().partition("\n")[0]
    if type(error).__module__.startswith(("py4j", "pyspark")):
        from mirror_assets.spark_facts import spark_facts  # loaded already when such an error occurs

        why = spark_facts(error).why  # the innermost cause: the message begins with the call
    why = redacted(why)[:400].rstrip(". ")
    return StopError(
        f"{table}: unexpected {type(error).__name__}: {why}.",
        "run again; if the error persists, report it with Spark's messages. No slice was partly published.",
        code=ErrorCode.UNEXPECTED,
    )


def stop_error(table: TableName, stop: Break) -> MirrorError:
    """Return the error of a break; its family says whether a rebuild may follow."""
    if stop.kind is BreakKind.ROWS_CHANGED:
        return RowsChanged(str(table), stop.version, stop.message)
    undo = "set these settings back, or " if stop.kind is BreakKind.COLUMNS_CHANGED else ""
    return SourceBroke(str(table), stop.version, stop.message, undo)
