"""The errors of the command line itself."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, ErrorRow, SettingError

UNCONFIRMED = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "A command that deletes or changes a table has no terminal to ask for confirmation.",
    "{consequence}.",
    "there is no terminal to ask at; add --yes to confirm, or --dry-run to change nothing.",
)
