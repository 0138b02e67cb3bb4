"""What can keep a history from going on."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError
from mirror_assets.source.actions import Protocol
from mirror_assets.source.table_properties import how_to_enable


class HistoryFeedOff(SettingError):
    """The source does not record its change data feed, so there is nothing to keep."""

    code = ErrorCode.FEED_DISABLED

    def __init__(self, table: str, uri: str, protocol: Protocol) -> None:
        self.table, self.uri, self.protocol = table, uri, protocol
        super().__init__(
            f"{table}: the change data feed of {uri} is off, so its history can't be kept.",
            f"{how_to_enable(uri, protocol)} Or set `history: false`.",
        )


class HistoryGap(StopError):
    """Commits that the history does not have can't be read any more."""

    code = ErrorCode.HISTORY_GAP

    def __init__(self, table: str, lost: str, why: str, next_version: int) -> None:
        self.table, self.lost, self.why, self.next_version = table, lost, why, next_version
        super().__init__(
            f"{table}: the history goes no further: {lost} can't be read any more ({why}).",
            "bring the files back if you can. If not, they are lost for ever: "
            f"`mirror-assets history --table {table} --skip-to {next_version}` goes on without them.",
        )


class HistoryAhead(StopError):
    """The history has commits of the source that the source does not have."""

    code = ErrorCode.HISTORY_UNFIT

    def __init__(self, table: str, path: str, tip: int, covered: int) -> None:
        self.table, self.path, self.tip, self.covered = table, path, tip, covered
        super().__init__(
            f"{table}: the source ends at version {tip}, and {path} keeps it up to version {covered}.",
            "the source was set back from outside of Delta. Move the history's folder away: the next run begins "
            "another one.",
        )


class HistoryUnknown(StopError):
    """The history's log does not say any more what the history covers."""

    code = ErrorCode.HISTORY_UNFIT

    def __init__(self, table: str, path: str, generation: int) -> None:
        self.table, self.path, self.generation = table, path, generation
        super().__init__(
            f"{table}: the log of {path} has no entry left that says which version of the source it covers.",
            f"find the newest `_commit_version` of the source's table in it, and run "
            f"`mirror-assets history --table {table} --skip-to VERSION` with the version after it.",
        )


class NoHistory(SettingError):
    """The history's folder holds another Delta table."""

    code = ErrorCode.HISTORY_UNFIT

    def __init__(self, table: str, path: str) -> None:
        self.table, self.path = table, path
        super().__init__(
            f"{table}: {path} holds a Delta table that is no history.",
            "choose another `history.path` in mirror.yaml, or move that table away.",
        )


class HistoryColumnsUnfit(SettingError):
    """The history's table can't hold a slice's columns beside those that it has."""

    code = ErrorCode.HISTORY_UNFIT

    def __init__(self, table: str, path: str, first: int, last: int, why: str) -> None:
        self.table, self.path, self.first, self.last, self.why = table, path, first, last, why
        super().__init__(
            f"{table}: the feed of versions {first} to {last} does not fit the columns of {path}: {why}.",
            f"for a type that grew, run `ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableTypeWidening = "
            "true)`, then run again. For anything else move that folder away and run "
            f"`mirror-assets history --table {table} --skip-to {first}`: it begins another history there.",
        )


class HistoryMoved(RetryError):
    """Another run has kept something meanwhile; nothing of this one was committed."""

    code = ErrorCode.LOST_RACE

    def __init__(self, table: str, generation: int) -> None:
        self.table, self.generation = table, generation
        super().__init__(f"{table}: another run has kept generation {generation} of the history.", "run again.")


class StreamBegunAgain(RetryError):
    """A stream could not go on with its checkpoint, which is thrown away; what it has kept stays."""

    code = ErrorCode.LOST_RACE

    def __init__(self, table: str, why: str) -> None:
        self.table, self.why = table, why
        super().__init__(f"{table}: the history's stream begins anew behind what is kept: {why}", "run again.")


class StreamNeedsClassicSession(SettingError):
    """The Spark session can't hand a stream's batches to this process."""

    code = ErrorCode.SESSION_UNFIT

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"{table}: `history: stream` needs a classic Spark session, not Spark Connect.",
            "set `history: slices`, which keeps the same rows.",
        )
