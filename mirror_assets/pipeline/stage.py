"""Stages a slice: Spark encodes its parts in a folder that Fabric ignores; the slice record is written last.

The encoder follows from the kind of slice and the table's settings.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeAlias

from mirror_assets.column_types import LongValues, longest
from mirror_assets.encode.changes import ChangesSlice, GroupRead, encode_changes
from mirror_assets.encode.counted import Counted, observed_changes
from mirror_assets.encode.errors import DUPLICATE_KEY
from mirror_assets.encode.inserts import InsertsSlice, encode_inserts, encode_no_rows
from mirror_assets.encode.net_changes import DifferencesSlice, NetSlice, encode_differences, encode_net
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import (
    ChangeCounts,
    ComparedVersions,
    MarkerCounts,
    Receipt,
    ScannedRows,
    SliceKind,
    SliceRecord,
    StagedPart,
)
from mirror_assets.landing.names import AttemptFolder, PartPlace, attempt_id, part_place
from mirror_assets.landing.receipt import receipt_metadata
from mirror_assets.landing.staged_parts import (
    best_attempt,
    clear_refused,
    is_refused,
    is_whole,
    staged_folders,
    staged_records,
    stands_on,
    take_parts,
    upload_parts,
    write_record,
)
from mirror_assets.landing.state import CommitPosition
from mirror_assets.pipeline.check_slice import check_rows
from mirror_assets.pipeline.context import TableContext, not_overtaken, reading
from mirror_assets.pipeline.errors import CHECKS_FAILED, slice_checks_failed
from mirror_assets.pipeline.plan_changes import instead_of_feed
from mirror_assets.pipeline.slice_source import (
    chunk_of,
    planned_binding,
    scan_of,
    slice_key,
    slice_kind,
    source_read,
    versions_compared,
)
from mirror_assets.pipeline.source_check import (
    checked_projection,
    condition_fingerprint,
    recorded_columns,
    table_columns,
)
from mirror_assets.source.commits import ReadRows
from mirror_assets.source.errors import (
    CHANGE_FILE_INCOMPLETE,
    DATA_FILE_MISSING,
    FILE_DAMAGED,
)
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.scan_builder import VersionPart, scan_differences
from mirror_assets.source.schema import LandedColumn, Projection
from mirror_assets.telemetry.record import Stage, set_attempt, stage_span


@dataclass(frozen=True)
class EncodedSlice:
    """What an encoder read, and for a slice of changes the groups of commits that it wrote.

    Without `counted` and groups, all rows of the parts were read, and no others. `by_feed`: it read change files.
    `inserted` are the long values of inserts.
    """

    counted: Counted | None = None
    groups: tuple[GroupRead, ...] = ()
    by_feed: bool = False
    inserted: LongValues = field(default_factory=dict)

    @property
    def long_values(self) -> LongValues:
        """The long values of all parts."""
        counted = self.counted.long_values if self.counted else {}
        return longest(self.inserted, counted, *(group.long_values for group in self.groups))


Encode: TypeAlias = Callable[[str, Receipt], EncodedSlice]
"""Writes a slice's parts into a folder, with the receipt in their footers."""


def encode_slice(
    context: TableContext,
    planned: PlannedSlice,
    kind: SliceKind,
    columns: tuple[LandedColumn, ...],
    folder: str,
    receipt: Receipt,
) -> EncodedSlice:
    """Write the slice's parts into `folder`, with the receipt in their footers. Raises what the encoders raise."""
    table, spark = str(context.name), context.spark
    footer = receipt_metadata(receipt)
    projection = checked_projection(context, planned.schema_string)
    if kind is SliceKind.START:
        encode_no_rows(spark(), columns, folder, footer)
        return EncodedSlice()
    if kind is SliceKind.NET:
        return _encode_net(context, planned, columns, projection, folder, footer)
    chunk = planned.chunk
    part = VersionPart(chunk.first, chunk.end, chunk.files, planned.table_id) if chunk else None
    scan = scan_of(context.log, kind, planned.commits, part)
    if kind is SliceKind.CHANGES:
        keys, assignments, rows = tuple(context.table.keys), planned.assignments, planned.target_rows
        changes = ChangesSlice(table, scan, keys, columns, assignments, rows, projection)
        groups = encode_changes(spark(), changes, folder, footer)
        return EncodedSlice(groups=groups, by_feed=scan.reads_change_files)
    inserts = InsertsSlice(table, scan, planned.last, columns, planned.parts, planned.target_rows, projection)
    read = encode_inserts(spark(), inserts, folder, footer)
    return EncodedSlice(read.counted, inserted=read.long_values)


def _encode_net(
    context: TableContext,
    planned: PlannedSlice,
    columns: tuple[LandedColumn, ...],
    projection: Projection,
    folder: str,
    footer: dict[str, str],
) -> EncodedSlice:
    keys, parts, rows = context.table.mirror_keys, planned.parts, planned.target_rows
    net = NetSlice(str(context.table.name), keys, columns, parts, rows)
    versions = versions_compared(context.table, planned)
    if versions is None:
        scan = scan_of(context.log, SliceKind.NET, planned.commits)
        with spark_errors(f"{net.table}, reading changes of {scan.uri}"):
            changes = observed_changes(read_scan(context.spark(), scan), projection)
        counted = encode_net(changes, net, folder, footer)
        return EncodedSlice(counted, by_feed=scan.reads_change_files)
    commits = replace(planned.commits, first=versions[0] + 1, last=versions[1])
    scans = scan_differences(context.log, commits)
    slice_ = DifferencesSlice(scans, net, by_values=planned.compared is not None, projection=projection)
    return EncodedSlice(encode_differences(context.spark(), slice_, folder, footer))


_MAY_BE_OF_THE_FEED = (
    CHANGE_FILE_INCOMPLETE.error,
    CHECKS_FAILED.error,
    DATA_FILE_MISSING.error,
    DUPLICATE_KEY.error,
    FILE_DAMAGED.error,
)


def stage_slice(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
    """Return the record of the slice, or of one chunk of it, staged at the position: by an earlier run, else now.

    An earlier attempt counts when its binding is that of the plan and the settings now, and its parts are unchanged; it
    may have passed its checks or not. Raises LostRace when another run has landed the position, and what
    `stage_attempt` raises.
    """
    key = slice_key(planned)
    with stage_span(Stage.STAGE, context.work(key)), not_overtaken(context, position.epoch, position.generation, key):
        folders = staged_folders(context.store, context.name, position.generation)
        staged = staged_records(context.store, folders)
        candidates = [record for record in staged if stands_on(record, position) and not is_refused(record)]
        if candidates:
            binding = planned_binding(context.table, planned)
            # Another publisher may be moving the parts of an attempt with missing parts: it is not deleted.
            fitting = [x for x in candidates if x.binding == binding and is_whole(context.store, x)]
            if fitting:
                record = best_attempt(fitting)
                set_attempt(record.attempt)
                return record
        return stage_attempt(context, planned, position, folders)


def stage_attempt(
    context: TableContext,
    planned: PlannedSlice,
    position: CommitPosition,
    folders: Sequence[AttemptFolder] | None = None,
    encode: Encode | None = None,
) -> SliceRecord:
    """Encode the slice, or one chunk of it, under a new attempt, and return its record.

    `folders` are the earlier attempts at its generation, if the caller has listed them. A slice without changes has no
    parts and starts no Spark; the first of an epoch lands a file without rows. Deletes earlier attempts whose checks
    failed, and its own attempt if it fails. Where the change data feed can't be read, or contradicts the actions of its
    commits, the slice is read by files instead. Raises what the encoders and the store raise; DATA_FILE_MISSING only
    when log and store prove it.
    """
    if folders is None:
        folders = staged_folders(context.store, context.name, position.generation)
    newest = clear_refused(context.store, folders)
    attempt = attempt_id(time.time_ns() // 1_000_000, secrets.token_bytes(10), newest)
    try:
        return _attempt(context, planned, position, encode, attempt)
    except _MAY_BE_OF_THE_FEED as error:
        instead = instead_of_feed(context, planned, error)
        if instead is None:
            raise
        # Never into the same folder: files of the first attempt could appear in it late.
        again = attempt_id(time.time_ns() // 1_000_000, secrets.token_bytes(10), attempt)
        return _attempt(context, instead, position, encode, again)


def _attempt(
    context: TableContext, planned: PlannedSlice, position: CommitPosition, encode: Encode | None, attempt: str
) -> SliceRecord:
    """Encode the slice under this attempt; the record is written last. Deletes what it wrote if it fails.

    Translates errors into losses of the source.
    """
    set_attempt(attempt)
    kind = slice_kind(context.table, planned, is_first=position.generation == 1)
    folder = AttemptFolder(context.name, position.generation, attempt)
    columns = table_columns(context.table, planned.schema)
    receipt = Receipt(
        incarnation=position.incarnation,
        source_table_id=planned.table_id,
        slice=slice_key(planned),
        generation=position.generation,
        attempt=attempt,
        first_number=position.first_number,
    )
    encoded, counted, parts = EncodedSlice(), Counted(), tuple[StagedPart, ...]()
    try:
        with reading(context, source_read(context.table, kind, planned)):
            if planned.parts or kind is SliceKind.START:
                path = context.staging.spark_path(folder.parts)
                encoded = (
                    encode(path, receipt) if encode else encode_slice(context, planned, kind, columns, path, receipt)
                )
                parts = take_parts(context.staging, folder)
                if encoded.groups:
                    parts = tuple(_with_commits(part, encoded.groups) for part in parts)
                counted = counted_rows(encoded, planned.last, parts)
                if context.local_staging:
                    parts = upload_parts(context.local_staging, context.store, folder, parts)
            record = SliceRecord(
                table=str(context.name),
                slice=slice_key(planned),
                kind=kind,
                epoch=planned.epoch,
                generation=position.generation,
                attempt=attempt,
                incarnation=position.incarnation,
                first_number=position.first_number,
                source_table_id=planned.table_id,
                source_schema=planned.schema_string,
                keys=context.table.mirror_keys,
                columns=recorded_columns(columns),
                where=condition_fingerprint(context.table),
                first_commit_ms=planned.first_commit_ms,
                last_commit_ms=planned.last_commit_ms,
                read=ChangeCounts(**asdict(counted.landing)),
                scanned=_scanned(counted) if planned.parts and kind is not SliceKind.REPAIR else None,
                changed_keys=counted.changed_keys,
                parts=parts,
                chunk=chunk_of(planned),
                compared=ComparedVersions(**asdict(planned.compared)) if planned.compared else None,
                binding=planned_binding(context.table, planned),
                commit_digest=planned.digests[-1] if planned.digests else None,
                long_values=encoded.long_values,
            )
            # Change files may contradict the actions of their commits.
            if encoded.by_feed and (found := check_rows(context, record)).problems:
                raise slice_checks_failed(record.table, record.slice, (found,))
            write_record(context.store, record)
    except MirrorError:
        for store in {context.store, context.staging}:
            store.delete_tree(folder.path)
        raise
    return record


def counted_rows(encoded: EncodedSlice, last: int, parts: Sequence[StagedPart]) -> Counted:
    """Return the rows that were read: those that Spark counted, and those of parts that have all rows of a commit."""
    if not encoded.groups:
        inserts = ReadRows(insert=sum(part.markers.total for part in parts))
        return encoded.counted or Counted.of_commit(last, inserts, inserts)
    counted = Counted()
    for number, one in enumerate(encoded.groups):
        if one.counted is None:
            markers = sum((part.markers for part in parts if _place_of(part).write == number), MarkerCounts())
            rows = ReadRows(insert=markers.inserts, delete=markers.deletes)
            counted += Counted.of_commit(one.group.first, rows, rows)
        else:
            counted += one.counted
    return counted


def _scanned(counted: Counted) -> ScannedRows:
    rows = counted.scanned
    return ScannedRows(
        new=rows.insert + rows.update_postimage,
        old=rows.delete + rows.update_preimage,
        preimages=rows.update_preimage,
        postimages=rows.update_postimage,
        weighted=counted.weighted,
    )


def _place_of(part: StagedPart) -> PartPlace:
    place = part_place(part.name)
    if place is None:
        raise ValueError(f"{part.name} is not the name of a part")
    return place


def _with_commits(part: StagedPart, groups: Sequence[GroupRead]) -> StagedPart:
    """Return the part with the range of commits of its rows, by the group and Spark partition in its name."""
    place = _place_of(part)
    first, last = groups[place.write].group.commits_of(place.partition)
    return part.model_copy(update={"first_version": first, "last_version": last})
