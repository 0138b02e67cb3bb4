"""What an asset's page says before anything has run: description, owners, tags, links, the line of mirror.yaml.

Dagster's daemon reads the definitions every minute: what is long, such as columns, is metadata of events
(slice_metadata.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import dagster as dg

from mirror_assets.config import Config, TableSettings
from mirror_assets.fabric.database import DEFAULT_SCHEMA
from mirror_assets.orchestration.asset_names import AssetKind, MetadataItem
from mirror_assets.orchestration.units import duration, size

_PORTAL = "https://app.fabric.microsoft.com/groups"
_KINDS = {
    AssetKind.SOURCE: {"deltalake"},
    AssetKind.CHANGES: {"pyspark", "parquet"},
    AssetKind.LANDING: {"parquet"},
    AssetKind.MIRROR: {"deltalake"},
    AssetKind.HISTORY: {"pyspark", "deltalake"},
}


@dataclass(frozen=True)
class AssetPage:
    """What the page of an asset says of its definition."""

    description: str
    kinds: set[str]
    owners: tuple[str, ...]
    tags: Mapping[str, str]
    metadata: Mapping[str, MetadataItem]


def asset_page(config: Config, kind: AssetKind, table: TableSettings) -> AssetPage:
    """Return the page of the table's asset of this kind; reads nothing but the configuration."""
    kinds = _KINDS[kind] | ({"fabric"} if kind is AssetKind.MIRROR and config.mirror.fabric else set())
    metadata: dict[str, MetadataItem] = {"dagster/uri": _uri(config, kind, table)}
    if kind in (AssetKind.SOURCE, AssetKind.MIRROR):
        metadata["dagster/table_name"] = str(table.name)
    metadata["dagster/code_references"] = _written(config, table)
    return AssetPage(_description(config, kind, table), kinds, table.owners, table.tags, metadata)


def portal_link(config: Config) -> str | None:
    """Return the address of the mirror's workspace in Fabric's portal; None for the local stand-in."""
    fabric = config.mirror.fabric
    return None if fabric is None else f"{_PORTAL}/{fabric.workspace}"


def _uri(config: Config, kind: AssetKind, table: TableSettings) -> str:
    if kind is AssetKind.SOURCE:
        return table.source
    if kind is AssetKind.HISTORY:
        return config.history_uri(table.name)
    if kind is AssetKind.MIRROR:
        fabric = config.mirror.fabric
        root = fabric.tables(config.landing_zone.onelake).url if fabric else str(config.mirror.path)
        default = fabric.default_schema if fabric else DEFAULT_SCHEMA
        return f"{root}/{table.name.schema or default}/{table.name.table}"
    place = config.landing_zone
    root = str(place.path) if place.onelake is None else place.onelake.address.url
    folder = table.name.scratch if kind is AssetKind.CHANGES else table.name.folder
    return f"{root}/{folder}"


def _written(config: Config, table: TableSettings) -> dg.CodeReferencesMetadataValue:
    """Return the line of mirror.yaml that names the table, or the rule that has found it."""
    line = config.line_of(f"tables.{table.name}")
    place = dg.LocalFileCodeReference(file_path=str(config.file.absolute()), line_number=line)
    return dg.CodeReferencesMetadataValue(code_references=[place])


def _description(config: Config, kind: AssetKind, table: TableSettings) -> str:
    """Return three short paragraphs: what this is, the settings that count here, a command to copy."""
    if kind is AssetKind.MIRROR:
        return "\n\n".join(_of_mirror(config, table))
    return "\n\n".join(_PARTS[kind](table))


def _of_source(table: TableSettings) -> tuple[str, ...]:
    name = table.name
    settings = f"{_keys(table)}, changes by `{table.changes.value}`"
    return f"Source of {name}: a Delta table, which is only read.", settings, f"`mirror-assets plan --table {name}`"


def _of_changes(table: TableSettings) -> tuple[str, ...]:
    name, slices, files = table.name, table.slices, table.files
    settings = (
        f"Slices of {slices.max_commits:,} commits, {slices.max_rows:,} rows, {size(slices.max_bytes)} at most; "
        f"files of {files.target_rows:,} rows, {files.compression.value}"
    )
    first = f"Changes of {name}, in order, staged in a folder that Fabric ignores. Slices that fail a check don't land."
    return first, settings, f"`mirror-assets run --table {name}`"


def _of_landing(table: TableSettings) -> tuple[str, ...]:
    name, warns = table.name, table.lag.warn_seconds
    lag = f"`lag` warns at {duration(warns)}; " if warns else ""
    first = f"Landing files of {name}, numbered without a gap: each change once, in order."
    return first, f"{lag}at a break: `{table.on_break.value}`", f"`mirror-assets status --table {name}`"


def _of_mirror(config: Config, table: TableSettings) -> tuple[str, ...]:
    name, portal = table.name, portal_link(config)
    where = f"[Fabric's portal]({portal})" if portal else "Written by the local stand-in for Fabric"
    where += "; the sensor `replicator` observes it" if portal else ", which the sensor `replicator` runs"
    return f"Mirror of {name}: what the replicator has applied.", where, f"`mirror-assets reconcile --table {name}`"


def _of_history(table: TableSettings) -> tuple[str, ...]:
    name = table.name
    first = f"Change feed of {name}, retained in an append-only Delta table."
    return first, f"By `{table.history.value}`", f"`mirror-assets history --table {name}`"


_PARTS: Mapping[AssetKind, Callable[[TableSettings], tuple[str, ...]]] = {
    AssetKind.SOURCE: _of_source,
    AssetKind.CHANGES: _of_changes,
    AssetKind.LANDING: _of_landing,
    AssetKind.HISTORY: _of_history,
}


def _keys(table: TableSettings) -> str:
    keys = ", ".join(f"`{key}`" for key in table.mirror_keys)
    return f"Key {keys}" if keys else "Without keys"
