"""From a planned slice to the encoder that its table's settings ask for."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mirror_assets.config import Changes, TableSettings
from mirror_assets.delta.append import AppendSlice, encode_appends
from mirror_assets.delta.columns import LandedColumn
from mirror_assets.delta.empty import encode_no_rows
from mirror_assets.delta.feed import FeedSlice, encode_changes
from mirror_assets.delta.net import NetSlice, encode_net
from mirror_assets.delta.pairing import Run
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.row_tracking import TrackedNames, TrackedRange, read_tracked
from mirror_assets.delta.snapshot import SnapshotSlice, encode_snapshot
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.landing.format import ChangeCounts, Receipt, SliceKind
from mirror_assets.landing.receipt import receipt_metadata
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.row_counts import ReadRows


def slice_kind(table: TableSettings, planned: PlannedSlice, *, is_first: bool) -> SliceKind:
    """What the slice will carry; `is_first`: nothing has landed in its life, so that it can't be without a file."""
    if planned.is_snapshot:
        return SliceKind.SNAPSHOT
    if planned.is_start or (is_first and not planned.parts):
        return SliceKind.START
    if table.changes is Changes.APPEND_ONLY:
        return SliceKind.APPENDS
    return SliceKind.NET if table.is_net else SliceKind.CHANGES


@dataclass(frozen=True)
class Encoded:
    """What was read for a slice, and which commits each of its writes is of, where that is known."""

    read: ChangeCounts
    runs: tuple[Run, ...] = ()


def encode_slice(
    work: TableWork,
    planned: PlannedSlice,
    kind: SliceKind,
    columns: tuple[LandedColumn, ...],
    folder: str,
    receipt: Receipt,
) -> Encoded:
    """Write the slice's parts into `folder`. Raises what encoders raise."""
    compression, footer = work.table.files.compression.value, receipt_metadata(receipt)
    if kind is SliceKind.START:
        encode_no_rows(work.spark(), columns, folder, compression, footer)
        return Encoded(ChangeCounts())
    if kind is SliceKind.SNAPSHOT:
        target_rows = work.table.files.target_rows
        snapshot = SnapshotSlice(work.table.source, planned.last, columns, planned.parts, target_rows, planned.chunk)
        return Encoded(ChangeCounts(insert=encode_snapshot(work.spark(), snapshot, folder, compression, footer)))
    if kind is SliceKind.APPENDS:
        added = append_slice(work.table, planned, columns)
        return Encoded(ChangeCounts(insert=encode_appends(work.spark(), added, folder, compression, footer)))
    if kind is SliceKind.NET:
        return Encoded(_counts(_encode_net(work, planned, columns, folder, compression, footer)))
    feed = feed_slice(work.table, planned, columns)
    encoded = encode_changes(work.spark(), feed, folder, compression, footer)
    return Encoded(_counts(encoded.read), encoded.runs)


def _counts(read: ReadRows) -> ChangeCounts:
    return ChangeCounts(**asdict(read))


def feed_slice(table: TableSettings, planned: PlannedSlice, columns: tuple[LandedColumn, ...]) -> FeedSlice:
    """What the encoder needs to know of a planned slice."""
    return FeedSlice(
        table=str(table.name),
        uri=table.source,
        first=planned.first,
        last=planned.last,
        keys=tuple(table.keys),
        columns=columns,
        spreads=planned.spreads,
        target_rows=table.files.target_rows,
        vector_versions=planned.vector_versions,
    )


def append_slice(table: TableSettings, planned: PlannedSlice, columns: tuple[LandedColumn, ...]) -> AppendSlice:
    """The same for appended rows."""
    return AppendSlice(
        table=str(table.name),
        uri=table.source,
        first=planned.first,
        last=planned.last,
        columns=columns,
        parts=planned.parts,
        target_rows=table.files.target_rows,
    )


def _encode_net(
    work: TableWork,
    planned: PlannedSlice,
    columns: tuple[LandedColumn, ...],
    folder: str,
    compression: str,
    footer: dict[str, str],
) -> ReadRows:
    table, keys, spark = str(work.table.name), work.table.mirror_keys, work.spark()
    with spark_errors(f"{work.name}, reading versions {planned.first} to {planned.last} of {work.table.source}"):
        if work.table.changes is Changes.ROW_TRACKING:
            range_ = TrackedRange(work.table.source, planned.first - 1, planned.last, planned.restores)
            names = TrackedNames.beside(columns)
            tracked = read_tracked(spark, range_, columns, keys, names)
            changes, stamp = tracked.frame, (names.row_id, names.commit)
            net = NetSlice(table, keys, columns, planned.parts, stamp, names.bare, tracked.bytes)
        else:
            changes = read_changes(spark, work.table.source, planned.first, planned.last, planned.vector_versions)
            net = NetSlice(table, keys, columns, planned.parts)
    return encode_net(changes, net, folder, compression, footer)
