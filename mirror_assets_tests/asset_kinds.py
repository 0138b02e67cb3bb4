"""What kind of asset a key names."""

from __future__ import annotations

import dagster as dg

from mirror_assets.orchestration.asset_names import Kind


def kind_of(key: dg.AssetKey) -> Kind:
    """The kind of a table's asset."""
    (found,) = [kind for kind in Kind if key.path[-1].endswith(f"_{kind.value}")]
    return found
