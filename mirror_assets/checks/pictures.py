"""Pictures in metadata: PNG as markdown, which Dagster shows in place."""

from __future__ import annotations

import base64

import dagster as dg

from mirror_assets.assets.items import MetadataItem
from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.fit import Limit, fit_all
from mirror_assets.direct_lake.plots.errors import PlotsMissing
from mirror_assets.direct_lake.plots.guardrails import LimitUse, headroom_bars
from mirror_assets.direct_lake.plots.histograms import file_size_histogram, row_group_histogram


def guardrail_pictures(figures: TableFigures) -> dict[str, MetadataItem]:
    """How much of each capacity's limits the table uses."""
    uses = [
        LimitUse(found.sku.name, use.limit.value, use.used, use.allowed, in_bytes=use.limit is Limit.MODEL_BYTES)
        for found in fit_all([figures])
        for use in found.uses
        if use.used is not None
    ]
    try:
        return {"use_of_limits": _shown(headroom_bars(uses, figures.table), "use of the guardrails")}
    except PlotsMissing as error:
        return {"use_of_limits": str(error)}


def layout_pictures(footers: Footers, table: str) -> dict[str, MetadataItem]:
    """How large files and row groups are."""
    try:
        groups = row_group_histogram([group.rows for group in footers.row_groups], table)
        files = file_size_histogram([file.bytes for file in footers.files], table)
    except PlotsMissing as error:
        return {"row_groups_picture": str(error)}
    return {"row_groups_picture": _shown(groups, "row groups"), "files_picture": _shown(files, "files")}


def _shown(png: bytes, what: str) -> MetadataItem:
    return dg.MetadataValue.md(f"![{what}](data:image/png;base64,{base64.b64encode(png).decode()})")
