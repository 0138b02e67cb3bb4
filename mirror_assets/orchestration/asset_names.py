"""Dagster's names for a table by default, and names that Dagster accepts."""

from __future__ import annotations

import hashlib
import re
from enum import Enum
from typing import Any, Final, TypeAlias

import dagster as dg

from mirror_assets.landing.names import TableName

RANGE_START = "dagster/asset_partition_range_start"
# Dagster's UI hides tags with this prefix, which only sensors read.
BATCH_TAG = ".dagster/mirror_batch"
DEFAULT_GROUP = "default"
# The job whose runs mirror all tables, before the mirror's prefix.
MIRROR_ALL = "mirror_all"
# Resources, before the mirror's prefix.
LANDING_ZONE, SPARK, TABLES, OUTPUTS = "landing_zone", "spark", "tables", "outputs"

_UNSAFE = re.compile(r"[^A-Za-z0-9_]")


class AssetKind(str, Enum):
    """The kinds of asset of a table; `history` only where it is enabled."""

    SOURCE = "source"
    CHANGES = "changes"
    LANDING = "landing"
    MIRROR = "mirror"
    HISTORY = "history"


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


def step_name(key: dg.AssetKey) -> str:
    """Return the name of the step that materializes the asset."""
    return "__".join(safe(part) for part in key.path)


def partitions_name(landing: dg.AssetKey) -> str:
    """Return the name of the dynamic partitions of the table whose landing asset has this key.

    An instance has one set of partitions for each name, so that of an asset is unique.
    """
    return f"slices_{step_name(landing)}"


# MetadataValue is generic in the value that it wraps, which doesn't matter here.
MetadataItem: TypeAlias = str | int | float | dg.MetadataValue[Any] | dg.TableSchema | dg.TableColumnLineage | None
# Metadata of failures and failed checks: the link to the documentation.
DOCS_URL: Final = "docs_url"


def link_item(link: str) -> MetadataItem:
    """Return the link as metadata: a web address can be clicked, a path in the repository is text."""
    return dg.MetadataValue.url(link) if link.startswith("http") else link
