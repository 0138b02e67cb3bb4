"""The treatment of each feature of Delta's protocol, and the parts of a table's metadata that can't be read.

The names are those of the protocol ("Valid Feature Names in Table Features"), of its proposals, and of Delta's writers.
A feature that only writers must support can't change how existing data is read ("Table Features"), so an unknown one is
ignored; an unknown feature of readers is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mirror_assets.column_types import Family, column_type, decimal_digits
from mirror_assets.errors import MirrorError
from mirror_assets.source.actions import Metadata
from mirror_assets.source.errors import SOURCE_UNSUPPORTED


class Treatment(str, Enum):
    """What the log reader does with a feature."""

    READ = "read"
    IRRELEVANT = "irrelevant"
    REFUSED = "refused"


_READ, _IRRELEVANT, _REFUSED = Treatment


@dataclass(frozen=True)
class TableFeature:
    """A table feature; its `-preview` is treated alike. `by_readers`: readers must support it, not only writers.

    `moves_commits`: the table property with which later commits are found elsewhere. A feature of writers is refused
    only while the table has it.
    """

    name: str
    treatment: Treatment
    reason: str
    by_readers: bool = False
    moves_commits: str = ""


FEATURES = (
    TableFeature("catalogManaged", _READ, "by its catalog, and refused by its address alone", by_readers=True),
    TableFeature("catalogOwned", _READ, "the older name of `catalogManaged`", by_readers=True),
    TableFeature(
        "columnMapping", _READ, "by physical names, or by field ids; other modes are refused", by_readers=True
    ),
    TableFeature("deletionVectors", _READ, "the rows that a vector hides are not read", by_readers=True),
    TableFeature("timestampNtz", _READ, "as a column of this type", by_readers=True),
    TableFeature(
        "typeWidening", _READ, "old files in the new type; changes beyond the protocol's are refused", by_readers=True
    ),
    TableFeature("v2Checkpoint", _READ, "with its sidecar files", by_readers=True),
    TableFeature("variantShredding", _READ, "values are put together from their parts", by_readers=True),
    TableFeature("variantType", _READ, "as JSON text", by_readers=True),
    TableFeature("vacuumProtocolCheck", _IRRELEVANT, "a rule for VACUUM", by_readers=True),
    TableFeature("adaptiveMetadata", _REFUSED, "manifests name the files, not checkpoints", by_readers=True),
    TableFeature("geospatial", _REFUSED, "a landing file can't hold geometries", by_readers=True),
    TableFeature("redirectReaderWriter", _REFUSED, "the rows are in another table", by_readers=True),
    TableFeature("timestampNanos", _REFUSED, "Spark and Fabric have no such type", by_readers=True),
    TableFeature("changeDataFeed", _READ, "with `changes: feed`"),
    TableFeature("clustering", _IRRELEVANT, "the layout of files"),
    TableFeature("collations", _READ, "keys are compared by their bytes, and `where` by the collation"),
    TableFeature("columnMappingUsageTracking", _IRRELEVANT, "a property for writers"),
    TableFeature("domainMetadata", _IRRELEVANT, "has no rows"),
    TableFeature("inCommitTimestamp", _READ, "as the times of commits"),
    TableFeature("materializePartitionColumns", _READ, "the log's partition values count, not those in files"),
    TableFeature("rowTracking", _READ, "with `changes: row_tracking`"),
    TableFeature("icebergCompatV1", _IRRELEVANT, "a rule for writers: columns are found as in any table"),
    TableFeature("icebergCompatV2", _IRRELEVANT, "as `icebergCompatV1`"),
    TableFeature("icebergCompatV3", _IRRELEVANT, "as `icebergCompatV1`"),
    TableFeature("icebergWriterCompatV1", _IRRELEVANT, "as `icebergCompatV1`"),
    TableFeature("icebergWriterCompatV3", _IRRELEVANT, "as `icebergCompatV1`"),
    TableFeature("allowColumnDefaults", _IRRELEVANT, "writers store the default in new rows"),
    TableFeature("appendOnly", _IRRELEVANT, "a rule for writers"),
    TableFeature("checkConstraints", _IRRELEVANT, "a rule for writers"),
    TableFeature("checkpointProtection", _IRRELEVANT, "a rule for the cleanup of logs"),
    TableFeature("generatedColumns", _IRRELEVANT, "writers store the values"),
    TableFeature("identityColumns", _IRRELEVANT, "writers store the values"),
    TableFeature("invariants", _IRRELEVANT, "a rule for writers"),
    TableFeature(
        "coordinatedCommits",
        _REFUSED,
        "a coordinator has the newest commits",
        moves_commits="delta.coordinatedCommits.commitCoordinator-preview",
    ),
    TableFeature(
        "redirectWriterOnly",
        _REFUSED,
        "new commits go to another table",
        moves_commits="delta.redirectWriterOnly-preview",
    ),
)
_PREVIEW = "-preview"
_BY_NAME = {feature.name: feature for feature in FEATURES}
_MAPPINGS = ("none", "name", "id")
# Delta's protocol, "Type Widening": from these types to each of the others, and to decimals of more digits.
_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
_DIGITS = {"byte": (10, 0), "short": (10, 0), "integer": (10, 0), "long": (20, 0)}


def is_readable(feature: str) -> bool:
    """Whether tables with this feature of readers can be read."""
    row = _BY_NAME.get(feature.removesuffix(_PREVIEW))
    return row is not None and row.treatment is not _REFUSED


def feature_unsupported(uri: str, feature: str) -> MirrorError:
    """Return SOURCE_UNSUPPORTED for a feature, with the reason if the feature is known."""
    row = _BY_NAME.get(feature.removesuffix(_PREVIEW))
    return SOURCE_UNSUPPORTED(uri=uri, why=f"the table feature `{feature}`" + (f" ({row.reason})" if row else ""))


def require_whole_log(uri: str, metadata: Metadata) -> None:
    """Raise SOURCE_UNSUPPORTED for a table whose next commits are not in its log."""
    for feature in FEATURES:
        if metadata.configuration.get(feature.moves_commits):
            raise feature_unsupported(uri, f"{feature.name}{_PREVIEW}")


def require_readable_columns(uri: str, metadata: Metadata) -> None:
    """Raise SOURCE_UNSUPPORTED for a mode of column mapping, or a change of a type, that the protocol doesn't have.

    Readers must refuse such a change ("Reader Requirements for Type Widening"): Spark may read other values.
    """
    mode = metadata.configuration.get("delta.columnMapping.mode", "none")
    if mode.lower() not in _MAPPINGS:
        raise SOURCE_UNSUPPORTED(uri=uri, why=f"column mapping in the mode `{mode}`")
    if "delta.typeChanges" in metadata.schema_string:
        for column, before, after in _type_changes(json.loads(metadata.schema_string)):
            if not _is_widening(before, after):
                raise SOURCE_UNSUPPORTED(uri=uri, why=f"a change of its column `{column}` from {before} to {after}")


def _type_changes(raw: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ANN401 any part of a schema's JSON
    """Yield column, old and new type of each change that a schema, or a part of it, records."""
    if isinstance(raw, list):
        for part in raw:
            yield from _type_changes(part)
    elif isinstance(raw, dict):
        for change in (raw.get("metadata") or {}).get("delta.typeChanges", ()):
            before, after = (str(change.get(name)).replace(" ", "") for name in ("fromType", "toType"))
            yield raw["name"], before, after
        yield from _type_changes(
            [raw[name] for name in ("fields", "type", "elementType", "keyType", "valueType") if name in raw]
        )


def _is_widening(before: str, after: str) -> bool:
    both = {column_type(type_).family for type_ in (before, after)}
    if before == after or both == {Family.TEXT}:
        return True
    old, new = decimal_digits(before) or _DIGITS.get(before), decimal_digits(after)
    if old and new:
        return new[0] - old[0] >= new[1] - old[1] >= 0
    return after in _WIDER.get(before, ())
