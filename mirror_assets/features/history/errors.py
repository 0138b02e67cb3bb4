"""The errors of histories."""

from __future__ import annotations

from mirror_assets.errors import Code, ErrorCode, ErrorRow, RetryError, SettingError, StopError


class HistoryCode(Code):
    """The codes of this feature."""

    HISTORY_GAP = "history_gap"
    HISTORY_UNFIT = "history_unfit"


HISTORY_FEED_OFF = ErrorRow(
    ErrorCode.FEED_DISABLED,
    SettingError,
    "The source of a history records no change data feed.",
    "{table}: the change data feed of {uri} is off, so its history can't be stored.",
    "{how} Or set `history: false`.",
    "ALTER TABLE delta.`/lake/orders` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
)
HISTORY_GAP = ErrorRow(
    HistoryCode.HISTORY_GAP,
    StopError,
    "Commits that the history does not have are no longer readable.",
    "{table}: the history can't continue: {lost} can't be read any more ({why}).",
    "restore the files if you can. If not, they are lost permanently: `mirror-assets history --table {table} "
    "--skip-to {next_version}` continues without them.",
    "mirror-assets history --table TABLE --skip-to 120    # the version in the message",
)
HISTORY_AHEAD = ErrorRow(
    HistoryCode.HISTORY_UNFIT,
    StopError,
    "A history that covers versions which the source does not have.",
    "{table}: the source ends at version {tip}, and its history {path} at version {covered}.",
    "the source was restored without Delta. Move the history's folder: the next run starts another history.",
    "mirror-assets history --table TABLE",
)


class HistoryUnknown(StopError):
    """Log cleanup has removed every entry that records what the history covers; `generation` is the newest commit's."""

    generation: int


HISTORY_UNKNOWN = ErrorRow(
    HistoryCode.HISTORY_UNFIT,
    HistoryUnknown,
    "Log cleanup has removed every entry that records what the history covers.",
    "{table}: the log of {path} no longer records which version of the source it covers.",
    "find the newest `_commit_version` of the source's table in it, and run `mirror-assets history --table "
    "{table} --skip-to VERSION` with the version after it.",
    "mirror-assets history --table TABLE",
)
STREAM_UNFIT = ErrorRow(
    HistoryCode.HISTORY_UNFIT,
    SettingError,
    "`history: stream` in a session of Spark Connect, which can't hand batches to this process.",
    "{table}: `history: stream` needs a Spark in this process, and `spark.remote` names a Spark Connect server.",
    "set `history: slices`, which stores the same rows.",
    "mirror-assets history --table TABLE",
)
NO_HISTORY = ErrorRow(
    HistoryCode.HISTORY_UNFIT,
    SettingError,
    "A Delta table in the history's folder that is not a history.",
    "{table}: {path} has a Delta table that is not a history.",
    "choose another `history.path` in mirror.yaml, or move that table.",
    "mirror-assets history --table TABLE",
)


class HistoryColumnsUnfit(SettingError):
    """A slice's columns don't fit the history's table."""

    why: str


HISTORY_COLUMNS_UNFIT = ErrorRow(
    HistoryCode.HISTORY_UNFIT,
    HistoryColumnsUnfit,
    "A slice's columns don't fit the history's table.",
    "{table}: the feed of versions {first} to {last} does not fit the columns of {path}: {why}.",
    "for a type that grew, run `ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableTypeWidening = true)`, "
    "then run again. For anything else move that folder and run `mirror-assets history --table {table} --skip-to "
    "{first}`: it starts another history there.",
    "mirror-assets history --table TABLE",
)
HISTORY_OVERTAKEN = ErrorRow(
    ErrorCode.TABLE_BUSY,
    RetryError,
    "The history must be planned again: another run has committed, or the schema changed during a stream.",
    "{table}: {why}; the history is planned again.",
    "run again.",
    "mirror-assets status --table TABLE    # the other run and its host",
)
SKIP_TO_NEEDS_A_TABLE = ErrorRow(
    ErrorCode.VERSION_REFUSED,
    SettingError,
    "`--skip-to` was given for several tables.",
    "--skip-to names a version of one table.",
    "name that table, and no other, with --table.",
    "mirror-assets history --table TABLE --skip-to 120",
)
