"""Reports of what a run did to one table; jobs return them, and the command line prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import dagster as dg

from mirror_assets.errors import ErrorRecord, MirrorError
from mirror_assets.landing.format import MarkerCounts
from mirror_assets.landing.publish import Published
from mirror_assets.orchestration.units import count
from mirror_assets.pipeline.land_slice import ProcessedSlice


@dataclass(frozen=True)
class TableReport:
    """A table's result in a mirroring run: published slices, rebuilds, and the error that stopped the table, if any.

    `bytes` counts slices only, not rebuilds. `by_files` counts slices that were read by files because their
    change data feed can't be read. `covered` is the source version covered by the last one.
    `busy` names the other run that works on the table; this run then skipped it.
    """

    table: str
    slices: int = 0
    rebuilds: int = 0
    by_files: int = 0
    files: int = 0
    rows: MarkerCounts = field(default_factory=MarkerCounts)
    bytes: int = 0
    covered: int | None = None
    seconds: float = 0.0
    error: ErrorRecord | None = None
    busy: str | None = None

    def with_slice(self, mirrored: ProcessedSlice) -> TableReport:
        """Return the report with a published slice or chunk added; `slices` grows with a slice's last chunk.

        What stopped the table before counts no more.
        """
        loading = mirrored.published.manifest.loading
        return replace(
            self,
            slices=self.slices + (loading is None),
            by_files=self.by_files + bool(mirrored.record.compared and mirrored.record.compared.because),
            files=self.files + len(mirrored.published.entries),
            rows=self.rows + mirrored.record.markers,
            bytes=self.bytes + mirrored.record.bytes,
            covered=None if loading else mirrored.published.manifest.covered,
            seconds=self.seconds + mirrored.seconds,
            error=None,
            busy=None,
        )

    @property
    def rows_per_second(self) -> float | None:
        """The rate at which its slices were mirrored; None without one."""
        return round(self.rows.total / self.seconds, 1) if self.seconds and self.rows.total else None

    @property
    def result(self) -> str:
        """The outcome as a short text."""
        if self.error:
            return "failed"
        if self.busy:
            return "left to another run"
        if self.rebuilds:
            return "rebuilt"
        if self.by_files:
            return "mirrored, partly by files"
        return "mirrored" if self.slices else "nothing to do"

    def with_rebuild(self, published: Published, seconds: float) -> TableReport:
        """Return the report with a rebuild added, which took this long, and has begun a new epoch."""
        manifest = published.manifest
        return replace(
            self,
            rebuilds=self.rebuilds + 1,
            files=self.files + manifest.next_number - 1,
            rows=self.rows + MarkerCounts(inserts=manifest.landed_rows),
            seconds=self.seconds + seconds,
            covered=manifest.covered,
        )

    def left_to(self, busy: MirrorError) -> TableReport:
        """Return the report of a table that is skipped because another run works on it."""
        return replace(self, busy=busy.what)

    def failed(self, error: MirrorError) -> TableReport:
        """Return the report with the error that stopped the table."""
        return replace(self, error=error.record(self.table))


def summary(reports: Sequence[TableReport]) -> str:
    """Return how many tables had each result: `12 tables: 3 mirrored, 9 nothing to do`."""
    results = Counter(report.result for report in reports)
    return f"{count(len(reports), 'table')}: " + ", ".join(f"{number} {result}" for result, number in results.items())


def require_all(errors: Mapping[str, ErrorRecord | None]) -> None:
    """Raise dagster.Failure, with the errors as metadata, if any table failed; `errors` has all tables."""
    failed = {table: str(error) for table, error in errors.items() if error}
    if failed:
        raise dg.Failure(f"{len(failed)} of {len(errors)} tables failed", metadata=failed, allow_retries=False)


@dataclass(frozen=True)
class RebuildReport:
    """The epoch that a rebuild began, its covered version, and its number of landed files."""

    table: str
    epoch: int
    covered: int
    files: int


@dataclass(frozen=True)
class RepairReport:
    """The version that a repair made the mirror equal to, and its rows by marker; no version: nothing differed."""

    table: str
    version: int | None = None
    upserts: int = 0
    updates: int = 0
    deletes: int = 0
