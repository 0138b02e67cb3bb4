"""The errors of this package."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError, StopError


def frames_unreadable(source: str, why: str) -> SettingError:
    """Return the error for an export of a model's frames that is not the result of the DAX query."""
    return SettingError(
        f"{source} has no readable frames of a model: {why}.",
        "run EVALUATE INFO.DELTATABLEMETADATASTORAGES() on the model as its administrator, and export the whole "
        "result, as CSV or JSON; or name versions instead.",
        code=ErrorCode.CONFIG_INVALID,
    )


def live_file_missing(uri: str, path: str) -> StopError:
    """Return the error for a data file of the version that doesn't exist."""
    return StopError(
        f"{uri}: {path} is missing, though the version needs it (deleted by VACUUM, or by hand).",
        "read a newer version; if this is the newest, restore the file, or remove it from the log with deltalake's "
        "`DeltaTable.repair()`, which loses its rows.",
        code=ErrorCode.DATA_FILE_MISSING,
    )


def footer_unreadable(uri: str, path: str, why: str) -> StopError:
    """Return the error for a data file that is not a complete Parquet file."""
    return StopError(
        f"{uri}: the footer of {path} can't be read: {why}.",
        "compare the file's size with the log's; restore it, or write its rows again.",
        code=ErrorCode.DATA_FILE_UNREADABLE,
    )


def cache_unusable(folder: str, why: str) -> SettingError:
    """Return the error for a cache of footers that can't be read or written."""
    return SettingError(
        f"the footer cache {folder} can't be used: {why}.",
        "name a folder that this user may write, or use --no-cache, which reads every footer each time.",
        code=ErrorCode.CONFIG_INVALID,
    )


def column_unknown(column: str, known: str) -> SettingError:
    """Return the error for a column that the table doesn't have."""
    return SettingError(
        f"the table has no column `{column}`.", f"name columns among {known}.", code=ErrorCode.CONFIG_INVALID
    )


def frame_refused(uri: str, frame: str, why: str) -> SettingError:
    """Return the error for a frame at a version or time that the table can't have."""
    return SettingError(
        f"{uri} has no version for the frame `{frame}`: {why}.",
        "name a version of this table, or a time at which it existed; check that it is the right table.",
        code=ErrorCode.VERSION_REFUSED,
    )


def vacuum_refused(table: str, files: int, needed_by: tuple[str, ...], statement: str) -> SettingError:
    """Return the error for a VACUUM that did not run, because it would delete files that are still needed."""
    what = f"would delete {files:,}" if files else "might delete"
    return SettingError(
        f"{table}: VACUUM {what} files of its source that are needed by {', '.join(needed_by)}.",
        "refresh the model and remove its old frame from mirror.yaml; or mirror the pending commits, if the mirror or "
        f"the history needs the files; or keep files longer: {statement}.",
        code=ErrorCode.VACUUM_REFUSED,
    )
