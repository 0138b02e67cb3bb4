"""What can keep a picture from being drawn."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError


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
