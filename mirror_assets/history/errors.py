"""Errors of keeping a history."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError
from mirror_assets.source.actions import Protocol
from mirror_assets.source.table_properties import how_to_enable


def history_feed_off(table: str, uri: str, protocol: Protocol) -> SettingError:
    """The source records no change data feed."""
    return SettingError(
        f"{table}: the change data feed of {uri} is off, so its history can't be kept.",
        f"{how_to_enable(uri, protocol)} Or set `history: false`.",
        code=ErrorCode.FEED_DISABLED,
    )


def history_gap(table: str, lost: str, why: str, next_version: int) -> StopError:
    """Commits that the history lacks can't be read any more."""
    return StopError(
        f"{table}: the history goes no further: {lost} can't be read any more ({why}).",
        "bring the files back if you can. If not, they are lost for ever: "
        f"`mirror-assets history --table {table} --skip-to {next_version}` goes on without them.",
        code=ErrorCode.HISTORY_GAP,
    )


def history_ahead(table: str, path: str, tip: int, covered: int) -> StopError:
    """The history covers versions that the source does not have."""
    return StopError(
        f"{table}: the source ends at version {tip}, and {path} keeps it up to version {covered}.",
        "the source was set back outside Delta. Move the history's folder away: the next run starts another history.",
        code=ErrorCode.HISTORY_UNFIT,
    )


class HistoryUnknown(StopError):
    """Log cleanup has removed every entry that says what the history covers."""

    code = ErrorCode.HISTORY_UNFIT

    def __init__(self, table: str, path: str, generation: int) -> None:
        self.table, self.path, self.generation = table, path, generation
        super().__init__(
            f"{table}: the log of {path} has no entry left that says which version of the source it covers.",
            f"find the newest `_commit_version` of the source's table in it, and run "
            f"`mirror-assets history --table {table} --skip-to VERSION` with the version after it.",
        )


def no_history(table: str, path: str) -> SettingError:
    """The history's folder holds a Delta table that is not a history."""
    return SettingError(
        f"{table}: {path} holds a Delta table that is not a history.",
        "choose another `history.path` in mirror.yaml, or move that table away.",
        code=ErrorCode.HISTORY_UNFIT,
    )


class HistoryColumnsUnfit(SettingError):
    """A slice's columns don't fit the history's table."""

    code = ErrorCode.HISTORY_UNFIT

    def __init__(self, table: str, path: str, first: int, last: int, why: str) -> None:
        self.table, self.path, self.first, self.last, self.why = table, path, first, last, why
        super().__init__(
            f"{table}: the feed of versions {first} to {last} does not fit the columns of {path}: {why}.",
            f"for a type that grew, run `ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableTypeWidening = "
            "true)`, then run again. For anything else move that folder away and run "
            f"`mirror-assets history --table {table} --skip-to {first}`: it starts another history there.",
        )


class HistoryMoved(RetryError):
    """Another run has committed this generation; this run has committed nothing."""

    code = ErrorCode.LOST_RACE

    def __init__(self, table: str, generation: int) -> None:
        self.table, self.generation = table, generation
        super().__init__(f"{table}: another run has kept generation {generation} of the history.", "run again.")


class StreamBegunAgain(RetryError):
    """A stream could not continue, and its checkpoint is discarded; what it has committed stays."""

    code = ErrorCode.LOST_RACE

    def __init__(self, table: str, why: str) -> None:
        self.table, self.why = table, why
        super().__init__(
            f"{table}: the history's stream begins anew after the newest kept version: {why}", "run again."
        )


def stream_needs_classic_session(table: str) -> SettingError:
    """Spark Connect can't call this process with a stream's batches."""
    return SettingError(
        f"{table}: `history: stream` needs a classic Spark session, not Spark Connect.",
        "set `history: slices`, which keeps the same rows.",
        code=ErrorCode.SESSION_UNFIT,
    )
