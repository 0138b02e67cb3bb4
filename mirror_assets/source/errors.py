"""What can be wrong with a source: its place, its log, its columns."""

from __future__ import annotations

import re

from mirror_assets.errors import ErrorCode, RebuildError, RetryError, SettingError, StopError

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
    """There is no Delta log at the address."""

    code = ErrorCode.SOURCE_NOT_DELTA

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"{uri} is no Delta table: it has no commits in `_delta_log`.",
            leave_out_version(uri)
            or "put the table back if it was moved or unmounted: mirroring then continues by itself. For a new table, "
            "correct its address (the setting `source`), or write the table first.",
        )


_CORRECT = (
    "correct its address (of a table of mirror.yaml, the setting `source`), its credentials or permissions, or restore "
    "what is broken in its log; then run again."
)


class SourceUnreadable(SettingError):
    """The address, its credentials or its log can't be read as they are."""

    code = ErrorCode.SOURCE_UNREADABLE

    def __init__(self, uri: str, why: str, next_step: str | None = None) -> None:
        self.uri, self.why = uri, why
        super().__init__(f"{uri} can't be read: {why}.", next_step or _CORRECT)


_AGAIN = "run again; if it stays so, check the host in the table's address, and its credentials."


class SourceUnavailable(RetryError):
    """The source's storage did not answer, or answered that it is busy."""

    code = ErrorCode.SOURCE_UNAVAILABLE

    def __init__(self, uri: str, why: str, next_step: str = _AGAIN) -> None:
        self.uri, self.why = uri, why
        super().__init__(f"{uri} can't be read now: {why}.", next_step)


class LocationUnknown(RetryError):
    """Only a run can ask where the table lies: it has Spark, and here is none."""

    code = ErrorCode.LOCATION_UNKNOWN

    def __init__(self, table: str, catalog: str) -> None:
        self.table, self.catalog = table, catalog
        super().__init__(
            f"{table}: where the catalog {catalog} keeps it is not known here, and only Spark can ask it.",
            "mirror the table once (`mirror-assets run`, or its sensor's run): then it is known for an hour.",
        )


class SourceUnsupported(SettingError):
    """The table needs more of a reader than the log reader knows."""

    code = ErrorCode.SOURCE_UNFIT

    def __init__(self, uri: str, why: str) -> None:
        self.uri, self.why = uri, why
        super().__init__(
            f"{uri} needs what can't be read here: {why}.",
            f"drop it at the source (a table feature: `ALTER TABLE delta.`{uri}` DROP FEATURE …`), or make a copy "
            "without it and name that instead.",
        )


class CatalogManaged(SettingError):
    """A table whose commits are its catalog's: the log alone does not have the newest."""

    code = ErrorCode.SOURCE_UNFIT

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"{uri} is managed by a catalog, which alone knows its newest commits; it can't be read by its address.",
            "give its commits back to the log (in Databricks, with Runtime 18.0 or later: `ALTER TABLE … DROP FEATURE "
            "catalogManaged`), or keep a copy of it that no catalog manages, and name that instead.",
        )


class NoColumns(SettingError):
    """A table that was made before anybody knew its columns."""

    code = ErrorCode.SOURCE_UNFIT

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"{uri} has no columns yet: a schema in its log that is needed is empty, or left out.",
            "write its first rows, or add columns; if it has some, make a checkpoint behind them. Then run again.",
        )


class AddressOfDatabricks(SettingError):
    """An address that only a cluster of Databricks can open."""

    code = ErrorCode.SOURCE_UNREADABLE

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"{uri} is an address that only Databricks' own clusters can open.",
            "name the storage behind it, like `abfss://container@account.dfs.core.windows.net/path` or "
            "`s3://bucket/path`: `dbutils.fs.mounts()` tells that of a mount. What is in the root of DBFS has no "
            "address of its own: copy it to storage of yours.",
        )


class PropertyUnreadable(SettingError):
    """A property of the source is not what Delta writes."""

    code = ErrorCode.SOURCE_UNFIT

    def __init__(self, uri: str, name: str, why: str) -> None:
        self.uri, self.name = uri, name
        super().__init__(
            f"the property {name} of {uri} can't be read: {why}.",
            f"set it, like ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ({name} = 'interval 30 days').",
        )


class RangeRefused(SettingError):
    """A range of commits was asked for that the source does not have, or that can't be mirrored."""

    code = ErrorCode.RANGE_REFUSED

    def __init__(self, uri: str, why: str, next_step: str) -> None:
        self.uri, self.why = uri, why
        super().__init__(f"{uri} has no such range: {why}.", next_step)


class StartRefused(SettingError):
    """A mirror can't begin where `start` says."""

    code = ErrorCode.START_REFUSED

    def __init__(self, uri: str, start: str, why: str) -> None:
        self.uri, self.start, self.why = uri, start, why
        super().__init__(
            f"the mirror of {uri} can't begin with `start: {start}`: {why}.",
            "choose another start, `start: latest`, or `start: snapshot`, which lands the whole table; then run again.",
        )


class LogGap(RebuildError):
    """A commit that is needed is not in the log."""

    code = ErrorCode.LOG_GAP

    def __init__(self, uri: str, version: int) -> None:
        self.uri, self.version = uri, version
        super().__init__(
            f"{uri}: commit {version} is not in the Delta log (cleaned up, or lost).",
            "restore the file if the table is unreadable without it, else rebuild its mirror; to keep commits "
            "for longer, raise `delta.logRetentionDuration` or run more often.",
        )


class SchemaUnreadable(SettingError):
    """A schema in the log is not what Delta writes."""

    code = ErrorCode.SOURCE_UNFIT

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"the source's schema can't be understood: {why}.",
            "leave the table out of mirror.yaml, or copy it into a table of plain types.",
        )


class ColumnUnfit(SettingError):
    """A column whose type has no counterpart in the landing zone."""

    code = ErrorCode.SOURCE_UNFIT

    def __init__(self, column: str, column_type: str, table: str = "the source") -> None:
        self.column, self.column_type, self.table = column, column_type, table
        super().__init__(
            f"{table}: column `{column}` has type {column_type}, which a landing file can't hold.",
            "cast it at the source, or name the other ones in the table's `columns`.",
        )


class RowsChanged(StopError):
    """A commit changes or removes rows of a table that is mirrored as one that is only ever appended to."""

    code = ErrorCode.ROWS_CHANGED

    def __init__(self, table: str, version: int, why: str) -> None:
        self.table, self.version, self.why = table, version, why
        super().__init__(
            f"{table}: `changes: append_only` goes no further: {why}.",
            f"run `mirror-assets rebuild {table}`, which starts again with a snapshot behind it; or, if the source's "
            "change data feed was on by then, set `changes: feed` with `keys`, which mirrors such commits, too.",
        )
