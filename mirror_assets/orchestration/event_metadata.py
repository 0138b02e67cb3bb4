"""The events of a table's assets and their metadata: a sentence first, then numbers that the UI plots.

Dagster stores 142 bytes for each number besides its name, and SQLite stores them twice. So a number that is not plotted
is in the sentence only, and what is the same for every slice is left out, except for the columns: Dagster's pages show
those of the newest event.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Final

import dagster as dg

from mirror_assets.config.model import Config
from mirror_assets.landing.cost import landing_cost
from mirror_assets.landing.format import Manifest, MarkerCounts, SliceKind, SliceRecord
from mirror_assets.landing.names import SliceKey, TableName, landing_name
from mirror_assets.landing.publish import Outcome, Published
from mirror_assets.markers import ROW_ID
from mirror_assets.monitoring import MonitoredTable
from mirror_assets.orchestration.dagster_internals import DATA_VERSION_TAG
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.translator import AssetKind, MetadataItem, shown_place
from mirror_assets.orchestration.units import count, duration, size
from mirror_assets.pipeline.context import TableContext
from mirror_assets.source.commits import SourceState, source_columns
from mirror_assets.source.schema import Schema, parse_schema
from mirror_assets.source.sql_columns import SqlNotParsed, columns_used

Metadata = Mapping[str, MetadataItem]
# Metadata of failures and failed checks: the link to the documentation.
DOCS_URL: Final = "docs_url"
# The lineage of a wider table would make each of its events some 100 kB large.
_MOST_COLUMNS = 500
# Each event repeats the comments of all columns.
_LONGEST_COMMENT = 200


def link_item(link: str) -> MetadataItem:
    """Return the link as metadata: a web address can be clicked, a path in the repository is text."""
    return dg.MetadataValue.url(link) if link.startswith("http") else link


def source_event(
    assets: MirrorAssets, table_context: TableContext, state: SourceState, key: SliceKey, rows: int
) -> dg.AssetMaterialization | dg.AssetObservation:
    """Return that the source has a slice, as read at `state`; its data version is the slice's last version.

    `rows` is the number of rows to read for the slice. Others write the source, so Dagster learns of its partitions
    from these events only. An asset of the project that writes the source materializes it: it is only observed.
    """
    metadata: dict[str, MetadataItem] = {
        "summary": f"{versions(key)}: {count(rows, 'row')} to read; the table is at version {state.version} with "
        f"{count(state.likely_rows, 'row')} in {count(state.files, 'file')} of {size(state.bytes)}",
        "dagster/partition_row_count": rows,
        "dagster/row_count": state.likely_rows,
        "dagster/column_schema": _table_schema(
            source_columns(state), state.schema, table_context.table.keys, holds_rows=True
        ),
    }
    asset = assets.key(AssetKind.SOURCE, table_context.name)
    if table_context.table.source_asset is not None:
        return dg.AssetObservation(asset, metadata=metadata)
    tags = {DATA_VERSION_TAG: str(key.last)}
    return dg.AssetMaterialization(asset, partition=str(key), metadata=metadata, tags=tags)


def staged_metadata(record: SliceRecord, seconds: Mapping[str, float] | None = None) -> Metadata:
    """Return the metadata of a staged slice: rows read and written, bytes, time of the last commit.

    `seconds` is how long the steps took, by their names.
    """
    key, read, written = record.slice, record.read, record.markers
    chunk = f", chunk {record.chunk}" if record.chunk else ""
    summary = (
        f"{versions(key, record.kind)}{chunk}: {count(read.total, 'row')} read, {changes(written)} written "
        f"in {count(len(record.parts), 'part')} of {size(record.bytes)}"
    )
    if record.last_commit_ms is not None:
        at = datetime.fromtimestamp(record.last_commit_ms / 1000, timezone.utc)
        summary += f"; last commit at {at:%Y-%m-%d %H:%M:%S} UTC"
    metadata: dict[str, MetadataItem] = {
        "summary": summary + _took(seconds),
        "dagster/partition_row_count": written.total,
    }
    if (compared := record.compared) is not None:
        files = f"{count(compared.files, 'file')} of {size(compared.bytes)}"
        reason = f", because {compared.because}" if compared.because else ""
        metadata["read_by_files"] = (
            f"{files} that differ between versions {compared.before} and {compared.last}{reason}"
        )
    return metadata | _noted_commits(record.unproved_commits, record.commits_by_files)


def landed_metadata(
    assets: MirrorAssets,
    table_context: TableContext,
    published: Published,
    seconds: Mapping[str, float] | None = None,
) -> Metadata:
    """Return the metadata of a landed slice: its changes, lag, files, bytes, covered version, columns.

    The lag is the age of its last commit now, for one that has just landed; `seconds` is how long the steps took, by
    their names.
    """
    manifest = published.manifest
    entries = published.entries or manifest.entries
    rows = sum((entry.markers for entry in entries), MarkerCounts())
    total_bytes = sum(entry.bytes for entry in entries)
    chunk = f", chunk {manifest.chunk}" if manifest.chunk else ""
    summary = f"{versions(manifest.slice, manifest.kind)}{chunk}: {changes(rows)}"
    if entries:
        summary += f" in {count(len(entries), 'file')} of {size(total_bytes)}"
    metadata: dict[str, MetadataItem] = {
        "summary": summary,
        "dagster/partition_row_count": manifest.landed_rows if manifest.chunk else rows.total,
    }
    if published.outcome is Outcome.LANDED and manifest.covered_commit_ms is not None:
        lag = max(0.0, time.time() - manifest.covered_commit_ms / 1000)
        summary += f", {duration(lag)} behind the commit"
        metadata["lag_seconds"] = round(lag, 3)
    if entries:
        names = [landing_name(entry.number) for entry in entries]
        summary += f"; {names[0]}" if len(names) == 1 else f"; {names[0]} to {names[-1]}"
    metadata |= {
        "summary": summary + _took(seconds),
        "files": len(entries),
        "bytes": total_bytes,
        "covered_version": manifest.covered,
        **_noted_commits(published.unproved, published.by_files),
    }
    if manifest.chunk:
        metadata["chunks"] = f"{manifest.chunk.of}, this is the last"
    if published.outcome is Outcome.LANDED and assets.config.zone.is_metered:  # as estimated
        cost = landing_cost(1, len(published.entries))
        metadata |= {"onelake_requests": round(cost.requests), "onelake_cu_seconds": round(cost.capacity_seconds, 1)}
    # The staged parts have the same columns: naming them twice would double the size of a slice's events.
    return metadata | columns_metadata(assets, AssetKind.LANDING, table_context.name, manifest)


def skipped_metadata(why: str, key: SliceKey, known: Metadata | None = None) -> Metadata:
    """Return the metadata of a slice that had nothing left to do: what is `known` of it, and why."""
    return {"landed_before": why, **(known or {"summary": f"{versions(key)}: {why}"})}


def mirrored_metadata(config: Config, status: MonitoredTable, manifest: Manifest | None) -> dict[str, MetadataItem]:
    """Return the metadata of a mirrored table: the replicator's status, and by `manifest` its version.

    Without a manifest, or while files wait to be applied, no version of the mirror is named.
    """
    is_current = manifest is not None and status.has_applied(manifest)
    has = manifest.covered if manifest is not None and is_current else None
    waiting = f", {count(status.waiting_files, 'file')} to apply" if status.waiting_files else ""
    at = waiting
    if manifest is not None and is_current:
        at = f": at version {manifest.covered} of the source"
    elif manifest is not None:
        at = f": behind version {manifest.covered} of the source{waiting}"
    metadata: dict[str, MetadataItem] = {"summary": f"{status.state.value}{at}", "state": status.state.value}
    if status.mirror_rows is not None:
        metadata["dagster/row_count"] = status.mirror_rows
    if has is not None:
        metadata["source_version"] = has
    metadata["waiting_files"] = status.waiting_files
    metadata |= {"processed_rows": status.processed_rows, "processed_bytes": status.processed_bytes}
    if status.last_sync is not None:
        metadata["last_sync"] = dg.MetadataValue.timestamp(status.last_sync)
    if status.sync_latency_seconds is not None:
        metadata["sync_latency_seconds"] = status.sync_latency_seconds
    if status.applied_number is not None:
        metadata["applied_number"] = status.applied_number
    if status.message:
        metadata["message"] = status.message
    return metadata | {"mirror": dg.MetadataValue.path(shown_place(config, status.location))}


def versions(key: SliceKey, kind: SliceKind | None = None) -> str:
    """Return the slice's versions as people say them: `version 5`, `versions 4 to 5`, `the table at version 7`."""
    if kind is SliceKind.SNAPSHOT:
        return f"the table at version {key.last}"
    if kind is SliceKind.REPAIR:
        return f"the difference to version {key.last}"
    return f"version {key.last}" if key.first == key.last else f"versions {key.first} to {key.last}"


def changes(rows: MarkerCounts) -> str:
    """Return `3 inserts, 1 update`; `no change` for none."""
    named = {"insert": rows.inserts, "update": rows.updates, "delete": rows.deletes, "upsert": rows.upserts}
    return ", ".join(count(number, noun) for noun, number in named.items() if number) or "no change"


def _noted_commits(unproved: int, by_files: int) -> dict[str, MetadataItem]:
    """Return the numbers of commits that a person may want to check; most slices have none."""
    counted = {"commits_unproved": unproved, "commits_by_files": by_files}
    return {name: number for name, number in counted.items() if number}


def _took(seconds: Mapping[str, float] | None) -> str:
    """Return `; stage 0.41 s, publish 0.01 s`; metrics have the sums over all slices."""
    steps = ", ".join(f"{step} {took:.2f} s" for step, took in (seconds or {}).items())
    return f"; {steps}" if steps else ""


def columns_metadata(
    assets: MirrorAssets, kind: AssetKind, table: TableName, manifest: Manifest
) -> dict[str, MetadataItem]:
    """Return the columns of the landing files or the mirror, each with the columns that it comes from.

    A row id is made here. Those of the landing files come from the source's, computed ones from all that they use.
    """
    lands, computed = kind == AssetKind.LANDING, assets.config.table(table).computed
    columns, source = manifest.live_columns if lands else manifest.columns, parse_schema(manifest.source_schema)
    schema = _table_schema(
        [(column.name, column.type) for column in columns], source, manifest.keys, holds_rows=not lands
    )
    if len(columns) > _MOST_COLUMNS:
        return {"dagster/column_schema": schema}
    used = {name: _origins(column.sql, source) for name, column in computed.items()} if lands else {}
    origin = assets.key(AssetKind.SOURCE if lands else AssetKind.LANDING, table)
    deps = {
        column.name: [dg.TableColumnDep(origin, name) for name in used.get(column.name, (column.name,))]
        for column in columns
        if column.name != ROW_ID
    }
    lineage = dg.TableColumnLineage(deps_by_column=deps)
    return {"dagster/column_schema": schema, "dagster/column_lineage": lineage}


def _origins(sql: str, source: Schema) -> tuple[str, ...]:
    """Return the columns that an expression reads, without the values of its references, which may be secrets.

    Empty where it can't be parsed without them.
    """
    try:
        return columns_used(sql, source)
    except SqlNotParsed:
        return ()


def _table_schema(
    columns: Iterable[tuple[str, str]], source: Schema, keys: Sequence[str], *, holds_rows: bool
) -> dg.TableSchema:
    """Return the columns with their names and types, the source's comments and nullability, and the keys.

    Source and mirror hold rows (`holds_rows`). Landing files hold changes: keys repeat, and a DELETE has its key alone.
    """
    fields = {field.name: field for field in source.fields}

    def described(name: str, type_: str) -> dg.TableColumn:
        field, is_key = fields.get(name), name in keys
        constraints = dg.TableColumnConstraints(
            nullable=not is_key and not (holds_rows and field is not None and not field.nullable),
            unique=holds_rows and [name] == list(keys),
            other=["key"] if is_key else [],
        )
        comment = field.comment[:_LONGEST_COMMENT] if field else None
        return dg.TableColumn(name, type_, comment or None, constraints)

    return dg.TableSchema([described(name, type_) for name, type_ in columns])


class ChangedMirrors:
    """Makes the events of mirrored tables that have changed since their newest materialization in Dagster.

    The data version of an event is its mark: state, processed rows, and epoch, version and columns, if they are known.
    """

    def __init__(self, instance: dg.DagsterInstance, assets: MirrorAssets) -> None:
        """Read the marks of the tables' newest materializations, by one query."""
        self._assets, self._marks = assets, dict[TableName, str]()
        names = {assets.key(AssetKind.MIRROR, name): name for name in assets.config.names}
        for key, entry in instance.get_latest_materialization_events(list(names)).items():
            newest = entry.asset_materialization if entry else None
            self._marks[names[key]] = (newest.tags or {}).get(DATA_VERSION_TAG, "") if newest else ""

    def event(self, status: MonitoredTable | None, manifest: Manifest | None) -> dg.AssetMaterialization | None:
        """Return the event of a table that has changed; `manifest` is what has landed, if that could be read."""
        if status is None:
            return None
        before = self._marks.get(status.name, "")
        mark = _mark(status, manifest, before)
        if mark == before:
            return None
        columns = {} if manifest is None else columns_metadata(self._assets, AssetKind.MIRROR, status.name, manifest)
        return dg.AssetMaterialization(
            self._assets.key(AssetKind.MIRROR, status.name),
            metadata={**mirrored_metadata(self._assets.config, status, manifest), **columns},
            tags={DATA_VERSION_TAG: mark},
        )


def _mark(status: MonitoredTable, manifest: Manifest | None, before: str) -> str:
    """Return the table's mark; its contents are those of `before` while the mirror has not applied everything."""
    contents = before.split(" ", 2)[2:]
    if manifest is not None and manifest.loading is None and status.has_applied(manifest):
        columns = repr([(column.name, column.type) for column in manifest.columns])
        digest = hashlib.sha256(columns.encode()).hexdigest()[:8]
        contents = [f"{manifest.epoch}.{manifest.covered} {digest}"]
    return " ".join([status.state.value, str(status.processed_rows), *contents])
