"""The errors of this package."""

from __future__ import annotations

from mirror_assets.errors import Code, ErrorCode, ErrorRow, SettingError, StopError


class DirectLakeCode(Code):
    """The codes of this feature."""

    VACUUM_REFUSED = "vacuum_refused"


FRAMES_UNREADABLE = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "An export of a model's frames that is not the result of the DAX query.",
    "{source} has no readable frames of a model: {why}.",
    "run EVALUATE INFO.DELTATABLEMETADATASTORAGES() on the model as its administrator, and export the whole "
    "result, as CSV or JSON; or name versions instead, also of a table that has another name in the model.",
    "mirror-assets plan --config path/to/mirror.yaml    # lists all mistakes with their lines",
)
LIVE_FILE_MISSING = ErrorRow(
    ErrorCode.DATA_FILE_MISSING,
    StopError,
    "A file of the version that a Direct Lake report reads was deleted.",
    "{uri}: {path} is missing, though the version needs it (deleted by VACUUM, or by hand).",
    "read a newer version; if this is the newest, restore the file, or remove it from the log with deltalake's "
    "`DeltaTable.repair()`, which loses its rows.",
    "mirror-assets rebuild TABLE",
)
FOOTER_UNREADABLE = ErrorRow(
    ErrorCode.DATA_FILE_UNREADABLE,
    StopError,
    "A data file that is not a complete Parquet file.",
    "{uri}: the footer of {path} can't be read: {why}.",
    "compare the file's size with the log's; restore it, or write its rows again.",
    "mirror-assets rebuild TABLE    # after the rows were written again",
)
CACHE_UNUSABLE = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "A cache of footers that can't be read or written.",
    "the footer cache {folder} can't be used: {why}.",
    "name a folder that this user may write, or use --no-cache, which reads every footer each time.",
    "mirror-assets plan --config path/to/mirror.yaml    # lists all mistakes with their lines",
)
FRAME_REFUSED = ErrorRow(
    ErrorCode.VERSION_REFUSED,
    SettingError,
    "A frame at a version or time that the table can't have.",
    "{uri} has no version for the frame `{frame}`: {why}.",
    "name a version of this table, or a time at which it existed; check that it is the right table.",
    "mirror-assets plan --table TABLE",
)
VACUUM_REFUSED = ErrorRow(
    DirectLakeCode.VACUUM_REFUSED,
    SettingError,
    "VACUUM did not run, because it would delete files that are still needed.",
    "{table}: VACUUM {what} files of its source that are needed by {needed_by}.",
    "refresh the model and remove its old frame from mirror.yaml; or mirror the pending commits, if the mirror or the "
    "history needs the files; or keep files longer: {statement}.",
    "mirror-assets direct-lake vacuum-plan TABLE",
)
