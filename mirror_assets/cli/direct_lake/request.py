"""What was typed after a direct-lake command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mirror_assets.direct_lake.maintenance.plan_values import FabricTable


@dataclass(frozen=True)
class Request:
    """What was typed after a command; the options that a command doesn't have keep their defaults."""

    table: str
    config: Path | None = None
    frame: Sequence[str] = ()
    export: Sequence[Path] = ()
    model_table: str | None = None
    retain_hours: float | None = None
    sku: str | None = None
    mode: str | None = None
    columns: tuple[str, ...] = ()
    one_side: tuple[str, ...] = ()
    months: int | None = None
    date_column: str | None = None
    partition_by: str | None = None
    fabric: FabricTable | None = None
    pictures: Path | None = None
    cache: Path | None = None
    no_cache: bool = False

    def __post_init__(self) -> None:
        """Refuse half a question. Raises click.UsageError."""
        if (self.months is None) != (self.date_column is None):
            raise click.UsageError("--months and --date-column go together")
        if self.model_table is not None and not self.export:
            raise click.UsageError("--model-table names a table of --export")

    @property
    def is_path(self) -> bool:
        """Whether the table is a path or URI; names in mirror.yaml have no slash and don't begin with a dot."""
        return "/" in self.table or self.table.startswith(".")
