"""A table between two steps of a plan: its live files as they are, or will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mirror_assets.direct_lake.maintenance.predicate import partition_predicate
from mirror_assets.direct_lake.maintenance.rewrites import Rewrite, carried_out, effect_of
from mirror_assets.direct_lake.maintenance.values import Dialect, Effect, LeftOut, MaintenanceInput, StepKind
from mirror_assets.direct_lake.sql import table_at
from mirror_assets.source.actions import LiveFile, Metadata
from mirror_assets.source.replay import Snapshot

# Delta refuses OPTIMIZE and VACUUM of tables whose catalog commits, which is where they are maintained.
_MANAGED = frozenset({"catalogManaged", "catalogOwned-preview"})


@dataclass(frozen=True)
class PlannedTable:
    """A table's name in SQL, its live files, and what decides how they may be rewritten."""

    name: str
    files: tuple[LiveFile, ...]
    metadata: Metadata
    features: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot, wanted: MaintenanceInput) -> PlannedTable:
        """The table before the first step."""
        name = wanted.table or table_at(snapshot.uri)
        return cls(name, snapshot.files, snapshot.metadata, snapshot.protocol.features)

    @property
    def is_clustered(self) -> bool:
        """Whether it is liquid-clustered; by which columns, or none any more, the log's files don't tell."""
        return "clustering" in self.features

    @property
    def is_managed(self) -> bool:
        """Whether its catalog maintains it, and nobody else may."""
        return bool(self.features & _MANAGED)

    def where(self, chosen: Sequence[Rewrite], rewrites: Sequence[Rewrite]) -> str:
        """The WHERE clause that leaves the rest alone; empty when there is no rest, or no partition to tell it by."""
        touched = [rewrite for rewrite in rewrites if rewrite.bins]
        if not self.metadata.partition_columns or len(chosen) == len(touched):
            return ""
        return f" WHERE {partition_predicate(self.metadata, [rewrite.key for rewrite in chosen])}"

    def unheeded(self, kind: StepKind, chosen: Sequence[Rewrite], rewrites: Sequence[Rewrite]) -> LeftOut | None:
        """Why there is no such step, where Delta 4.4 would not heed its WHERE clause and rewrite all partitions."""
        dotted = next((name for name in self.metadata.partition_columns if "." in name), None)
        if dotted is None or not self.where(chosen, rewrites):
            return None
        return LeftOut(kind, f"not worth it in all partitions, and Delta heeds no condition on `{dotted}`, for its dot")

    def rewritten(
        self, chosen: Sequence[Rewrite], kind: StepKind, wanted: MaintenanceInput
    ) -> tuple[PlannedTable, Effect]:
        """The table after these rewrites, and what they do to it.

        Fabric's runtime has rules of its own that are not published as source ("fast optimize", "adaptive target file
        size"), so there the numbers are estimates.
        """
        after = carried_out(self.files, chosen, kind.value, wanted.dropped)
        is_exact = wanted.dialect is Dialect.DELTA and not self.is_clustered
        return replace(self, files=after), effect_of(self.files, after, is_exact=is_exact)
