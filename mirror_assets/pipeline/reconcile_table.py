"""Reconciles a table: mirror against source at the covered version."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import replace

from mirror_assets.landing.format import Manifest, SliceKind
from mirror_assets.landing.generations import EqualVersions, Reconciled
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import drive, read_control_file, write_hint
from mirror_assets.monitoring import Mirror, TableState
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.source_check import changed_expressions, table_columns, table_projection
from mirror_assets.source.schema import parse_schema
from mirror_assets.spark_names import spark_path
from mirror_assets.verify.reconcile import reconcile
from mirror_assets.verify.reconciliation import ReconcileRequest, ReconcileState, Reconciliation, Share
from mirror_assets.zones import Store

# A run of the schedule may start a little earlier than the one before.
_START_MS = 3_600_000
_DAY_HOURS, _HOUR_MS = 24, 3_600_000


def reconcile_table(
    context: TableContext, mirror: Mirror, report: Callable[[str], None] = lambda _: None
) -> Reconciliation:
    """Compare the mirror with the source at the covered version, reading all rows; write nothing.

    The state is pending while landing files wait to be applied, missing before the first slice, stopped while the
    replicator has stopped the table, loading while a snapshot has landed in part, outdated when rows have landed by
    other expressions, or the source is another table with equal rows. Of a mirror that began without a snapshot only
    the rows that it has are compared.

    Raises what `reconcile` raises, and MISTAKES for a mirror that Spark can't read.
    """
    request = comparable(context, mirror)
    return request if isinstance(request, Reconciliation) else reconcile(context.spark(), request, report)


def reconcile_in_turn(context: TableContext, mirror: Mirror, *, scheduled: bool) -> Reconciliation:
    """Do what `reconcile_table` does, and store an equal result in the landing zone.

    A scheduled comparison reads one share of the columns of a large table, so that all are read once in
    `automation.reconcile_all_within_days`, and nothing if neither table has changed since all were found equal, unless
    that is as many days ago.
    """
    request = comparable(context, mirror)
    if isinstance(request, Reconciliation):
        return request
    path, automation = context.name.reconciled, context.config.automation
    stored = drive(read_control_file(Reconciled, path, is_hint=True), context.store)
    last, now_ms = stored.record, time.time_ns() // 1_000_000
    hours = automation.reconcile_all_within_days * _DAY_HOURS
    compared = f"{request.compared}/{hours}"
    if scheduled and last and last.compared == compared:
        is_recent = last.whole_ms is not None and now_ms - last.whole_ms < hours * _HOUR_MS - _START_MS
        most = hours // (automation.reconcile_every_hours or _DAY_HOURS)
        share = Share.after(last.share, most, len(request.columns), len(request.keys))
        request = replace(request, share=share, equal_at=last.equal if is_recent else None)
    found = reconcile(context.spark(), request)
    if found.equal_versions is not None:
        record = _reconciled(found, found.equal_versions, compared, last, now_ms)
        write_hint(stored, record, context.store)
    return found


def _reconciled(
    found: Reconciliation, equal: EqualVersions, compared: str, last: Reconciled | None, now_ms: int
) -> Reconciled:
    """Return the record of an equal result: once as many shares as there are were equal at one version, all were."""
    if found.share is None:
        return Reconciled(compared=compared, equal=equal, share=0, unchanged=0, whole_ms=now_ms)
    is_same = last is not None and last.equal == equal and last.whole_ms is None
    unchanged = 1 + (last.unchanged if last is not None and is_same else 0)
    whole_ms = now_ms if unchanged >= found.share.of else None
    return Reconciled(compared=compared, equal=equal, share=found.share.number, unchanged=unchanged, whole_ms=whole_ms)


def _compared(manifest: Manifest) -> str:
    """Return a digest of what the comparison depends on beside the rows of both sides.

    The source's schema is part of it: a new nested field changes the JSON text of unchanged rows.
    """
    columns = [(column.name, column.type, column.expression) for column in manifest.live_columns]
    source = [manifest.incarnation, manifest.source_table_id, manifest.source_schema]
    made_from = [*source, manifest.keys, columns, manifest.where]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()


def comparable(
    context: TableContext, mirror: Mirror, *, by_new_settings: bool = False
) -> ReconcileRequest | Reconciliation:
    """Return what to compare; or the result where nothing can be compared yet.

    Rows that landed by another condition or expression than the settings have now can only be compared
    `by_new_settings`, which differ. Raises MISTAKES for a mirror that Spark can't read, and what reading
    the source's log raises: an unreadable source is the same error here as in all commands.
    """
    context.log.state()
    manifest, status = context.manifest(), mirror.table(context.name)
    if manifest is None:
        why = f"nothing of it has landed: run `mirror-assets run --table {context.name}` first"
        return Reconciliation(str(context.name), ReconcileState.MISSING, version=-1, reason=why)
    if status is not None and status.state is TableState.FAILED:
        return Reconciliation(
            str(context.name), ReconcileState.STOPPED, manifest.covered, reason=status.message or "no reason given"
        )
    if manifest.loading is not None:
        return Reconciliation(str(context.name), ReconcileState.LOADING, version=-1, reason=str(manifest.loading))
    if status is None or not status.has_applied(manifest):
        return Reconciliation(str(context.name), ReconcileState.PENDING, manifest.covered)
    place = context.config.mirror_place
    if place is not None and place.unreadable is not None:
        raise context.config.invalid((place.unreadable,))
    schema = parse_schema(manifest.source_schema)
    landed = {column.name: column.expression for column in manifest.live_columns}
    changed = changed_expressions(context.table, table_columns(context.table, schema), landed, manifest.where)
    if changed and not by_new_settings:
        return Reconciliation(str(context.name), ReconcileState.OUTDATED, manifest.covered, reason=changed)
    source = context.log.locate_again()
    return ReconcileRequest(
        table=str(context.name),
        source=spark_path(source.uri),
        source_id=manifest.source_table_id,
        version=manifest.covered,
        keys=manifest.keys,
        columns=tuple((column.name, column.type) for column in manifest.live_columns),
        mirror=spark_path(status.location),
        opened_for=manifest.incarnation,
        since=first_landed(context.store, context.name, manifest),
        compared=_compared(manifest),
        projection=table_projection(context.config, context.table, schema),
        managed=source if source.commits else None,
    )


def first_landed(store: Store, table: TableName, manifest: Manifest) -> int | None:
    """Return the first version that landed in the manifest's epoch, if it began without a snapshot; else None."""
    begun = drive(read_control_file(Manifest, table.history(manifest.epoch, 1)), store).record or manifest
    return begun.covered + 1 if begun.generation == 1 and begun.kind is SliceKind.START else None
