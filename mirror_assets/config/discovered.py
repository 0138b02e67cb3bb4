"""The result of the rules of `discover`: the state of each folder, and the numbers of each rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from mirror_assets.errors import MirrorError

if TYPE_CHECKING:
    from mirror_assets.config.model import Config


class When(Enum):
    """When places are scanned: never, if they were never listed, or in any case.

    The first two are limited to 20 seconds. `now` also reads folders again that were no tables a moment ago. `accept`
    does the same, and removes all tables that are not listed, however many.
    """

    NEVER = "never"
    UNKNOWN = "unknown"
    REFRESH = "refresh"
    NOW = "now"
    ACCEPT = "accept"


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

    `trouble` is the reason why the latest scan changed nothing, and `code` its error code if the listing or the landing
    zone failed. `unused_keys` are the names in its `keys` that no folder has.
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
    """The result of all rules of a configuration, and what the feature that found it remembers; None if nothing.

    It is not confirmed if this process could not read the memory: a folder may have the name of a known table then.
    """

    tables: tuple[DiscoveredTable, ...] = ()
    rules: tuple[RuleOutcome, ...] = ()
    memory: object = None
    is_confirmed: bool = True

    @property
    def refused(self) -> tuple[str, ...]:
        """The messages for tables that are not mirrored because others have their names, each with the next step."""
        taken = (row for row in self.tables if row.state is FoundState.NAME_TAKEN)
        return tuple(f"{row.address} is not mirrored as {row.name}: {row.reason}" for row in taken)

    def with_trouble(self, error: MirrorError) -> Discovered:
        """Return the result with an error of the landing zone at each rule that has no trouble of its own."""
        trouble, code = str(error), error.code.value
        rules = (rule if rule.trouble else replace(rule, trouble=trouble, code=code) for rule in self.rules)
        return replace(self, rules=tuple(rules))


def with_found_tables(config: Config, when: When = When.UNKNOWN) -> Config:
    """Return the configuration with the tables that its rules find, in place of those that they found before."""
    for feature in config.all_features:
        config = feature.with_found_tables(config, when)
    return config
