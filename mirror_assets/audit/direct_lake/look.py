"""What the checks see of a table: its log, its footers, and what they say; each is read once, when first needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mirror_assets.direct_lake.footers.cache import FooterCache
from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.footers.reader import FooterReader
from mirror_assets.direct_lake.guardrails.figures import TableFigures, measure
from mirror_assets.direct_lake.guardrails.growth import growth
from mirror_assets.direct_lake.guardrails.mirror import predicted_mirror
from mirror_assets.direct_lake.guardrails.window import recent_window
from mirror_assets.direct_lake.layout.report import LayoutReport, layout_report
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.types import TypeFinding, TypeLint

# How far back growth is looked at.
_WINDOW_MS = 7 * 86_400_000


@dataclass(frozen=True)
class TableLook:
    """A table's newest version at `now` (seconds since 1970); facts of footers are kept below `cache`.

    Its properties raise what the log and the reader of footers raise.
    """

    name: str
    log: TableLog
    cache: Path
    now: float

    @cached_property
    def footers(self) -> Footers:
        """Those of all live files."""
        reader = FooterReader(self.log.uri, self.log.files, FooterCache.of(self.cache, self.log.uri))
        return reader.read(self.log.snapshot().files)

    @cached_property
    def layout(self) -> LayoutReport:
        """How it lies in its files."""
        return layout_report(self.log.snapshot(), self.footers)

    @cached_property
    def figures(self) -> TableFigures:
        """What limits are about, with the growth of the last week."""
        now_ms = round(self.now * 1000)
        grown = growth(recent_window(self.log, now_ms - _WINDOW_MS, now_ms))
        return measure(self.name, self.log.snapshot(), self.footers, grown)

    @property
    def predicted(self) -> TableFigures | None:
        """The figures of its mirror once Fabric has compacted it; None when its rows are not known."""
        return predicted_mirror(self.figures)

    def types(self) -> tuple[TypeFinding, ...]:
        """What Direct Lake can't load."""
        metadata = self.log.snapshot().metadata
        lint = TypeLint(
            uri=self.log.uri,
            names=ColumnNames.of(metadata),
            partitioned_by=metadata.partition_columns,
            parquet={column.parquet.path: column.parquet for column in self.layout.columns},
            rows=self.figures.rows,
        )
        return lint.findings()
