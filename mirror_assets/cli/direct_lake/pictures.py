"""A report's pictures as files."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.cli.output import note
from mirror_assets.direct_lake.errors import PicturesUnwritable
from mirror_assets.direct_lake.plots.pictures import (
    framing_pictures,
    growth_pictures,
    guardrail_pictures,
    layout_pictures,
)
from mirror_assets.direct_lake.table_snapshot import TableSnapshot


def draw_pictures(look: TableSnapshot, folder: Path) -> None:
    """Write them into the folder; names are the same each time. Raises PlotsMissing and PicturesUnwritable."""
    limits = guardrail_pictures(look.guardrails.table.figures)
    pictures = limits | growth_pictures(look) | layout_pictures(look) | framing_pictures(look)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, png in pictures.items():
            (folder / f"{name}.png").write_bytes(png)
    except OSError as error:
        raise PicturesUnwritable(str(folder), error.strerror or str(error)) from error
    note(f"drawn in {folder}: {', '.join(f'{name}.png' for name in pictures)}")
