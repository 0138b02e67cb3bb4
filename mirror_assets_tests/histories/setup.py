"""How a history begins, and the settings of its runs: drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from hypothesis import strategies as st

from mirror_assets_tests.lab import Lab
from mirror_assets_tests.operations.features import (
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
class Setup:
    """A kind of table, and what its mirror does at breaks. Without `feed`, the source records none."""

    features: Features
    hold: bool
    keep_dropped: bool
    feed: bool

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
