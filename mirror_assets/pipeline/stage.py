"""Stages a slice: Spark encodes its parts where Fabric does not look; the slice record is written last."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version

from mirror_assets.delta.columns import LandedColumn
from mirror_assets.delta.pairing import EncodeGroup
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.delta.spark_errors import RowIdsUnfit
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import ChangeCounts, Chunk, Receipt, SliceKind, SliceRecord, StagedPart
from mirror_assets.landing.names import AttemptFolder, SliceKey, attempt_id, part_place
from mirror_assets.landing.parts import (
    best_attempt,
    clear_refused,
    is_refused,
    is_whole,
    staged_slices,
    stands_on,
    take_parts,
    upload_parts,
    write_record,
)
from mirror_assets.landing.state import CommitPosition
from mirror_assets.pipeline.context import TableContext, reading, source_read
from mirror_assets.pipeline.encode_slice import encode_slice, slice_kind
from mirror_assets.pipeline.source_check import recorded_columns, table_columns


def resume_or_stage(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
    """The record of the slice: of an attempt that is there already, else of a new one.

    Its checks may have passed, or be still to come; whoever judges it looks at its parts either way. Raises what
    `stage_slice` raises.
    """
    return _staged_before(context, planned, position) or stage_slice(context, planned, position)


def _staged_before(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord | None:
    """An attempt that is just what would be staged now, its parts unchanged; None when there is none.

    One whose parts are not all there may be on its way to land by another publisher: it is left alone.
    """
    staged = staged_slices(context.store, context.name, position.generation)
    candidates = [record for record in staged if stands_on(record, position) and not is_refused(record)]
    if not candidates:
        return None
    digest = plan_digest(context, planned)
    fitting = [record for record in candidates if record.plan == digest and is_whole(context.store, record)]
    return best_attempt(fitting) if fitting else None


def stage_slice(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
    """The record of the slice, or of one chunk of it, encoded and written beside its parts under a fresh attempt.

    A slice without changes has no parts and starts no Spark, but for the first of an epoch, which lands a file of no
    rows. Attempts that can't land any more make room: refused ones before, and its own if it fails. Raises what the
    encoders and the store raise, and what their errors mean by the source's log and its store: DataFileMissing,
    FeedMissing and HistoryExpired are proved.
    """
    clear_refused(context.store, context.name, position.generation)
    kind = slice_kind(context.table, planned, is_first=position.generation == 1)
    with reading(context, source_read(context.table, kind, slice_key(planned))):
        try:
            return _attempt(context, planned, position)
        except RowIdsUnfit:  # nothing but the rows themselves can prove it, so they are read twice
            return _attempt(context, planned, position)


def _attempt(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
    attempt = attempt_id(time.time_ns() // 1_000_000, secrets.token_bytes(10))
    folder = AttemptFolder(context.name, position.generation, attempt)
    try:
        return _stage(context, planned, position, folder)
    except MirrorError:
        for store in {context.store, context.staging}:
            store.delete_tree(folder.path)
        raise


def _stage(
    context: TableContext, planned: PlannedSlice, position: CommitPosition, folder: AttemptFolder
) -> SliceRecord:
    columns = table_columns(context.table, planned.schema)
    kind = slice_kind(context.table, planned, is_first=position.generation == 1)
    receipt, read, parts = _receipt(planned, position, folder.attempt), ChangeCounts(), tuple[StagedPart, ...]()
    if planned.parts or kind is SliceKind.START:
        read, parts = _encode(context, planned, kind, columns, folder, receipt)
    record = SliceRecord(
        table=str(context.name),
        slice=str(slice_key(planned)),
        kind=kind,
        epoch=planned.epoch,
        generation=position.generation,
        attempt=folder.attempt,
        incarnation=position.incarnation,
        first_number=position.first_number,
        source_table_id=planned.table_id,
        source_schema=planned.schema_string,
        keys=context.table.mirror_keys,
        columns=recorded_columns(columns),
        first_commit_ms=planned.first_commit_ms,
        last_commit_ms=planned.last_commit_ms,
        read=read,
        parts=parts,
        chunk=chunk_of(planned),
        plan=plan_digest(context, planned),
    )
    write_record(context.store, record)
    return record


def slice_key(planned: PlannedSlice) -> SliceKey:
    """The planned slice's partition key."""
    return SliceKey(planned.epoch, planned.first, planned.last)


def chunk_of(planned: PlannedSlice) -> Chunk | None:
    """Which chunk of its slice is planned, as slice records have it; None for a whole slice."""
    chunk = planned.chunk
    return Chunk(number=chunk.number, of=chunk.of, first=chunk.first, end=chunk.end) if chunk else None


def _receipt(planned: PlannedSlice, position: CommitPosition, attempt: str) -> Receipt:
    return Receipt(
        incarnation=position.incarnation,
        source_table_id=planned.table_id,
        slice=str(slice_key(planned)),
        generation=position.generation,
        attempt=attempt,
        first_number=position.first_number,
    )


def _encode(
    context: TableContext,
    planned: PlannedSlice,
    kind: SliceKind,
    columns: tuple[LandedColumn, ...],
    folder: AttemptFolder,
    receipt: Receipt,
) -> tuple[ChangeCounts, tuple[StagedPart, ...]]:
    """Rows read by change type, and the parts in order."""
    encoded = encode_slice(context, planned, kind, columns, context.staging.spark_path(folder.parts), receipt)
    parts = of_commits(take_parts(context.staging, folder), encoded.groups)
    return encoded.read, upload_parts(
        context.local_staging, context.store, folder, parts
    ) if context.local_staging else parts


def of_commits(parts: Sequence[StagedPart], groups: Sequence[EncodeGroup]) -> tuple[StagedPart, ...]:
    """The parts, each with the commits that its rows are of: its name tells the run and the Spark partition."""
    return tuple(_of_commits(part, groups) for part in parts) if groups else tuple(parts)


def _of_commits(part: StagedPart, groups: Sequence[EncodeGroup]) -> StagedPart:
    place = part_place(part.name)
    if place is None:
        raise ValueError(f"{part.name} is no part's name")
    first, last = groups[place.write].commits_of(place.partition)
    return part.model_copy(update={"first_version": first, "last_version": last})


def plan_digest(context: TableContext, planned: PlannedSlice) -> str:
    """The digest of the planned slice, of every setting that an encoder heeds, and of the release that encodes.

    The plan is a pure function of the log and the settings, so all of it counts: key, table id, schema, commits, and
    which rows go to which part. Where it is staged (generation, first number, incarnation) is the footing's to say.
    """
    table = context.table
    made_from = {
        "release": version("mirror-assets"),
        "source": table.source,
        "changes": table.changes.value,
        "net": table.is_net,
        "keys": table.mirror_keys,
        "columns": [column.model_dump() for column in recorded_columns(table_columns(table, planned.schema))],
        "compression": table.files.compression.value,
        "target_rows": table.files.target_rows,
        "planned": asdict(planned),
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
