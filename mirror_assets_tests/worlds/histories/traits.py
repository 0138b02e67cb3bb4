"""What a table is like at a moment, as far as statements on it ask."""

from __future__ import annotations

from mirror_assets_tests.worlds.operations.operation import Trait
from mirror_assets_tests.worlds.operations.source import Source

# What delta-rs can write.
_KNOWN = frozenset({"appendOnly", "changeDataFeed", "checkConstraints", "invariants"})
_BY_PROPERTY = {
    "delta.enableChangeDataFeed": Trait.FEED,
    "delta.enableRowTracking": Trait.TRACKED,
    "delta.enableDeletionVectors": Trait.VECTORS,
}


def traits_of(source: Source) -> frozenset[Trait]:
    """The traits, from its log."""
    table = source.table
    metadata, protocol, schema = table.metadata(), table.protocol(), table.schema().to_json()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    found = {trait for name, trait in _BY_PROPERTY.items() if metadata.configuration.get(name) == "true"}
    by_schema = {
        Trait.PARTITIONED: bool(metadata.partition_columns),
        Trait.CLUSTERED: "clustering" in features,
        Trait.MAPPED: metadata.configuration.get("delta.columnMapping.mode", "none") != "none",
        Trait.GENERATED: "delta.generationExpression" in schema or "delta.identity" in schema,
    }
    found |= {trait for trait, there in by_schema.items() if there}
    by_rust = features <= _KNOWN and not found & {Trait.GENERATED, Trait.MAPPED}
    return frozenset(found | ({Trait.RUST} if by_rust else set()))
