"""The errors of this room, with the text of their messages; a class only where other rooms name the type."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError, StopError


class FramesUnreadable(SettingError):
    """An export of a model's frames is not the answer of the two DAX queries that it should be."""

    code = ErrorCode.FRAMES_UNREADABLE

    def __init__(self, source: str, why: str) -> None:
        super().__init__(
            f"{source} does not tell a model's frames: {why}.",
            "run EVALUATE INFO.DELTATABLEMETADATASTORAGES() and EVALUATE INFO.PARQUETFILESTORAGES() on the model as "
            "its administrator, and export each answer whole, as CSV or JSON; or name versions instead.",
        )


class PlotsMissing(SettingError):
    """Matplotlib is not installed: reports and checks go on without pictures."""

    code = ErrorCode.PLOTS_MISSING

    def __init__(self) -> None:
        super().__init__(
            "matplotlib is not installed, so no picture can be drawn.",
            "pip install 'mirror-assets[plots]', then run again.",
        )


class PicturesUnwritable(SettingError):
    """The folder for pictures can't be written."""

    code = ErrorCode.PICTURES_UNWRITABLE

    def __init__(self, folder: str, why: str) -> None:
        super().__init__(f"pictures can't be written to {folder}: {why}.", "name a folder that this user may write.")


def live_file_missing(uri: str, path: str) -> StopError:
    """Return the error for a data file that the version needs, and that is gone."""
    return StopError(
        f"{uri}: {path} is not there, though the version that is read has it (VACUUM, or deleted by hand).",
        "read a newer version; if this is the newest, restore the file, or take it out of the log with deltalake's "
        "`DeltaTable.repair()`, which loses its rows.",
        code=ErrorCode.DATA_FILE_MISSING,
    )


def footer_unreadable(uri: str, path: str, why: str) -> StopError:
    """Return the error for a data file that doesn't end as a Parquet file of its size does."""
    return StopError(
        f"{uri}: the footer of {path} can't be read: {why}.",
        "compare the file's size with the log's; restore it, or write its rows again.",
        code=ErrorCode.FOOTER_UNREADABLE,
    )


def cache_unusable(folder: str, why: str) -> SettingError:
    """Return the error for a cache of footers that can't be read or written."""
    return SettingError(
        f"the footer cache {folder} can't be used: {why}.",
        "name a folder that this user may write, or go without a cache, which reads every footer each time.",
        code=ErrorCode.CACHE_UNUSABLE,
    )


def column_unknown(column: str, known: str) -> SettingError:
    """Return the error for a column that the table doesn't have."""
    return SettingError(
        f"the table has no column `{column}`.", f"name columns among {known}.", code=ErrorCode.COLUMN_UNKNOWN
    )


def not_a_date(column: str, why: str) -> SettingError:
    """Return the error for a column without dates, by which rows can't be aged."""
    return SettingError(
        f"rows can't be kept by the age of `{column}`: {why}.",
        "name a column of dates or timestamps, or a partition column like yyyy, yyyyMM, yyyy-MM or yyyy-MM-dd.",
        code=ErrorCode.NOT_A_DATE,
    )


def sku_unknown(name: str, known: str) -> SettingError:
    """Return the error for a capacity that doesn't exist."""
    return SettingError(
        f"{name} is no capacity that has limits for Direct Lake.", f"name one of {known}.", code=ErrorCode.SKU_UNKNOWN
    )


def frame_refused(uri: str, frame: str, why: str) -> SettingError:
    """Return the error for a frame at a version or time that the table can't have."""
    return SettingError(
        f"{uri} has no version for the frame `{frame}`: {why}.",
        "name a version of this table, or a time at which it was there; check that it is the table you mean.",
        code=ErrorCode.FRAME_REFUSED,
    )


def fabric_name_refused(name: str, longest: int) -> SettingError:
    """Return the error for a name of a table or schema that Fabric's table maintenance refuses."""
    return SettingError(
        f"{name!r} is no name that Fabric's table maintenance takes.",
        f"name the table as its lakehouse does: up to {longest} letters, digits and underscores, not only digits; the "
        "schema is named apart.",
        code=ErrorCode.NAME_REFUSED,
    )
