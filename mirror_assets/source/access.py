"""How deltalake reaches a table: its address for the library, and options with credentials that are valid now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Access(Protocol):
    """The way to one table; whoever composes the program makes one for each store."""

    @property
    def uri(self) -> str:
        """The table's address as deltalake takes it."""
        ...

    def storage_options(self) -> Mapping[str, str]:
        """Return deltalake's options; they may change with time. Raises SettingError without credentials."""
        ...

    def elsewhere(self, uri: str) -> Access:
        """Return the way to another address, such as that of a shallow clone's files."""
        ...


@dataclass(frozen=True)
class PlainAccess:
    """The way to a table with options that never change: by default none, as for a table of this machine."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def storage_options(self) -> Mapping[str, str]:
        """Return the options."""
        return self.options

    def elsewhere(self, uri: str) -> Access:
        """Return the way there with the same options."""
        return PlainAccess(uri, self.options)


@dataclass(frozen=True)
class Located:
    """Where a table lies: its address as Spark takes it, and deltalake's way to it.

    `table_id` is the id that a catalog knows it by, which is not that of the Delta log.
    """

    uri: str
    access: Access = field(compare=False)
    table_id: str | None = None


# Asks a catalog where a table lies now.
Locate = Callable[[], Located]
