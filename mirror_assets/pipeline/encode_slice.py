"""Chooses the encoder of a planned slice by its table's settings, and runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from mirror_assets.config.setting_values import Changes
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.encode.changes import ChangesSlice, GroupRead, encode_changes
from mirror_assets.encode.counted import Counted, observed_changes
from mirror_assets.encode.encode_differences import DifferencesSlice, encode_differences
from mirror_assets.encode.inserts import InsertsSlice, encode_inserts, encode_no_rows
from mirror_assets.encode.net import NetSlice, encode_net
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.landing.format import Receipt, SliceKind, SliceRecord
from mirror_assets.landing.receipt import receipt_metadata
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.source_check import checked_projection
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.projection import Projection
from mirror_assets.source.scan import Scan
from mirror_assets.source.scan_builder import VersionPart, scan_changes, scan_differences, scan_version
from mirror_assets.source.schema import LandedColumn


@dataclass(frozen=True)
class EncodedSlice:
    """What an encoder read, and for a slice of changes the groups of commits that it wrote.

    Without `counted` and groups, all rows of the parts were read, and no others. `by_feed`: it read change files.
    """

    counted: Counted | None = None
    groups: tuple[GroupRead, ...] = ()
    by_feed: bool = False


Encode: TypeAlias = Callable[
    [TableContext, PlannedSlice, SliceKind, tuple[LandedColumn, ...], str, Receipt],
    EncodedSlice,
]
"""Writes a slice's parts into a folder, as `encode_slice` does."""


def slice_kind(table: TableSettings, planned: PlannedSlice, *, is_first: bool) -> SliceKind:
    """Return the kind of the slice; the first of an epoch (`is_first`) always has a file."""
    if planned.is_repair:
        return SliceKind.REPAIR
    if planned.is_snapshot:
        return SliceKind.SNAPSHOT
    if planned.is_start or (is_first and not planned.parts):
        return SliceKind.START
    if table.changes is Changes.APPEND_ONLY:
        return SliceKind.APPENDS
    return SliceKind.NET if table.is_net or planned.compared else SliceKind.CHANGES


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
    compression, footer = context.table.files.compression.value, receipt_metadata(receipt)
    projection = checked_projection(context, planned.schema_string)
    if kind is SliceKind.START:
        encode_no_rows(spark(), columns, folder, compression, footer)
        return EncodedSlice()
    if kind is SliceKind.NET:
        return _encode_net(context, planned, columns, projection, folder, compression, footer)
    scan = scan_of(context.log, kind, planned.commits, _part_of(planned))
    if kind is SliceKind.CHANGES:
        keys, assignments, rows = tuple(context.table.keys), planned.assignments, planned.target_rows
        changes = ChangesSlice(table, scan, keys, columns, assignments, rows, projection)
        groups = encode_changes(spark(), changes, folder, compression, footer)
        return EncodedSlice(groups=groups, by_feed=scan.reads_change_files)
    inserts = InsertsSlice(table, scan, planned.last, columns, planned.parts, planned.target_rows, projection)
    return EncodedSlice(encode_inserts(spark(), inserts, folder, compression, footer))


def scan_of(log: DeltaLog, kind: SliceKind, commits: CommitRange, part: VersionPart | None = None) -> Scan:
    """Return the scan of a slice that isn't read by comparing versions. Raises what the log raises."""
    if kind is SliceKind.SNAPSHOT:
        return scan_version(log, commits.last, part or VersionPart(table_id=commits.table_id))
    return scan_changes(log, commits, by_feed=kind is not SliceKind.APPENDS)


def _part_of(planned: PlannedSlice) -> VersionPart | None:
    chunk = planned.chunk
    return VersionPart(chunk.first, chunk.end, chunk.files, planned.table_id) if chunk else None


def _encode_net(
    context: TableContext,
    planned: PlannedSlice,
    columns: tuple[LandedColumn, ...],
    projection: Projection,
    folder: str,
    compression: str,
    footer: dict[str, str],
) -> EncodedSlice:
    keys, parts, rows = context.table.mirror_keys, planned.parts, planned.target_rows
    net = NetSlice(str(context.table.name), keys, columns, parts, rows)
    versions = versions_compared(context.table, planned)
    if versions is None:
        scan = scan_of(context.log, SliceKind.NET, planned.commits)
        with spark_errors(f"{net.table}, reading changes of {scan.uri}"):
            changes = observed_changes(read_scan(context.spark(), scan), projection)
        counted = encode_net(changes, net, folder, compression, footer)
        return EncodedSlice(counted, by_feed=scan.reads_change_files)
    commits = replace(planned.commits, first=versions[0] + 1, last=versions[1])
    scans = scan_differences(context.log, commits)
    slice_ = DifferencesSlice(scans, net, by_values=planned.compared is not None, projection=projection)
    return EncodedSlice(encode_differences(context.spark(), slice_, folder, compression, footer))


def versions_compared(table: TableSettings, made_from: PlannedSlice | SliceRecord) -> tuple[int, int] | None:
    """Return the two versions that a slice is read from; None if it is read from change rows, or a whole version."""
    if made_from.compared:
        return made_from.compared.before, made_from.compared.last
    if table.changes is not Changes.ROW_TRACKING:
        return None
    if isinstance(made_from, PlannedSlice):
        return made_from.first - 1, made_from.last
    return made_from.slice.first - 1, made_from.slice.last
