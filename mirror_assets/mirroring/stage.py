"""Stages a slice: Spark encodes its parts under an underscore name, they are read back, the slice record comes last."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from mirror_assets.delta.columns import LandedColumn
from mirror_assets.delta.pairing import Run
from mirror_assets.delta.spark_errors import RowIdsUnfit
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import ChangeCounts, Chunk, Receipt, SliceKind, SliceRecord, StagedPart
from mirror_assets.landing.names import AttemptFolder, SliceKey, attempt_id, part_place
from mirror_assets.landing.parts import clear_refused, take_parts, upload_parts, write_record
from mirror_assets.landing.state import Footing
from mirror_assets.mirroring.columns import recorded_columns, table_columns
from mirror_assets.mirroring.encode import encode_slice, slice_kind
from mirror_assets.mirroring.losses import reading, source_read
from mirror_assets.mirroring.plan_digest import plan_digest
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.planner import PlannedSlice


def stage_slice(work: TableWork, planned: PlannedSlice, footing: Footing) -> SliceRecord:
    """The record of the slice, or of one chunk of it, encoded and written beside its parts under a fresh attempt.

    A slice without changes has no parts and starts no Spark, but for the first of a life, which lands a file of no
    rows. Attempts that can't land any more make room: refused ones before, and its own if it fails. Raises what the
    encoders and the store raise, and what their errors mean by the source's log and its store: DataFileMissing,
    FeedMissing and HistoryExpired are proved.
    """
    clear_refused(work.store, work.name, footing.generation)
    kind = slice_kind(work.table, planned, is_first=footing.generation == 1)
    with reading(work, source_read(work.table, kind, slice_key(planned))):
        try:
            return _attempt(work, planned, footing)
        except RowIdsUnfit:  # nothing but the rows themselves can prove it, so they are read twice
            return _attempt(work, planned, footing)


def _attempt(work: TableWork, planned: PlannedSlice, footing: Footing) -> SliceRecord:
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
        plan=plan_digest(work, planned),
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
    parts = of_commits(take_parts(work.staging, folder), encoded.runs)
    return encoded.read, upload_parts(work.exchange, work.store, folder, parts) if work.exchange else parts


def of_commits(parts: Sequence[StagedPart], runs: Sequence[Run]) -> tuple[StagedPart, ...]:
    """The parts, each with the commits that its rows are of: its name tells the run and the Spark partition."""
    return tuple(_of_commits(part, runs) for part in parts) if runs else tuple(parts)


def _of_commits(part: StagedPart, runs: Sequence[Run]) -> StagedPart:
    place = part_place(part.name)
    if place is None:
        raise ValueError(f"{part.name} is no part's name")
    first, last = runs[place.write].commits_of(place.partition)
    return part.model_copy(update={"first_version": first, "last_version": last})
