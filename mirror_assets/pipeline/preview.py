"""Reads rows of the source to show them: changes, in pieces that each have one schema, and rows as they would land."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.column_types import LAND_AS_TEXT, Family
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.source_fit import source_problems
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, inserted_row, projected
from mirror_assets.encode.net_changes import DifferencesSlice, DifferingRows, NetSlice
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.errors import MirrorError, SettingError
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.pipeline.context import TableContext, reading
from mirror_assets.pipeline.errors import not_recorded
from mirror_assets.pipeline.source_check import RECORD, checked_projection, is_recorded, table_columns
from mirror_assets.source.actions import Metadata
from mirror_assets.source.commits import Commit, CommitRange, SourceState, feed_files, source_columns
from mirror_assets.source.errors import RANGE_REFUSED, LogGap, SourceLoss
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.losses import SourceRead, proved
from mirror_assets.source.ranges import Range, VersionPoint, resolve
from mirror_assets.source.scan_builder import scan_changes, scan_differences, scan_version
from mirror_assets.source.schema import ALL_ROWS, Field, LandedColumn, Projection, Schema, compare_schemas, parse_schema
from mirror_assets.spark_names import quoted


@dataclass(frozen=True)
class ShownChanges:
    """The change rows of commits `first` to `last`, as JSON objects that have the columns of `last`."""

    first: int
    last: int
    rows: tuple[str, ...]


@dataclass(frozen=True)
class _Step:
    """A commit, and the table's metadata at it."""

    commit: Commit
    metadata: Metadata


def show_changes(
    table: TableSettings, log: DeltaLog, spark: Callable[[], SparkSession], commits: Range, limit: int
) -> Iterator[ShownChanges]:
    """Yield the changes of the commits, by default of the newest, up to `limit` rows; starts Spark only for rows.

    A table with `changes: row_tracking` or `files` is read commit by commit, any other by its change data feed. Raises
    RANGE_REFUSED, not_recorded, and what reading the source raises.
    """
    tip = log.state()
    times, compares = log.times(tip), table.changes.compares_versions
    for piece in _pieces(_steps(table, log, tip, commits), one_each=compares):
        if limit <= 0 or not any(step.commit.changes_data for step in piece):
            continue
        first, last = piece[0].commit.version, piece[-1].commit.version
        read = SourceRead(first, last, (first - 1, last) if compares else ())
        try:
            with spark_errors(log.uri):
                if compares:
                    columns = _shown_columns(table, parse_schema(piece[0].metadata.schema_string))
                    slice_ = DifferencesSlice(
                        scans=scan_differences(log, CommitRange(first, first)),
                        net=NetSlice(log.uri, table.mirror_keys, columns, 1),
                        by_values=table.changes is Changes.FILES,
                        projection=_made_keys(columns),
                    )
                    frame = net_changes(spark(), slice_, columns, times.at(first))
                else:
                    times_ms = {version: times.at(version) for version in range(first, last + 1)}
                    scan = scan_changes(log, CommitRange(first, last, piece[-1].metadata.table_id), times_ms=times_ms)
                    frame = read_scan(spark(), scan)
                names = dict.fromkeys((COMMIT_VERSION, COMMIT_TIMESTAMP, CHANGE_TYPE, *frame.columns))
                rows = as_json(frame.orderBy(COMMIT_VERSION).limit(limit).select(*map(quoted, names)))
        except MirrorError as error:
            meant = proved(str(table.name), log, read, error)
            if isinstance(meant, SourceLoss):
                raise _lost(log, tip, read, meant) from error
            raise meant from error
        limit -= len(rows)
        yield ShownChanges(first, last, rows)


def _shown_columns(table: TableSettings, schema: Schema) -> tuple[LandedColumn, ...]:
    """Return the source's columns with their own values, as the change feed has them: no masks, and none left out.

    Keys that the source doesn't have are before them: the row id, and new computed columns. Raises as `table_columns`.
    """
    names = {field.name.lower() for field in schema.fields}
    keys = [column for column in table_columns(table, schema) if column.name in table.mirror_keys]
    made = [column for column in keys if column.is_row_id or column.name.lower() not in names]
    return (*made, *(_unmasked(field) for field in schema.fields))


def _unmasked(field: Field) -> LandedColumn:
    kind = "string" if field.kind.family in LAND_AS_TEXT else field.type
    return LandedColumn(field.name, kind, nested=field.kind.family is Family.NESTED)


def _made_keys(columns: Sequence[LandedColumn]) -> Projection:
    """Return the projection that computes the keys alone; columns that the earlier version lacks are NULL."""
    computed = tuple(column for column in columns if column.sql)
    return Projection(computed=computed, uses=tuple(column.name for column in columns)) if computed else ALL_ROWS


def _steps(table: TableSettings, log: DeltaLog, tip: SourceState, commits: Range) -> tuple[_Step, ...]:
    """Return the commits to show. Raises RANGE_REFUSED and not_recorded if their changes were not recorded."""
    newest = VersionPoint(tip.version)
    bounds = resolve(log.uri, log.times(tip), Range(newest, newest) if commits.is_everything else commits)
    first = _first_readable(log, bounds.last) if bounds.first is None else bounds.first
    if first > bounds.last:
        return ()
    steps = list[_Step]()
    try:
        known = log.state(first).metadata
    except LogGap as gap:
        readable = _first_readable(log, tip.version)
        next_step = f"choose commits from version {readable} on (--from {readable})."
        raise RANGE_REFUSED(
            uri=log.uri, why=f"version {first} can't be read any more, its log was cleaned up", next_step=next_step
        ) from gap
    for commit in log.commits(first, bounds.last):
        known = commit.metadata or known
        steps.append(_Step(commit, known))
    changes = table.changes if table.changes.compares_versions else Changes.FEED
    if changes.compares_versions and not first and steps[0].commit.changes_data:
        why = f"`changes: {changes.value}` compares each version with the one before, and version 0 has none"
        raise RANGE_REFUSED(uri=log.uri, why=why, next_step="choose commits from version 1 on (--from 1).")
    off = [step.commit.version for step in steps if not is_recorded(changes, step.metadata)]
    if not off:
        return tuple(steps)
    runs = [tuple(run) for on, run in groupby(steps, lambda step: is_recorded(changes, step.metadata)) if on]
    if not runs and off[-1] == tip.version:
        raise not_recorded(str(table.name), log.uri, tip.protocol, changes)
    shown = " or ".join(f"{run[0].commit.version} to {run[-1].commit.version}" for run in runs)
    next_step = f"choose commits among versions {shown}." if runs else "choose commits before it, or after it."
    raise RANGE_REFUSED(uri=log.uri, why=f"{RECORD[changes]} was off at version {off[0]}", next_step=next_step)


def _first_readable(log: DeltaLog, last: int) -> int:
    """Return the first version that can be reconstructed, or the one after `last`."""
    readable = log.earliest_state()
    return last + 1 if readable is None else readable


def _pieces(steps: Sequence[_Step], *, one_each: bool) -> Iterator[tuple[_Step, ...]]:
    """Cut before each commit that makes another table, or changes a column so that one schema can't read both sides."""

    def is_cut(before: Metadata, after: Metadata) -> bool:
        if one_each or before.table_id != after.table_id:
            return True
        if before is after:
            return False  # as with most commits
        schemas = (parse_schema(metadata.schema_string) for metadata in (before, after))
        return any(change.is_breaking for change in compare_schemas(*schemas))

    begins = [at for at, (a, b) in enumerate(pairwise(steps), start=1) if is_cut(a.metadata, b.metadata)]
    return (tuple(steps[begin:end]) for begin, end in pairwise([0, *begins, len(steps)]) if begin < end)


def _lost(log: DeltaLog, tip: SourceState, read: SourceRead, meant: SourceLoss) -> SettingError:
    """Return the refusal that names the lost files and the first version after them that can be read."""
    lost = {version: log.lost_files(version, feed_files) for version in range(read.first, read.last + 1)}
    named = [f"{file}, of version {version}," for version, files in lost.items() for file in files]
    named = named or [f"{meant.file}, of version {meant.version},"]
    why = f"deleted from the store: {' '.join(named).rstrip(',')}"
    begin = max([meant.version, *(version for version, files in lost.items() if files)]) + 1
    later = (version for version in range(begin, tip.version + 1) if not log.lost_files(version, feed_files))
    readable = next(later, None)
    restore = "restore the files, or wait for the next commit: no later commit can be read."
    next_step = restore if readable is None else f"choose commits from version {readable} on (--from {readable})."
    return RANGE_REFUSED(uri=log.uri, why=why, next_step=next_step)


def landing_rows(context: TableContext, limit: int) -> tuple[str, ...]:
    """Return up to `limit` rows of the newest version as they would land, as JSON objects; write nothing.

    The source needs no change data feed yet. Raises what `checked_projection` raises, MISTAKES for other mistakes,
    and what reading the source raises.
    """
    state = context.log.state()
    if problems := source_problems(context.table, source_columns(state)):
        raise context.config.invalid(problems)
    projection, at = checked_projection(context, state.schema_string), state.version
    place = f"{context.name}, reading version {at} of {context.log.uri}"
    with reading(context, SourceRead(at, at, versions=(at,))), spark_errors(place):
        columns = table_columns(context.table, state.schema)
        scan, is_keyless = scan_version(context.log, at), context.table.is_keyless
        rows = projected(read_scan(context.spark(), scan, row_ids=is_keyless), projection)
        return as_json(rows.select(*inserted_row(rows, columns, {})).limit(limit))


def net_changes(
    spark: SparkSession, slice_: DifferencesSlice, columns: Sequence[LandedColumn], time_ms: int
) -> DataFrame:
    """Return the net changes between two versions, one per key, with the columns that the change feed has.

    `time_ms` is the time of the last version. Of a deleted row only the keys have values.
    """
    differing = DifferingRows.read(spark, slice_)
    net = differing.landed_rows(differing.changed_keys(), {}, 1, is_few=False)
    marker = F.col(ROW_MARKER)
    change = F.when(marker == int(Marker.INSERT), "insert").when(marker == int(Marker.DELETE), "delete")
    return net.select(
        *(F.col(quoted(column.name)) for column in columns),
        change.otherwise("update_postimage").alias(CHANGE_TYPE),
        F.lit(slice_.scans.last_version).cast("bigint").alias(COMMIT_VERSION),
        F.timestamp_millis(F.lit(time_ms)).alias(COMMIT_TIMESTAMP),
    )


def as_json(rows: DataFrame) -> tuple[str, ...]:
    """Return the rows as JSON objects with all columns, also those that are NULL."""
    row = F.to_json(F.struct(*map(quoted, rows.columns)), {"ignoreNullFields": "false"})
    return tuple(found[0] for found in rows.select(row).collect())
