"""What a run did to one table: a value that jobs return and the command line prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import dagster as dg

from mirror_assets.errors import ErrorCode, MirrorError
from mirror_assets.landing.format import MarkerCounts
from mirror_assets.landing.publish import Published
from mirror_assets.pipeline.errors import TableBusy
from mirror_assets.pipeline.process import ProcessedSlice


@dataclass(frozen=True)
class TableReport:
    """What a run has done for a table: slices, landing files and rows, rebuilds, and the error that stopped it, if any.

    `rows` and `bytes` are of slices, not of rebuilds. `busy`: who works on it, so that it was left alone.
    """

    table: str
    slices: int = 0
    rebuilds: int = 0
    files: int = 0
    rows: MarkerCounts = field(default_factory=MarkerCounts)
    bytes: int = 0
    covered: int | None = None
    seconds: float = 0.0
    error: str | None = None
    code: ErrorCode | None = None
    family: str | None = None
    busy: str | None = None

    def with_slice(self, mirrored: ProcessedSlice) -> TableReport:
        """The report with one more slice, or chunk of one: the last makes it a slice."""
        loading = mirrored.published.manifest.loading
        return replace(
            self,
            slices=self.slices + (loading is None),
            files=self.files + len(mirrored.published.entries),
            rows=self.rows + mirrored.record.markers,
            bytes=self.bytes + mirrored.record.bytes,
            covered=None if loading else mirrored.published.manifest.covered,
            seconds=self.seconds + mirrored.seconds,
        )

    @property
    def result(self) -> str:
        """The outcome in a word or two."""
        if self.error:
            return "failed"
        if self.busy:
            return "left to another run"
        if self.rebuilds:
            return "rebuilt"
        return "mirrored" if self.slices else "nothing to do"

    def with_rebuild(self, published: Published) -> TableReport:
        """The report with a rebuild, which has begun a new epoch."""
        manifest = published.manifest
        files = self.files + manifest.next_number - 1
        return replace(self, rebuilds=self.rebuilds + 1, files=files, covered=manifest.covered)

    def left_to(self, busy: TableBusy) -> TableReport:
        """The report of a table that another run works on."""
        return replace(self, busy=busy.what)

    def failed(self, error: MirrorError) -> TableReport:
        """The report of a table that stopped with this error."""
        text = str(error) if self.table in str(error) else f"{self.table}: {error}"
        return replace(self, error=text, code=error.code, family=error.family)


def require_all(reports: Sequence[TableReport | MaintenanceReport]) -> None:
    """Fail the run when a table failed; the others have gone on. Raises dagster.Failure."""
    failed = {report.table: report.error for report in reports if report.error}
    if failed:
        raise dg.Failure(f"{len(failed)} of {len(reports)} tables failed", metadata=failed, allow_retries=False)


@dataclass(frozen=True)
class RebuildReport:
    """The epoch that a rebuild began, and what has landed in it."""

    table: str
    epoch: int
    covered: int
    files: int


@dataclass(frozen=True)
class MaintenanceReport:
    """What maintenance has done to a table: the statements that ran, and the error that stopped it, if any.

    `busy`: who mirrors it at the moment, so that it was left alone.
    """

    table: str
    statements: tuple[str, ...] = ()
    error: str | None = None
    code: ErrorCode | None = None
    family: str | None = None
    busy: str | None = None

    def failed(self, error: MirrorError) -> MaintenanceReport:
        """The report of a table that stopped with this error."""
        return replace(self, error=str(error), code=error.code, family=error.family)
