"""Stages a slice: Spark encodes its parts under an underscore name, they are read back, the slice record comes last."""

from __future__ import annotations

import secrets
import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from mirror_assets.delta.columns import LandedColumn
from mirror_assets.delta.feed import RunRows
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import ChangeCounts, Chunk, Receipt, SliceKind, SliceRecord, StagedPart
from mirror_assets.landing.names import AttemptFolder, SliceKey, attempt_id
from mirror_assets.landing.parts import clear_refused, take_parts, upload_parts, write_record
from mirror_assets.landing.state import Footing
from mirror_assets.mirroring.columns import recorded_columns, table_columns
from mirror_assets.mirroring.encode import encode_slice, slice_kind
from mirror_assets.mirroring.work import TableWork


def stage_slice(work: TableWork, planned: PlannedSlice, footing: Footing) -> SliceRecord:
    """The record of the slice, or of one chunk of it, encoded and written beside its parts under a fresh attempt.

    A slice without changes has no parts and starts no Spark, but for the first of a life, which lands a file of no
    rows. Attempts that can't land any more make room: refused ones
    before, and its own if it fails. Raises what the encoders and the store raise.
    """
    clear_refused(work.store, work.name, footing.generation)
    attempt = attempt_id(time.time_ns() // 1_000_000, secrets.token_bytes(10))
    folder = AttemptFolder(work.name, footing.generation, attempt)
    try:
        return _stage(work, planned, footing, folder)
    except MirrorError:
        for store in {work.store, work.staging}:
            store.delete_tree(folder.path)
        raise


def _stage(work: TableWork, planned: PlannedSlice, footing: Footing, folder: AttemptFolder) -> SliceRecord:
    columns = table_columns(work.table, planned.schema)
    kind = slice_kind(work.table, planned, is_first=footing.generation == 1)
    receipt, read, parts = _receipt(planned, footing, folder.attempt), ChangeCounts(), tuple[StagedPart, ...]()
    if planned.parts or kind is SliceKind.START:
        read, parts = _encode(work, planned, kind, columns, folder, receipt)
    record = SliceRecord(
        table=str(work.name),
        slice=str(slice_key(planned)),
        kind=kind,
        life=planned.life,
        generation=footing.generation,
        attempt=folder.attempt,
        incarnation=footing.incarnation,
        first_number=footing.first_number,
        source_table_id=planned.table_id,
        source_schema=planned.schema_string,
        keys=work.table.mirror_keys,
        columns=recorded_columns(columns),
        first_commit_ms=planned.first_commit_ms,
        last_commit_ms=planned.last_commit_ms,
        read=read,
        parts=parts,
        chunk=chunk_of(planned),
    )
    write_record(work.store, record)
    return record


def slice_key(planned: PlannedSlice) -> SliceKey:
    """The planned slice's partition key."""
    return SliceKey(planned.life, planned.first, planned.last)


def chunk_of(planned: PlannedSlice) -> Chunk | None:
    """Which chunk of its slice is planned, as slice records have it; None for a whole slice."""
    chunk = planned.chunk
    return Chunk(number=chunk.number, of=chunk.of, first=chunk.first, end=chunk.end) if chunk else None


def _receipt(planned: PlannedSlice, footing: Footing, attempt: str) -> Receipt:
    return Receipt(
        incarnation=footing.incarnation,
        source_table_id=planned.table_id,
        slice=str(slice_key(planned)),
        generation=footing.generation,
        attempt=attempt,
        first_number=footing.first_number,
    )


def _encode(
    work: TableWork,
    planned: PlannedSlice,
    kind: SliceKind,
    columns: tuple[LandedColumn, ...],
    folder: AttemptFolder,
    receipt: Receipt,
) -> tuple[ChangeCounts, tuple[StagedPart, ...]]:
    """Rows read by change type, and the parts in order."""
    encoded = encode_slice(work, planned, kind, columns, work.staging.spark_path(folder.parts), receipt)
    parts = of_versions(take_parts(work.staging, folder), encoded.runs)
    return encoded.read, upload_parts(work.exchange, work.store, folder, parts) if work.exchange else parts


def of_versions(parts: Sequence[StagedPart], runs: Sequence[RunRows]) -> tuple[StagedPart, ...]:
    """The parts, each with the commit that all its rows are of, if there is one: a part is of one run."""
    ends = list(accumulate(run.rows for run in runs))
    starts = accumulate((part.markers.total for part in parts), initial=0)
    if not runs:
        return tuple(parts)
    return tuple(
        part.model_copy(update={"version": runs[bisect_right(ends, start)].version})
        for part, start in zip(parts, starts, strict=False)
    )
