"""Sets of table features that a source may have, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import delta.tables
from delta.tables import DeltaTable, DeltaTableBuilder
from deltalake import write_deltalake

from mirror_assets_tests.worlds.operations.operation import Trait
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, arrow, values

FEED = {"delta.enableChangeDataFeed": "true"}
_FIRST_ROW = f"INSERT INTO {{t}} ({COLUMNS}) {values([-1])}"
_VECTORS = {"delta.enableDeletionVectors": "true"}
_TRACKED = {"delta.enableRowTracking": "true"}


@dataclass(frozen=True)
class Features:
    """One set: the table's properties, layout, and what that means for operations."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    layout: Callable[[DeltaTableBuilder], DeltaTableBuilder] = lambda builder: builder
    traits: frozenset[Trait] = frozenset()

    def create(self, source: Source) -> None:
        """Version 0: the table without rows."""
        builder = DeltaTable.create(source.spark).location(source.uri)
        builder = builder.addColumn("id", "INT").addColumn("part", "INT")
        builder = builder.addColumn("name", "STRING", nullable=False).addColumn("amount", "DECIMAL(10, 2)")
        for name, value in (FEED | dict(self.properties)).items():
            builder = builder.property(name, value)
        self.layout(builder).execute()


@dataclass(frozen=True)
class ByRust(Features):
    """A table that delta-rs makes."""

    def create(self, source: Source) -> None:
        """Version 0, partitioned."""
        write_deltalake(source.uri, arrow([]), partition_by=["part"], configuration=FEED)


@dataclass(frozen=True)
class Cloned(Features):
    """A shallow clone: its first rows are in files of another table."""

    def create(self, source: Source) -> None:
        """Version 0, with row -1."""
        base = Source(source.spark, f"{source.uri}-base")
        Features("base", _TRACKED).create(base)
        base.sql(_FIRST_ROW)
        source.sql(f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{base.uri}`")


@dataclass(frozen=True)
class ByQuery(Features):
    """A table that CREATE TABLE AS SELECT makes."""

    def create(self, source: Source) -> None:
        """Version 0, with row -1."""
        source.sql(
            "CREATE TABLE {t} USING delta TBLPROPERTIES "
            f"(delta.enableChangeDataFeed = true, delta.enableRowTracking = true) AS {values([-1])}"
        )


def _generated(builder: DeltaTableBuilder) -> DeltaTableBuilder:
    doubled = builder.addColumn("doubled", "BIGINT", generatedAlwaysAs="CAST(id AS BIGINT) * 2")
    return doubled.partitionedBy("part")


def _numbered(builder: DeltaTableBuilder) -> DeltaTableBuilder:
    return builder.addColumn("row", "BIGINT", generatedByDefaultAs=delta.tables.IdentityGenerator())


PLAIN = Features("plain, by both writers", traits=frozenset({Trait.RUST}))
PARTITIONED = Features(
    "partitioned, with a generated column",
    _TRACKED,
    layout=_generated,
    traits=frozenset({Trait.PARTITIONED, Trait.GENERATED}),
)
VECTORS = Features("deletion vectors", _VECTORS, traits=frozenset({Trait.VECTORS}))
MODERN = Features(
    "all features at once",
    _VECTORS
    | _TRACKED
    | {
        "delta.columnMapping.mode": "name",
        "delta.enableTypeWidening": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointPolicy": "v2",
        "delta.checkpointInterval": "7",
    },
    layout=lambda builder: builder.clusterBy("id"),
    traits=frozenset({Trait.VECTORS, Trait.MAPPED, Trait.CLUSTERED}),
)
RUST = ByRust("by delta-rs", traits=frozenset({Trait.RUST}))
CLONED = Cloned("shallow clone")
BY_QUERY = ByQuery("by CTAS")
BY_ID = Features("mapped by id", _TRACKED | {"delta.columnMapping.mode": "id"})
IDENTITY = Features("identity column", _TRACKED, layout=_numbered)
