"""What kind of asset a key names."""

from __future__ import annotations

import dagster as dg

from mirror_assets.orchestration.translator import AssetKind


def kind_of(key: dg.AssetKey) -> AssetKind:
    """The kind of a table's asset."""
    return AssetKind(key.path[-1].rpartition("_")[2])
