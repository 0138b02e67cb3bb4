"""What can be wrong with a table's Parquet files, and with the folder that their facts are kept in."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError, StopError


class LiveFileMissing(StopError):
    """A file of the version that is looked at is gone."""

    code = ErrorCode.DATA_FILE_MISSING

    def __init__(self, uri: str, path: str) -> None:
        self.uri, self.path = uri, path
        super().__init__(
            f"{uri}: {path} is not there, though the version that is looked at has it (VACUUM, or by hand).",
            "look at a newer version; if this is the newest, restore the file, or take it out of the log with "
            "deltalake's `DeltaTable.repair()`, which loses its rows.",
        )


class FooterUnreadable(StopError):
    """A data file does not end as a Parquet file of its size does."""

    code = ErrorCode.FOOTER_UNREADABLE

    def __init__(self, uri: str, path: str, why: str) -> None:
        self.uri, self.path, self.why = uri, path, why
        super().__init__(
            f"{uri}: the footer of {path} can't be read: {why}.",
            "compare the file's size with the log's; restore it, or write its rows again.",
        )


class CacheUnusable(SettingError):
    """The folder that facts of footers are to be kept in can't be written."""

    code = ErrorCode.CACHE_UNUSABLE

    def __init__(self, folder: str, why: str) -> None:
        self.folder, self.why = folder, why
        super().__init__(
            f"the footer cache {folder} can't be used: {why}.",
            "name a folder that this user may write, or go without a cache, which reads every footer each time.",
        )


class ColumnUnknown(SettingError):
    """A column was named that the table doesn't have."""

    code = ErrorCode.COLUMN_UNKNOWN

    def __init__(self, column: str, known: tuple[str, ...]) -> None:
        self.column, self.known = column, known
        super().__init__(f"the table has no column `{column}`.", f"name columns among {', '.join(known)}.")
