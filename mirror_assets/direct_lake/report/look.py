"""A look at a table: its log, its footers, and what they say; each is read once, when first needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.footers.reader import FooterReader
from mirror_assets.direct_lake.framing.history import History, recent_history
from mirror_assets.direct_lake.guardrails.figures import measure
from mirror_assets.direct_lake.guardrails.growth import growth
from mirror_assets.direct_lake.guardrails.mirror import predicted_mirror
from mirror_assets.direct_lake.guardrails.window import recent_window
from mirror_assets.direct_lake.layout.dropped import dropped_bytes
from mirror_assets.direct_lake.layout.report import LayoutReport, layout_report
from mirror_assets.direct_lake.report.fitting import Fitting, Guardrails
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.types import TypeFinding, TypeLint

_DAY_MS = 86_400_000
# How far back growth and framing are looked at, unless another time is asked for.
_RECENT_DAYS = 7.0


@dataclass(frozen=True)
class TableLook:
    """A table's newest version at `now` (seconds since 1970); `reader` reads footers of the log's table.

    Growth and framing are those of the last `recent_days`. What it tells raises what the log and the reader of footers
    raise.
    """

    name: str
    log: TableLog
    reader: FooterReader
    now: float
    recent_days: float = _RECENT_DAYS

    @cached_property
    def footers(self) -> Footers:
        """Those of all live files."""
        return self.reader.read(self.log.snapshot().files)

    @cached_property
    def layout(self) -> LayoutReport:
        """How it lies in its files."""
        return layout_report(self.log.snapshot(), self.footers)

    @cached_property
    def guardrails(self) -> Guardrails:
        """It, and its mirror as it will be, against every capacity."""
        window = recent_window(self.log, self._since_ms, round(self.now * 1000))
        figures = measure(self.name, self.log.snapshot(), self.footers, growth(window))
        mirror = predicted_mirror(figures)
        return Guardrails(Fitting.of(figures), None if mirror is None else Fitting.of(mirror))

    @cached_property
    def history(self) -> History:
        """What the last days did to it."""
        return recent_history(self.log, self._since_ms)

    @cached_property
    def dropped_bytes(self) -> dict[str, int]:
        """Bytes of columns that it has no more, by file; files without any are left out."""
        return dropped_bytes(self.footers, ColumnNames.of(self.log.snapshot().metadata))

    def types(self, one_side: Sequence[str] = ()) -> tuple[TypeFinding, ...]:
        """What Direct Lake can't load; `one_side` as in TypeLint. Raises ColumnUnknown."""
        metadata = self.log.snapshot().metadata
        lint = TypeLint(
            uri=self.log.uri,
            names=ColumnNames.of(metadata),
            partitioned_by=metadata.partition_columns,
            parquet={column.parquet.path: column.parquet for column in self.layout.columns},
            one_side=one_side,
            rows=self.layout.rows,
            hidden=self.layout.vectors.rows,
        )
        return lint.results()

    @property
    def _since_ms(self) -> int:
        return round(self.now * 1000) - round(self.recent_days * _DAY_MS)
