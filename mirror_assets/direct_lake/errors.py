"""The errors of this room: one table of codes with their families and messages, and a class where its type is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mirror_assets.errors import ErrorCode, MirrorError, SettingError, StopError


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


class _Message(NamedTuple):
    """Both halves of a message, with named fields for the facts."""

    family: type[MirrorError]
    what: str
    next_step: str


_MESSAGES: Mapping[ErrorCode, _Message] = {
    ErrorCode.DATA_FILE_MISSING: _Message(
        StopError,
        "{uri}: {path} is not there, though the version that is read has it (VACUUM, or deleted by hand).",
        "read a newer version; if this is the newest, restore the file, or take it out of the log with deltalake's "
        "`DeltaTable.repair()`, which loses its rows.",
    ),
    ErrorCode.FOOTER_UNREADABLE: _Message(
        StopError,
        "{uri}: the footer of {path} can't be read: {why}.",
        "compare the file's size with the log's; restore it, or write its rows again.",
    ),
    ErrorCode.CACHE_UNUSABLE: _Message(
        SettingError,
        "the footer cache {folder} can't be used: {why}.",
        "name a folder that this user may write, or go without a cache, which reads every footer each time.",
    ),
    ErrorCode.COLUMN_UNKNOWN: _Message(
        SettingError, "the table has no column `{column}`.", "name columns among {known}."
    ),
    ErrorCode.NOT_A_DATE: _Message(
        SettingError,
        "rows can't be kept by the age of `{column}`: {why}.",
        "name a column of dates or timestamps, or a partition column like yyyy, yyyyMM, yyyy-MM or yyyy-MM-dd.",
    ),
    ErrorCode.SKU_UNKNOWN: _Message(
        SettingError, "{name} is no capacity that has limits for Direct Lake.", "name one of {known}."
    ),
    ErrorCode.FRAME_REFUSED: _Message(
        SettingError,
        "{uri} has no version for the frame `{frame}`: {why}.",
        "name a version of this table, or a time at which it was there; check that it is the table you mean.",
    ),
    ErrorCode.NAME_REFUSED: _Message(
        SettingError,
        "{name!r} is no name that Fabric's table maintenance takes.",
        "name the table as its lakehouse does: up to {longest} letters, digits and underscores, not only digits; the "
        "schema is named apart.",
    ),
}

# A subclass per code, so that the code stands on the class, as everywhere in the error tree.
_CLASSES = {code: type(code.name, (message.family,), {"code": code}) for code, message in _MESSAGES.items()}


def direct_lake_error(code: ErrorCode, **facts: object) -> MirrorError:
    """Make the error of a code in the table above; `facts` are the fields of its message."""
    _, what, next_step = _MESSAGES[code]
    made: MirrorError = _CLASSES[code](what.format(**facts), next_step.format(**facts))
    return made
