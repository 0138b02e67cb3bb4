"""The result of the rules of `discover`: the state of each folder, and the numbers of each rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FoundState(str, Enum):
    """The state of a folder that a rule found; the first two are tables of the configuration."""

    MIRRORED = "mirrored"
    NEW = "new"
    HELD = "held"
    EXCLUDED = "excluded"
    NAMED = "named"
    NO_KEYS = "no keys"
    FEED_OFF = "feed off"
    ROW_TRACKING_OFF = "row tracking off"
    NOT_A_TABLE = "not a table"
    UNREADABLE = "unreadable"
    UNREAD = "not read yet"
    NAME_REFUSED = "name refused"
    NAME_TAKEN = "name taken"

    @property
    def is_mirrored(self) -> bool:
        """Whether it is a table of the configuration."""
        return self in (FoundState.MIRRORED, FoundState.NEW)

    @property
    def is_table(self) -> bool:
        """Whether it is a table with a valid name, mirrored or not."""
        others = (FoundState.EXCLUDED, FoundState.NOT_A_TABLE, FoundState.UNREADABLE, FoundState.UNREAD)
        return self not in (*others, FoundState.NAME_REFUSED)


@dataclass(frozen=True)
class DiscoveredTable:
    """A folder that a rule (from 0) found: its name in the mirror, its address and its state.

    `path` is below the place's root. `reason` says why it is not mirrored, and how to change that.
    """

    name: str
    address: str
    path: str
    rule: int
    state: FoundState
    reason: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleOutcome:
    """The numbers of a rule (from 0).

    `trouble` is the reason why the latest scan changed nothing, and `code` its error code if the listing failed.
    `unused_keys` are the names in its `keys` that no folder has.
    """

    rule: int
    place: str
    folders: int = 0
    tables: int = 0
    mirrored: int = 0
    trouble: str = ""
    unused_keys: tuple[str, ...] = ()
    code: str | None = None

    @property
    def is_well(self) -> bool:
        """Whether the latest scan worked, and there are tables, mirrored or not."""
        return not self.trouble and self.tables > 0


@dataclass(frozen=True)
class Discovered:
    """The result of all rules of a configuration."""

    tables: tuple[DiscoveredTable, ...] = ()
    rules: tuple[RuleOutcome, ...] = ()
