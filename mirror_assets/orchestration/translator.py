"""The kinds of asset of a table, their names, and the translator of a table to the definitions of its assets.

Dagster's daemon reads the definitions every minute, so anything long, such as columns, is metadata of events
(event_metadata.py).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import dagster as dg

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.feature import assets_of_features
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import DEFAULT_SCHEMA
from mirror_assets.orchestration.units import duration, size

DEFAULT_GROUP = "default"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
# MetadataValue is generic in the value that it wraps, which doesn't matter here.
MetadataItem: TypeAlias = str | int | float | dg.MetadataValue[Any] | dg.TableSchema | dg.TableColumnLineage | None


@dataclass(frozen=True)
class AssetKind:
    """The kind of an asset of a table, by its name: one of `ASSET_KINDS`, or that of a feature's asset."""

    value: str
    SOURCE: ClassVar[AssetKind]
    CHANGES: ClassVar[AssetKind]
    LANDING: ClassVar[AssetKind]
    MIRROR: ClassVar[AssetKind]

    @property
    def has_slices(self) -> bool:
        """Whether slices are its partitions: the replicator applies files, and features read by their own slices."""
        return self in (AssetKind.SOURCE, AssetKind.CHANGES, AssetKind.LANDING)

    @property
    def is_delta_table(self) -> bool:
        """Whether downstream assets can load it."""
        return self not in (AssetKind.CHANGES, AssetKind.LANDING)


ASSET_KINDS = (AssetKind("source"), AssetKind("changes"), AssetKind("landing"), AssetKind("mirror"))
AssetKind.SOURCE, AssetKind.CHANGES, AssetKind.LANDING, AssetKind.MIRROR = ASSET_KINDS
_KINDS = {
    AssetKind.SOURCE: {"deltalake"},
    AssetKind.CHANGES: {"pyspark", "parquet"},
    AssetKind.LANDING: {"parquet"},
    AssetKind.MIRROR: {"deltalake"},
}


@dataclass(frozen=True)
class MirrorTranslatorData:
    """What a translator gets: the configuration, a table of it, and the kind of asset to define."""

    config: Config
    table: TableSettings
    kind: AssetKind


class MirrorTranslator:
    """Defines the assets of a mirror; override `get_asset_spec` to map keys, groups, owners or conditions.

    .. code-block:: python

        class Fabric(MirrorTranslator):
            def get_asset_spec(self, data: MirrorTranslatorData) -> dg.AssetSpec:
                spec = super().get_asset_spec(data)
                return spec.replace_attributes(key=spec.key.with_prefix("fabric"))
    """

    def get_asset_spec(self, data: MirrorTranslatorData) -> dg.AssetSpec:
        """Return the asset's definition; reads nothing but the configuration.

        Dependencies on other assets of the table, and partitions, are added to it. Source and mirror are external
        assets: others write them.
        """
        config, kind, table = data.config, data.kind, data.table
        made = assets_of_features(config, table).get(kind.value)
        kinds = set(made.kinds) if made else _KINDS[kind]
        if kind == AssetKind.MIRROR and (mirror := config.mirror_place) is not None:
            kinds = kinds | {mirror.kind}
        uri = made.uri if made else _uri(config, kind, table)
        metadata: dict[str, MetadataItem] = {"dagster/uri": shown_place(config, uri)}
        if kind in (AssetKind.SOURCE, AssetKind.MIRROR):
            metadata["dagster/table_name"] = str(table.name)
        # The line that names the table, or the rule that found it. As a code reference, Dagster would show the file's
        # path on the server, as a link to a local editor.
        line = config.line_of(f"tables.{table.name}")
        metadata["settings"] = f"{config.file.name}, line {line}" if line else config.file.name
        return dg.AssetSpec(
            asset_key(kind, table.name),
            group_name=group_name(table.name),
            kinds=kinds,
            owners=table.owners,
            tags=table.tags,
            description="\n\n".join(made.paragraphs if made else _paragraphs(config, kind, table)),
            metadata=metadata,
        )


def safe(text: str) -> str:
    """Return `text` as Dagster accepts names; a changed text gets a hash, so that two tables never share a name."""
    plain = _UNSAFE.sub("_", text)
    return plain if plain == text else f"{plain}_{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def asset_key(kind: AssetKind, table: TableName) -> dg.AssetKey:
    """Return the key without a translator, `[<schema>/]<table>_<kind>`: the UI shows a key's last part alone."""
    last = f"{safe(table.table)}_{kind.value}"
    return dg.AssetKey([safe(table.schema), last] if table.schema else [last])


def group_name(table: TableName) -> str:
    """Return the group of the table: its schema."""
    return safe(table.schema) if table.schema else DEFAULT_GROUP


def shown_place(config: Config, place: str) -> str:
    """Return an address unchanged, and a path below the folder of mirror.yaml from there on: `./landing/orders`."""
    folder = f"{config.file.parent.absolute()}/"
    return f"./{place.removeprefix(folder)}" if place.startswith(folder) else place


def _uri(config: Config, kind: AssetKind, table: TableSettings) -> str:
    if kind == AssetKind.SOURCE:
        return table.source
    if kind == AssetKind.MIRROR:
        mirror = config.mirror_place
        root = mirror.url if mirror else str(config.mirror.path)
        default = mirror.default_schema if mirror else DEFAULT_SCHEMA
        return f"{root}/{table.name.schema or default}/{table.name.table}"
    folder = table.name.scratch if kind == AssetKind.CHANGES else table.name.folder
    return f"{config.zone.root}/{folder}"


def _paragraphs(config: Config, kind: AssetKind, table: TableSettings) -> tuple[str, str, str]:
    """Return three short paragraphs: the asset, its most important settings, a command to copy."""
    name = table.name
    if kind == AssetKind.SOURCE:
        keys = ", ".join(f"`{key}`" for key in table.mirror_keys)
        settings = f"{f'Key {keys}' if keys else 'Without keys'}, changes by `{table.changes.value}`"
        return f"Source of {name}: a Delta table, which is only read.", settings, f"`mirror-assets plan --table {name}`"
    if kind == AssetKind.CHANGES:
        slices = table.slices
        settings = (
            f"Slices of {slices.max_commits:,} commits, {slices.max_rows:,} rows, {size(slices.max_bytes)} at most; "
            f"files of {table.files.target_rows:,} rows"
        )
        first = (
            f"Changes of {name}, in order, staged in a folder that Fabric ignores. Slices that fail a check don't land."
        )
        return first, settings, f"`mirror-assets run --table {name}`"
    if kind == AssetKind.LANDING:
        lag = f"`lag` warns at {duration(table.lag.warn_seconds)}; " if table.lag.warn_seconds else ""
        first = f"Landing files of {name}, numbered without a gap: each change once, in order."
        return first, f"{lag}at a break: `{table.on_break.value}`", f"`mirror-assets status --table {name}`"
    mirror = config.mirror_place
    where = mirror.page if mirror else "Written by the local stand-in for Fabric, which the sensor `replicator` runs"
    return f"Mirror of {name}: what the replicator has applied.", where, f"`mirror-assets reconcile --table {name}`"
