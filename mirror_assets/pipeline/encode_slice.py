"""Chooses the encoder of a planned slice by its table's settings, and runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TypeAlias

from mirror_assets.config import Changes, TableSettings
from mirror_assets.encode.changes import FeedSlice, encode_changes
from mirror_assets.encode.differing_files import VersionRange, encode_differences
from mirror_assets.encode.feed_reader import read_changes
from mirror_assets.encode.inserts import AppendSlice, SnapshotSlice, encode_appends, encode_no_rows, encode_snapshot
from mirror_assets.encode.net import NetSlice, encode_net
from mirror_assets.encode.part_assignment import EncodeGroup
from mirror_assets.encode.private.table_version import has_own_reader
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.landing.format import ChangeCounts, Receipt, SliceKind
from mirror_assets.landing.receipt import receipt_metadata
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.expressions import checked_projection
from mirror_assets.source.losses import FeedMissing
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.projection import Projection
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.schema import LandedColumn

Encode: TypeAlias = Callable[
    [TableContext, PlannedSlice, SliceKind, tuple[LandedColumn, ...], str, Receipt],
    tuple[ChangeCounts, tuple[EncodeGroup, ...]],
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
) -> tuple[ChangeCounts, tuple[EncodeGroup, ...]]:
    """Write the slice's parts into `folder`, with the receipt in their footers. Raises what the encoders raise.

    Returns the counts of the rows read and, for a slice of changes, the groups of commits that were written.
    """
    table, source, spark = str(context.name), context.source, context.spark
    compression, footer = context.table.files.compression.value, receipt_metadata(receipt)
    projection = checked_projection(context, planned.schema_string)
    if kind is SliceKind.START:
        encode_no_rows(spark(), columns, folder, compression, footer)
        return ChangeCounts(), ()
    if kind is SliceKind.SNAPSHOT:
        snapshot = SnapshotSlice(
            source, planned.last, columns, planned.parts, planned.target_rows, planned.chunk, projection
        )
        return ChangeCounts(insert=encode_snapshot(spark(), snapshot, folder, compression, footer)), ()
    if kind is SliceKind.APPENDS:
        appends = AppendSlice(
            table, source, planned.first, planned.last, columns, planned.parts, planned.target_rows, projection
        )
        return ChangeCounts(insert=encode_appends(spark(), appends, folder, compression, footer)), ()
    if kind is SliceKind.NET:
        return ChangeCounts(
            **asdict(_encode_net(context, planned, columns, projection, folder, compression, footer))
        ), ()
    feed = FeedSlice(
        table=table,
        uri=source,
        first=planned.first,
        last=planned.last,
        keys=tuple(context.table.keys),
        columns=columns,
        assignments=planned.assignments,
        target_rows=planned.target_rows,
        vector_versions=planned.vector_versions,
        projection=projection,
    )
    encoded = encode_changes(spark(), feed, folder, compression, footer)
    return ChangeCounts(**asdict(encoded.read)), encoded.groups


def _encode_net(
    context: TableContext,
    planned: PlannedSlice,
    columns: tuple[LandedColumn, ...],
    projection: Projection,
    folder: str,
    compression: str,
    footer: dict[str, str],
) -> ReadRows:
    net, spark = NetSlice(str(context.table.name), context.table.mirror_keys, columns, planned.parts), context.spark()
    if compared := planned.compared:
        if context.table.changes is Changes.FEED and not has_own_reader(spark):
            raise FeedMissing(str(context.name), context.log.uri, planned.first)
        range_ = VersionRange(context.source, compared.before, compared.last, by_values=True, projection=projection)
        return encode_differences(spark, range_, net, folder, compression, footer)
    if context.table.changes is Changes.ROW_TRACKING:
        range_ = VersionRange(context.source, planned.first - 1, planned.last, projection=projection)
        return encode_differences(spark, range_, net, folder, compression, footer)
    with spark_errors(f"{context.name}, reading versions {planned.first} to {planned.last} of {context.log.uri}"):
        changes = read_changes(spark, context.source, planned.first, planned.last, planned.vector_versions, projection)
    return encode_net(changes, net, folder, compression, footer)
