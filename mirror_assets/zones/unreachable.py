"""The landing zone that can't be opened: it has an address, and each request raises the same error."""

from __future__ import annotations

from typing import NoReturn, cast

from mirror_assets.errors import SettingError
from mirror_assets.zones.store import Store


class _UnreachableStore:
    def __init__(self, root: str, error: SettingError) -> None:
        self.root, self._error = root, error

    def __getattr__(self, name: str) -> NoReturn:
        """Raise the error: every method of the interface is a request."""
        raise self._error


def unreachable_store(root: str, error: SettingError) -> Store:
    """Return a store of which each request raises the error."""
    return cast("Store", _UnreachableStore(root, error))
