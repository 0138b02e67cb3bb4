"""The landing zone that can't be opened: it has an address, and each request raises the same error."""

from __future__ import annotations

from typing import NoReturn

from mirror_assets.errors import SettingError


class UnreachableStore:
    """A store of which each request raises the error."""

    def __init__(self, root: str, error: SettingError) -> None:
        """Take the address, for messages."""
        self.root, self._error = root, error

    def __getattr__(self, name: str) -> NoReturn:
        """Raise the error: every other attribute is a request."""
        raise self._error
