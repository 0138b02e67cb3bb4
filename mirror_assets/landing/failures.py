"""The failure record: how often a table's runs have failed since it was last well (docs/landing-folder.md).

It is bound to the position at which they failed, and is void as soon as anything lands. The process that mirrors the
table deletes it when a complete plan finds nothing to do. Every instance, job and command sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.errors import NEXT, ErrorCode
from mirror_assets.landing.format import Manifest, Record, RecordedSlice
from mirror_assets.landing.hints import read_hint, write_hint
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.landing.rebuild import Progress, RebuildRecord, progress_of, read_rebuild
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import Delete, Steps

_LONGEST_MESSAGE = 4000


@dataclass(frozen=True)
class RunFailure:
    """A run's error, with the slice that it was at, and why only a rebuild helps, if either is known."""

    code: ErrorCode
    message: str
    slice: SliceKey | None = None
    rebuild: str | None = None


class FailureRecord(Record):
    """`_failures/<table>.json`: the newest failure, and how many there were since the table was last well.

    `epoch` and `generation` are the position at which it failed. `slice` and `rebuild` are the newest recorded ones: a
    later failure without them keeps them, as long as the table's position is the same.
    """

    format: Literal[1] = 1
    table: str
    epoch: Annotated[int, Field(ge=0)]
    generation: Annotated[int, Field(ge=0)]
    count: Annotated[int, Field(ge=1)]
    failed_ms: int
    code: ErrorCode
    message: str
    slice: RecordedSlice | None = None
    rebuild: str | None = None

    @property
    def progress(self) -> Progress:
        """Where the table was."""
        return Progress(self.epoch, self.generation)

    @property
    def counted(self) -> str:
        """Return `1 run of shop.orders failed`."""
        return f"{self.count} run{'' if self.count == 1 else 's'} of {self.table} failed"

    @property
    def reason(self) -> str:
        """What happened, without the table's name before it."""
        return self.message.removeprefix(f"{self.table}: ").partition(NEXT)[0]

    @property
    def next_step(self) -> str:
        """What the error said to do next; empty if it said nothing."""
        return self.message.partition(NEXT)[2]

    def stands(self, manifest: Manifest | None, rebuild: RebuildRecord | None) -> bool:
        """Whether the failure still counts: nothing has landed since, and the table was not dropped."""
        if manifest is not None and progress_of(manifest, rebuild) > self.progress:
            return False
        return not (rebuild is not None and rebuild.is_drop and rebuild.epoch > self.epoch)


def read_failure(table: TableName) -> Steps[FailureRecord | None]:
    """Read the record, whether it still counts or not; None when there is no readable one."""
    return (yield from read_hint(FailureRecord, table.failure_record)).record


def record_failure(table: TableName, failure: RunFailure, now_ms: int) -> Steps[None]:
    """Count the failure at the table's present position. Of two at the same time, one may be lost.

    Raises ManifestCorrupt, and what a store raises.
    """
    rebuild = yield from read_rebuild(table)
    current = yield from read_manifest(table)
    manifest = current.manifest if current else None
    found = yield from read_hint(FailureRecord, table.failure_record)
    before = found.record if found.record and found.record.stands(manifest, rebuild) else None
    progress = progress_of(manifest, rebuild)
    record = FailureRecord(
        table=str(table),
        epoch=progress.epoch,
        generation=progress.generation,
        count=before.count + 1 if before else 1,
        failed_ms=now_ms,
        code=failure.code,
        message=failure.message[:_LONGEST_MESSAGE],
        slice=failure.slice or (before.slice if before else None),
        rebuild=failure.rebuild or (before.rebuild if before else None),
    )
    yield from write_hint(found, record)  # of two runs at the same time, the faster one has recorded its failure


def clear_failure(table: TableName) -> Steps[None]:
    """Delete the record, if there is one: nothing is left to do of what failed. Raises what a store raises."""
    found = yield from read_hint(FailureRecord, table.failure_record)
    if found.content is not None:
        yield Delete(table.failure_record)
