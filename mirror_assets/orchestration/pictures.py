"""Pictures in metadata: PNG as markdown, which Dagster shows in place."""

from __future__ import annotations

import base64
from collections.abc import Callable

import dagster as dg

from mirror_assets.direct_lake.plots.errors import PlotsMissing
from mirror_assets.direct_lake.report.pictures import Pictures
from mirror_assets.orchestration.asset_names import MetadataItem


def shown(draw: Callable[[], Pictures]) -> dict[str, MetadataItem]:
    """The pictures as metadata; where they can't be drawn, what to install."""
    try:
        pictures = draw()
    except PlotsMissing as error:
        return {"pictures": str(error)}
    return {f"{name}_picture": _inline(png, name.replace("_", " ")) for name, png in pictures.items()}


def _inline(png: bytes, what: str) -> MetadataItem:
    return dg.MetadataValue.md(f"![{what}](data:image/png;base64,{base64.b64encode(png).decode()})")
