"""A store that counts its requests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mirror_assets.zones import LocalStore

_COUNTED = frozenset({"head", "list", "read", "open", "create", "replace", "rename", "delete"})


class CountingStore(LocalStore):
    """A folder of this machine; `requested` are the requests by kind since it was last cleared."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.requested: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> object:
        """Count an access to a method as a request."""
        if name in _COUNTED:
            self.requested[name] += 1
        return super().__getattribute__(name)
