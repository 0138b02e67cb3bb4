"""What can be wrong with what someone says that readers need."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError


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
