"""How a history begins, and the settings of its runs: drawn at random."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from hypothesis import strategies as st

from mirror_assets_tests.lab import Lab
from mirror_assets_tests.worlds.operations.features import (
    BY_ID,
    BY_QUERY,
    CLONED,
    IDENTITY,
    MODERN,
    PARTITIONED,
    PLAIN,
    RUST,
    VECTORS,
    Features,
)


class Way(Enum):
    """How the changes of a source are found, and whether its rows have a key."""

    FEED = "feed"
    COMPACT = "feed, net changes"
    FILES = "files"
    TRACKED = "row tracking"
    KEYLESS = "row tracking without keys"
    APPENDS = "append only"

    @property
    def changes(self) -> str:
        """The setting."""
        named = {Way.FEED: "feed", Way.COMPACT: "feed", Way.FILES: "files", Way.APPENDS: "append_only"}
        return named.get(self, "row_tracking")

    @property
    def is_feed(self) -> bool:
        """Whether the change data feed is read."""
        return self in (Way.FEED, Way.COMPACT)

    @property
    def keys(self) -> str:
        """The setting."""
        return "[]" if self is Way.KEYLESS else "[id]"

    @property
    def needs(self) -> str | None:
        """The property that the source must have."""
        needed = {"feed": "enableChangeDataFeed", "row_tracking": "enableRowTracking"}
        return needed.get(self.changes)


@dataclass(frozen=True)
class Choice:
    """The rows and values that leave the lake: a condition, and expressions with their types (None: the source's)."""

    where: str | None = None
    columns: tuple[tuple[str, str, str | None], ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        """The lines of mirror.yaml."""
        computed = {name: {"sql": sql, **({"type": kind} if kind else {})} for name, sql, kind in self.columns}
        lines = {"where": self.where, "columns": computed}
        return tuple(f"{name}: {json.dumps(value)}" for name, value in lines.items() if value)


SALT = "a secret of the lake's"
WHERE = (None, None, "id % 3 <> 0", "part = 1", "name > 'd' OR amount >= 2", "amount IS NULL OR amount < 3", "id < 0")
MASKS = (
    ("name", "sha2(concat(name, '${SALT}'), 256)", None),
    ("name", "left(name, 2)", None),
    ("name", "NULL", None),
    ("amount", "round(amount, -1)", None),
    ("id", "sha2(concat(id, '${SALT}'), 256)", "string"),
    ("part", "'?'", "string"),
)
DERIVED = (
    ("label", "concat(part, '-', name)", "string"),
    ("total", "amount * (part + 1)", "decimal(30,4)"),
    ("is_long", "length(name) > 3", "boolean"),
)


@dataclass(frozen=True)
class Setup:
    """A kind of table, and what its mirror does at breaks. Without `feed`, the source records none."""

    features: Features
    hold: bool
    keep_dropped: bool
    feed: bool
    choice: Choice = Choice()

    def features_for(self, way: Way) -> Features:
        """The table's, where changes are found this way."""
        if way.is_feed or self.feed:
            return self.features
        off: Mapping[str, str] = {**self.features.properties, "delta.enableChangeDataFeed": "false"}
        return replace(self.features, properties=off)


@dataclass(frozen=True)
class Limits:
    """How a run cuts what is there; `compact` only counts for a feed. `polls`: the mirror follows each slice."""

    commits: int
    rows: int
    target_rows: int
    compact: bool
    polls: bool

    def configure(self, lab: Lab, way: Way, setup: Setup) -> None:
        """Write mirror.yaml."""
        compact = way is Way.COMPACT or (self.compact and way is Way.FEED)
        table = (
            f"changes: {way.changes}",
            f"compact: {str(compact).lower()}",
            f"on_break: {'hold' if setup.hold else 'rebuild'}",
            f"on_drop_column: {'keep' if setup.keep_dropped else 'rebuild'}",
            *setup.choice.settings,
        )
        slices = f"slices: {{max_commits: {self.commits}, max_rows: {self.rows}}}"
        lab.configure("\n    ".join(table), f"{slices}\n  files: {{target_rows: {self.target_rows}}}", way.keys)


KINDS = (PLAIN, MODERN, PARTITIONED, VECTORS, RUST, BY_ID, CLONED, BY_QUERY, IDENTITY)
SETUPS = st.builds(
    Setup,
    st.sampled_from([MODERN, BY_ID, *KINDS]),
    hold=st.sampled_from([False, False, True]),
    keep_dropped=st.sampled_from([True, True, False]),
    feed=st.booleans(),
)
CHOICES = st.builds(
    Choice,
    where=st.sampled_from(WHERE),
    columns=st.builds(lambda mask, derived: (mask, derived), st.sampled_from(MASKS), st.sampled_from(DERIVED)),
)
CHOOSING_SETUPS = st.builds(replace, SETUPS, choice=CHOICES)
LIMITS = st.builds(
    Limits,
    commits=st.sampled_from([100, 3, 2, 100, 1]),
    rows=st.sampled_from([1000, 1000, 8, 2]),
    target_rows=st.sampled_from([3, 1, 8, 1000]),
    compact=st.sampled_from([False, False, True]),
    polls=st.booleans(),
)
# All that waits is one slice of many small parts.
MANY_PARTS = st.builds(
    Limits,
    commits=st.just(100),
    rows=st.just(1000),
    target_rows=st.sampled_from([3, 2, 1, 5]),
    compact=st.just(False),
    polls=st.just(False),
)
