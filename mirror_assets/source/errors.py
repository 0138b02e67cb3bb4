"""Errors of a source: its address, its log, its columns."""

from __future__ import annotations

import re

from mirror_assets.errors import ErrorCode, RebuildError, RetryError, SettingError, StopError, rebuild_step

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

    code = ErrorCode.SOURCE_NOT_DELTA

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"{uri} is not a Delta table: it has no commits in `_delta_log`.",
            leave_out_version(uri)
            or "restore the table if it was moved or unmounted: mirroring then continues automatically. For a new "
            "table, correct its address (the setting `source`), or write the table first.",
        )


class SourceUnreadable(SettingError):
    """The source can't be read because of its address, its credentials or its log."""

    code = ErrorCode.SOURCE_UNREADABLE

    def __init__(self, uri: str, why: str, next_step: str | None = None) -> None:
        self.uri, self.why = uri, why
        super().__init__(
            f"{uri} can't be read: {why}.",
            next_step
            or "correct its address (of a table of mirror.yaml, the setting `source`), its credentials or permissions, "
            "or restore the damaged files of its log; then run again.",
        )


class ChangeFileIncomplete(SourceUnreadable):
    """The log lacks a change file's partition values. The data files of the commit may have them."""

    def __init__(self, uri: str, path: str) -> None:
        why = f"its log has the change file {path} without its partition values"
        super().__init__(uri, why, "rebuild the table's mirror, or set `changes: files` for it.")


class SourceUnavailable(RetryError):
    """The source's store did not answer, or is busy."""

    code = ErrorCode.SOURCE_UNAVAILABLE

    def __init__(
        self,
        uri: str,
        why: str,
        next_step: str = "run again. If the error persists, check the host in the table's address and its credentials.",
    ) -> None:
        self.uri, self.why = uri, why
        super().__init__(f"{uri} can't be read now: {why}.", next_step)


class LocationUnknown(RetryError):
    """A table is in a catalog that only Spark can query, and this process has no Spark session."""

    code = ErrorCode.LOCATION_UNKNOWN

    def __init__(self, table: str, catalog: str) -> None:
        self.table, self.catalog = table, catalog
        super().__init__(
            f"{table}: its address in the catalog {catalog} is not known yet, and only Spark can ask it.",
            "mirror the table once (`mirror-assets run`, or its sensor's run). The address is then cached for an hour.",
        )


class LogGap(RebuildError):
    """A required commit is not in the log."""

    code = ErrorCode.LOG_GAP

    def __init__(self, uri: str, version: int) -> None:
        self.uri, self.version = uri, version
        super().__init__(
            f"{uri}: commit {version} is not in the Delta log (cleaned up, or lost).",
            "restore the file if the table is unreadable without it, else rebuild its mirror; to retain commits "
            "longer, increase `delta.logRetentionDuration` or run more often.",
        )


class FileOverwritten(RebuildError):
    """The log has two data files of one name, so the rows of the first one can't be read."""

    code = ErrorCode.SOURCE_BREAK

    def __init__(self, uri: str, path: str) -> None:
        self.uri, self.path = uri, path
        super().__init__(
            f"{uri}: a commit adds another file under the same name, {path}, so its old rows are lost.",
            "rebuild the table's mirror. The source's writer must give each data file a new name.",
        )


class ColumnUnfit(SettingError):
    """A column's type has no counterpart in the landing zone."""

    code = ErrorCode.SOURCE_UNFIT

    def __init__(self, column: str, column_type: str, table: str) -> None:
        super().__init__(
            f"{table}: column `{column}` has type {column_type}, which a landing file can't hold.",
            "cast it at the source, or name the other columns in the table's `columns`.",
        )


class RowsChanged(StopError):
    """A commit changes or removes rows of a table that is mirrored as append-only."""

    code = ErrorCode.ROWS_CHANGED

    def __init__(self, table: str, version: int, why: str) -> None:
        self.table, self.version, self.why = table, version, why
        super().__init__(
            f"{table}: `changes: append_only` can't continue: {why}.",
            f"{rebuild_step(table)}, which starts again with a snapshot after this commit; or, if the "
            "source's change data feed was on by then, set `changes: feed` with `keys`, which mirrors such commits.",
        )


def source_unsupported(uri: str, why: str) -> SettingError:
    """Return the error for a table that requires a feature, a version or a type that the log reader doesn't support."""
    return SettingError(
        f"{uri} uses {why}, which this reader doesn't support.",
        f"remove it at the source (a table feature: `ALTER TABLE delta.`{uri}` DROP FEATURE …`), or mirror a copy "
        "without it.",
        code=ErrorCode.SOURCE_UNFIT,
    )


def columns_alike(uri: str, name: str) -> SettingError:
    """Return the error for a table with two columns, or fields of a struct, whose names differ in case only."""
    return SettingError(
        f"{uri} has {name!r} and another column or field whose name differs from it in case only. Spark and Fabric "
        "ignore case, so they can't distinguish the two.",
        "rename one of them, with the program that made them.",
        code=ErrorCode.SOURCE_UNFIT,
    )


def catalog_managed(uri: str) -> SettingError:
    """Return the error for a table whose catalog holds its newest commits."""
    return SettingError(
        f"{uri} is managed by a catalog: its log doesn't have the newest commits, so it can't be read by its address.",
        "move its commits back to the log (in Databricks, with Runtime 18.0 or later: `ALTER TABLE … DROP FEATURE "
        "catalogManaged`), or mirror a copy that no catalog manages.",
        code=ErrorCode.SOURCE_UNFIT,
    )


def no_columns(uri: str) -> SettingError:
    """Return the error for a table that was created before its columns were known."""
    return SettingError(
        f"{uri} has no columns yet: its log has an empty schema, or none.",
        "write its first rows, or add columns; if it has columns now, create a checkpoint. Then run again.",
        code=ErrorCode.SOURCE_UNFIT,
    )


def databricks_only(uri: str) -> SettingError:
    """Return the error for an address that only a cluster of Databricks can open."""
    return SettingError(
        f"{uri} is an address that only Databricks' own clusters can open.",
        "use the address of the underlying storage, like `abfss://container@account.dfs.core.windows.net/path` or "
        "`s3://bucket/path`: `dbutils.fs.mounts()` lists those of mounts. Copy tables from the root of DBFS, which has "
        "no such address, to storage of yours.",
        code=ErrorCode.SOURCE_UNREADABLE,
    )


def property_unreadable(uri: str, name: str, why: str) -> SettingError:
    """Return the error for a table property with a value that Delta doesn't write."""
    return SettingError(
        f"the property {name} of {uri} can't be read: {why}.",
        f"set it, like ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ({name} = 'interval 30 days').",
        code=ErrorCode.SOURCE_UNFIT,
    )


def schema_unreadable(why: str) -> SettingError:
    """Return the error for a schema in the log that Delta doesn't write."""
    return SettingError(
        f"the source's schema can't be parsed: {why}.",
        "leave the table out of mirror.yaml, or copy it into a table of plain types.",
        code=ErrorCode.SOURCE_UNFIT,
    )


def range_refused(uri: str, why: str, next_step: str) -> SettingError:
    """Return the error for a range of commits that the source doesn't have, or that can't be mirrored."""
    return SettingError(f"{uri} has no such range: {why}.", next_step, code=ErrorCode.VERSION_REFUSED)


def start_refused(uri: str, start: str, why: str, readable: int | None = None) -> SettingError:
    """Return the error for a `start` at which the mirror can't begin; `readable` is the first version that it can."""
    advice = "choose another start" if readable is None else f"set `start: {{version: {readable}}}`, the earliest"
    return SettingError(
        f"the mirror of {uri} can't begin with `start: {start}`: {why}.",
        f"{advice}, `start: latest`, or `start: snapshot`, which lands the whole table; then run again.",
        code=ErrorCode.VERSION_REFUSED,
    )
