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
from mirror_assets.orchestration.asset_names import Kind, MetadataItem
from mirror_assets.orchestration.units import duration, size

_PORTAL = "https://app.fabric.microsoft.com/groups"
_KINDS = {
    Kind.SOURCE: {"deltalake"},
    Kind.CHANGES: {"pyspark", "parquet"},
    Kind.LANDING: {"parquet"},
    Kind.MIRROR: {"deltalake"},
    Kind.HISTORY: {"pyspark", "deltalake"},
}


@dataclass(frozen=True)
class AssetPage:
    """What the page of an asset says of its definition."""

    description: str
    kinds: set[str]
    owners: tuple[str, ...]
    tags: Mapping[str, str]
    metadata: Mapping[str, MetadataItem]


def asset_page(config: Config, kind: Kind, table: TableSettings) -> AssetPage:
    """Return the page of the table's asset of this kind; reads nothing but the configuration."""
    kinds = _KINDS[kind] | ({"fabric"} if kind is Kind.MIRROR and config.mirror.fabric else set())
    metadata: dict[str, MetadataItem] = {"dagster/uri": _uri(config, kind, table)}
    if kind in (Kind.SOURCE, Kind.MIRROR):
        metadata["dagster/table_name"] = str(table.name)
    metadata["dagster/code_references"] = _written(config, table)
    return AssetPage(_description(config, kind, table), kinds, table.owners, table.tags, metadata)


def portal_link(config: Config) -> str | None:
    """Return the address of the mirror's workspace in Fabric's portal; None for the local stand-in."""
    fabric = config.mirror.fabric
    return None if fabric is None else f"{_PORTAL}/{fabric.workspace}"


def _uri(config: Config, kind: Kind, table: TableSettings) -> str:
    if kind is Kind.SOURCE:
        return table.source
    if kind is Kind.HISTORY:
        return config.history_uri(table.name)
    if kind is Kind.MIRROR:
        fabric = config.mirror.fabric
        root = fabric.tables(config.landing_zone.onelake).url if fabric else str(config.mirror.path)
        default = fabric.default_schema if fabric else DEFAULT_SCHEMA
        return f"{root}/{table.name.schema or default}/{table.name.table}"
    place = config.landing_zone
    root = str(place.path) if place.onelake is None else place.onelake.address.url
    folder = table.name.scratch if kind is Kind.CHANGES else table.name.folder
    return f"{root}/{folder}"


def _written(config: Config, table: TableSettings) -> dg.CodeReferencesMetadataValue:
    """Return the line of mirror.yaml that names the table, or the rule that has found it."""
    line = config.line_of(f"tables.{table.name}")
    place = dg.LocalFileCodeReference(file_path=str(config.file.absolute()), line_number=line)
    return dg.CodeReferencesMetadataValue(code_references=[place])


def _description(config: Config, kind: Kind, table: TableSettings) -> str:
    """Return three short paragraphs: what this is, the settings that count here, a command to copy."""
    if kind is Kind.MIRROR:
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
    first = f"Changes of {name}, in order, staged where Fabric does not look. Checks stop bad ones."
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
    first = f"Change feed of {name}, kept for ever in an append-only Delta table."
    return first, f"By `{table.history.value}`", f"`mirror-assets history --table {name}`"


_PARTS: Mapping[Kind, Callable[[TableSettings], tuple[str, ...]]] = {
    Kind.SOURCE: _of_source,
    Kind.CHANGES: _of_changes,
    Kind.LANDING: _of_landing,
    Kind.HISTORY: _of_history,
}


def _keys(table: TableSettings) -> str:
    keys = ", ".join(f"`{key}`" for key in table.mirror_keys)
    return f"Key {keys}" if keys else "Without keys"
