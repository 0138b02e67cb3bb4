"""The errors of histories."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError
from mirror_assets.source.actions import Protocol
from mirror_assets.source.table_properties import how_to_enable


def history_feed_off(table: str, uri: str, protocol: Protocol) -> SettingError:
    """Return the error for a source that records no change data feed."""
    return SettingError(
        f"{table}: the change data feed of {uri} is off, so its history can't be stored.",
        f"{how_to_enable(uri, protocol)} Or set `history: false`.",
        code=ErrorCode.FEED_DISABLED,
    )


def history_gap(table: str, lost: str, why: str, next_version: int) -> StopError:
    """Return the error for commits that the history doesn't have and that can't be read any more."""
    return StopError(
        f"{table}: the history can't continue: {lost} can't be read any more ({why}).",
        "restore the files if you can. If not, they are lost permanently: "
        f"`mirror-assets history --table {table} --skip-to {next_version}` continues without them.",
        code=ErrorCode.HISTORY_GAP,
    )


def history_ahead(table: str, path: str, tip: int, covered: int) -> StopError:
    """Return the error for a history that covers versions which the source does not have."""
    return StopError(
        f"{table}: the source ends at version {tip}, and its history {path} at version {covered}.",
        "the source was restored without Delta. Move the history's folder: the next run starts another history.",
        code=ErrorCode.HISTORY_UNFIT,
    )


class HistoryUnknown(StopError):
    """Log cleanup has removed every entry that records what the history covers."""

    code = ErrorCode.HISTORY_UNFIT

    def __init__(self, table: str, path: str, generation: int) -> None:
        self.generation = generation
        super().__init__(
            f"{table}: the log of {path} no longer records which version of the source it covers.",
            f"find the newest `_commit_version` of the source's table in it, and run "
            f"`mirror-assets history --table {table} --skip-to VERSION` with the version after it.",
        )


def no_history(table: str, path: str) -> SettingError:
    """Return the error for a Delta table in the history's folder that is not a history."""
    return SettingError(
        f"{table}: {path} has a Delta table that is not a history.",
        "choose another `history.path` in mirror.yaml, or move that table.",
        code=ErrorCode.HISTORY_UNFIT,
    )


class HistoryColumnsUnfit(SettingError):
    """A slice's columns don't fit the history's table."""

    code = ErrorCode.HISTORY_UNFIT

    def __init__(self, table: str, path: str, first: int, last: int, why: str) -> None:
        self.why = why
        super().__init__(
            f"{table}: the feed of versions {first} to {last} does not fit the columns of {path}: {why}.",
            f"for a type that grew, run `ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableTypeWidening = "
            "true)`, then run again. For anything else move that folder and run "
            f"`mirror-assets history --table {table} --skip-to {first}`: it starts another history there.",
        )


class HistoryOvertaken(RetryError):
    """The history must be planned again: another run has committed, or a stream could not continue."""

    code = ErrorCode.TABLE_BUSY

    def __init__(self, table: str, why: str) -> None:
        super().__init__(f"{table}: {why}; the history is planned again.", "run again.")
