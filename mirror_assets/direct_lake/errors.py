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


class FramesUnreadable(SettingError):
    """An export of a model's frames is not the answer of the queries that it should be."""

    code = ErrorCode.FRAMES_UNREADABLE

    def __init__(self, source: str, why: str) -> None:
        self.source, self.why = source, why
        super().__init__(
            f"{source} does not tell a model's frames: {why}.",
            "run EVALUATE INFO.DELTATABLEMETADATASTORAGES() and EVALUATE INFO.PARQUETFILESTORAGES() on the model as "
            "its administrator, and export each answer whole, as CSV or JSON; or name versions instead.",
        )


class FrameRefused(SettingError):
    """A frame was named that the table can't have."""

    code = ErrorCode.FRAME_REFUSED

    def __init__(self, uri: str, frame: str, why: str) -> None:
        self.uri, self.frame, self.why = uri, frame, why
        super().__init__(
            f"{uri} has no version for the frame `{frame}`: {why}.",
            "name a version of this table, or a time at which it was there; check that it is the table you mean.",
        )


class SkuUnknown(SettingError):
    """There is no capacity of that name."""

    code = ErrorCode.SKU_UNKNOWN

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(f"{name} is no capacity that has limits for Direct Lake.", f"name one of {', '.join(known)}.")


class FabricNameRefused(SettingError):
    """Fabric's table maintenance takes no table or schema of that name."""

    code = ErrorCode.NAME_REFUSED

    def __init__(self, name: str, longest: int) -> None:
        self.name, self.longest = name, longest
        super().__init__(
            f"{name!r} is no name that Fabric's table maintenance takes.",
            f"name the table as its lakehouse does: up to {longest} letters, digits and underscores, not only digits; "
            "the schema is named apart.",
        )


class PlotsMissing(SettingError):
    """The library that draws is not installed."""

    code = ErrorCode.PLOTS_MISSING

    def __init__(self) -> None:
        super().__init__(
            "matplotlib is not installed, so no picture can be drawn.",
            "pip install 'mirror-assets[plots]', then run again.",
        )


class PicturesUnwritable(SettingError):
    """The folder that pictures are to be drawn in can't be written."""

    code = ErrorCode.PICTURES_UNWRITABLE

    def __init__(self, folder: str, why: str) -> None:
        self.folder, self.why = folder, why
        super().__init__(f"pictures can't be written to {folder}: {why}.", "name a folder that this user may write.")


class NotADate(SettingError):
    """Rows can't be kept by a column whose values are no dates."""

    code = ErrorCode.NOT_A_DATE

    def __init__(self, column: str, why: str) -> None:
        self.column, self.why = column, why
        super().__init__(
            f"rows can't be kept by the age of `{column}`: {why}.",
            "name a column of dates or timestamps, or a partition column like yyyy, yyyyMM, yyyy-MM or yyyy-MM-dd.",
        )
