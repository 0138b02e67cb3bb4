"""Access to a table by deltalake: its address for the library, and options with credentials that are valid now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Access(Protocol):
    """Access to one table; each kind of store has its own."""

    @property
    def uri(self) -> str:
        """The table's address as deltalake takes it."""
        ...

    def storage_options(self) -> Mapping[str, str]:
        """Return deltalake's options; they may change with time. Raises SettingError without credentials."""
        ...

    def elsewhere(self, uri: str) -> Access:
        """Return the access to another address, such as that of a shallow clone's files."""
        ...


@dataclass(frozen=True)
class PlainAccess:
    """Access with options that never change: by default none, as for a table of this machine."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def storage_options(self) -> Mapping[str, str]:
        """Return the options."""
        return self.options

    def elsewhere(self, uri: str) -> Access:
        """Return the access with the same options."""
        return PlainAccess(uri, self.options)


@dataclass(frozen=True)
class Located:
    """A table's address as Spark takes it, and its access by deltalake.

    `table_id` is the id of the table in its catalog, which differs from that in the Delta log.
    """

    uri: str
    access: Access = field(compare=False)
    table_id: str | None = None


Locate = Callable[[], Located]
"""Asks a catalog for the current address of a table."""
