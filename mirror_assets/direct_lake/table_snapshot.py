"""A table's newest version: its log, its footers, and what they say; each is read once, when first needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mirror_assets.direct_lake.footers.facts import Footers
from mirror_assets.direct_lake.footers.footer_reader import FooterReader
from mirror_assets.direct_lake.footers.parquet_columns import ColumnNames
from mirror_assets.direct_lake.guardrails.capacity_fit import Fitting, Guardrails
from mirror_assets.direct_lake.guardrails.figures import measure, predicted_mirror
from mirror_assets.direct_lake.guardrails.growth import growth, recent_window
from mirror_assets.direct_lake.log_history import History, recent_history
from mirror_assets.direct_lake.table_layout import LayoutReport, dropped_bytes, layout_report
from mirror_assets.direct_lake.type_rules import TypeIssue, TypeLint
from mirror_assets.source.table_log import TableLog

_DAY_MS = 86_400_000
_RECENT_DAYS = 7.0


@dataclass(frozen=True)
class TableSnapshot:
    """A table's newest version at `now` (seconds since 1970); `reader` reads footers of the log's table.

    Growth and framing are those of the last `recent_days`. Every property raises what the log and the reader of
    footers raise.
    """

    name: str
    log: TableLog
    reader: FooterReader
    now: float
    recent_days: float = _RECENT_DAYS

    @cached_property
    def footers(self) -> Footers:
        """The footers of all live files."""
        return self.reader.read(self.log.snapshot().files)

    @cached_property
    def layout(self) -> LayoutReport:
        """How the table lies in its files."""
        return layout_report(self.log.snapshot(), self.footers)

    @cached_property
    def guardrails(self) -> Guardrails:
        """The table, and its mirror as predicted, against every capacity."""
        window = recent_window(self.log, self._since_ms, round(self.now * 1000))
        figures = measure(self.name, self.log.snapshot(), self.footers, growth(window))
        return Guardrails(Fitting.of(figures), Fitting.of(predicted_mirror(figures)))

    @cached_property
    def history(self) -> History:
        """The versions of the last days."""
        return recent_history(self.log, self._since_ms)

    @cached_property
    def dropped_bytes(self) -> dict[str, int]:
        """Bytes of dropped columns, by file; files without any are left out."""
        return dropped_bytes(self.footers, ColumnNames.of(self.log.snapshot().metadata))

    def types(self, one_side: Sequence[str] = ()) -> tuple[TypeIssue, ...]:
        """Return what Direct Lake can't load; `one_side` as in TypeLint. Raises SettingError for an unknown column."""
        metadata = self.log.snapshot().metadata
        return TypeLint(
            uri=self.log.uri,
            names=ColumnNames.of(metadata),
            partitioned_by=metadata.partition_columns,
            parquet={column.parquet.path: column.parquet for column in self.layout.columns},
            one_side=one_side,
            rows=self.layout.rows,
            hidden=self.layout.vectors.rows,
        ).issues()

    @property
    def _since_ms(self) -> int:
        return round(self.now * 1000) - round(self.recent_days * _DAY_MS)
