"""Repairs a table: lands only the difference between source and mirror, so the table stays available.

The mirror has applied all landing files when it is read, and the slice is staged as the next generation: it lands only
if no other slice has landed since. A repair that was interrupted is done again, because the mirror may have changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from mirror_assets.config.setting_values import OnDropColumn
from mirror_assets.encode.columns import inserted_row, projected
from mirror_assets.encode.repair import MARKERS, RepairChanges, RepairSlice, encode_repair, repair_changes
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import Manifest, Receipt, SliceRecord
from mirror_assets.landing.receipt import receipt_metadata
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.monitoring import Mirror
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import REPAIR_REFUSED, REPAIR_TOO_EARLY
from mirror_assets.pipeline.land_slice import ProcessedSlice, in_three_steps, publish_repair
from mirror_assets.pipeline.plan import position_after
from mirror_assets.pipeline.reconcile_table import comparable
from mirror_assets.pipeline.source_check import (
    check_source,
    checked_projection,
    condition_fingerprint,
    recorded_columns,
    table_columns,
)
from mirror_assets.pipeline.stage import EncodedSlice, stage_attempt
from mirror_assets.source.batching import parts_for
from mirror_assets.source.commits import SourceState
from mirror_assets.source.planner import PlannedSlice, snapshot_slice
from mirror_assets.source.scan_builder import scan_version
from mirror_assets.source.schema import LandedColumn
from mirror_assets.verify.differing_rows import BUCKETS, differing_rows
from mirror_assets.verify.reconcile import OpenedTables, all_totals, opened
from mirror_assets.verify.reconciliation import ReconcileRequest, ReconcileState, Reconciliation

_EARLY = {
    ReconcileState.PENDING: "landing files wait for the replicator",
    ReconcileState.MISSING: "the mirror has no such table",
}


@dataclass(frozen=True)
class Repair:
    """A table's source at its newest version, compared with its mirror after all generations of the manifest.

    `differs`: some rows do. `where` is the fingerprint of the condition for rows. `read` is what the slice reads.
    """

    state: SourceState
    manifest: Manifest
    planned: PlannedSlice
    slice: RepairSlice
    differs: bool
    where: str | None
    read: OpenedTables

    @property
    def is_needed(self) -> bool:
        """Whether a row differs, a commit has not landed, or identity, columns or settings have changed."""
        landed = self.manifest.source_table_id, self.manifest.where, set(self.manifest.live_columns)
        source = self.state.table_id, self.where, set(recorded_columns(self.slice.columns))
        return self.differs or self.state.version > self.manifest.covered or landed != source


def plan_repair(context: TableContext, mirror: Mirror, report: Callable[[str], None]) -> Repair:
    """Compare the mirror with the newest version of the source. Reads both, and changes nothing.

    Raises REPAIR_REFUSED where a repair can't help, REPAIR_TOO_EARLY, and what `reconcile` raises.
    """
    # The manifest first: what lands after it would make the source seem to end before it.
    manifest, state = context.manifest(), context.log.state()
    request = comparable(context, mirror, by_new_settings=True)
    if manifest is None or isinstance(request, Reconciliation):
        raise _not_comparable(context, request)
    context.log.require_landed(state, manifest.covered, manifest.source_table_id)
    columns = table_columns(context.table, state.schema)
    _require_repairable(context, manifest, request, columns, state.version)
    check_source(context.config, context.table, state)
    landed = tuple((column.name, column.type) for column in columns)
    projection = checked_projection(context, state.schema_string)
    newest = replace(request, source_id=state.table_id, version=state.version, columns=landed, projection=projection)
    read = opened(context.spark(), newest)
    if read.unfit:
        raise REPAIR_REFUSED(table=str(context.name), why=f"the mirror has another type of {', '.join(read.unfit)}")
    totals = all_totals(newest, read, report)
    snapshot = snapshot_slice(state, manifest.epoch, context.table.files.target_rows)
    # The rows of differing buckets; most of them are equal.
    share = -(-len(totals.differing) * max(totals.source_rows, totals.mirror_rows) // BUCKETS)
    parts = parts_for(share, snapshot.target_rows) if totals.differing else 0
    first = min(manifest.covered + 1, state.version)
    planned = replace(snapshot, first=first, is_snapshot=False, is_repair=True, assignments=(), parts=parts, rows=share)
    # What differs is found by another reader than lands.
    scan, is_keyless = scan_version(context.log, state.version), any(column.is_row_id for column in columns)
    rows = projected(read_scan(context.spark(), scan, row_ids=is_keyless), projection)
    slice_ = RepairSlice(
        table=str(context.name),
        version=state.version,
        differing=differing_rows(read.sides, totals.differing),
        keys={alias: read.names[int(alias[1:])] for alias in read.sides.identity},
        rows_to_land=rows.select(*inserted_row(rows, columns, {})),
        columns=columns,
        parts=max(1, parts),
    )
    where = condition_fingerprint(context.table)
    return Repair(state, manifest, planned, slice_, bool(totals.differing), where, read)


def count_repair(repair: Repair) -> RepairChanges:
    """Return what the repair would land. Raises DUPLICATE_KEY."""
    if not repair.differs:
        return RepairChanges(dict.fromkeys(MARKERS, 0), {})
    return repair_changes(repair.slice)


def repair_table(context: TableContext, mirror: Mirror, report: Callable[[str], None]) -> ProcessedSlice | None:
    """Land the difference between source and mirror; return None if there is none, and no commit either.

    Finishes an interrupted publication first. Raises what `plan_repair` raises, DUPLICATE_KEY, ChecksFailed, and
    LostRace when another slice has landed meanwhile: then nothing of the repair has.
    """
    began = time.monotonic()
    drive(recover(context.name), context.store)
    mirror.poll_table(context.name)
    repair = plan_repair(context, mirror, report)
    if not repair.is_needed:
        report(f"{context.name}: the mirror equals version {repair.state.version} of the source")
        return None
    position = position_after(repair.manifest)

    def encode(folder: str, receipt: Receipt) -> EncodedSlice:
        return EncodedSlice(encode_repair(repair.slice, folder, receipt_metadata(receipt)))

    def stage() -> SliceRecord:
        return stage_attempt(context, repair.planned, position, encode=encode)

    return in_three_steps(context, repair.state, repair.planned, stage, partial(publish_repair, context), began)


def _not_comparable(context: TableContext, found: ReconcileRequest | Reconciliation) -> MirrorError:
    """Return the error for a mirror that has not applied everything, or never will."""
    name = str(context.name)
    if isinstance(found, Reconciliation) and found.state in _EARLY and found.version >= 0:
        return REPAIR_TOO_EARLY(table=name, why=_EARLY[found.state])
    reason = found.reason if isinstance(found, Reconciliation) else ""
    return REPAIR_REFUSED(table=name, why=reason or "nothing of it has landed")


def _require_repairable(
    context: TableContext,
    manifest: Manifest,
    request: ReconcileRequest,
    columns: tuple[LandedColumn, ...],
    version: int,
) -> None:
    """Raise REPAIR_REFUSED where rows can't be identified, or where no later slice could follow."""
    landed, new = {x.name: x.type for x in manifest.columns}, {x.name: x.type for x in recorded_columns(columns)}
    retyped = [name for name, kind in new.items() if landed.get(name, kind) != kind]
    again = [name for name in manifest.dropped if name.lower() in {other.lower() for other in new}]
    lost, added = [x.name for x in manifest.live_columns if x.name not in new], new.keys() - landed.keys()
    if context.table.on_drop_column is OnDropColumn.REBUILD or added:  # a renamed column is lost and added
        again += lost
    if not manifest.keys:
        why = "it has no keys"
    elif manifest.keys != context.table.mirror_keys:
        why = f"its keys were {', '.join(manifest.keys)} when it was loaded"
    elif request.since is not None:
        why = f"it began with version {request.since}, so rows that the mirror lacks may have been left out on purpose"
    elif version < manifest.covered:
        why = f"the source ends at version {version}, before the covered version {manifest.covered}"
    elif retyped or again:
        why = f"the source has changed its columns {', '.join(retyped + again)}"
    else:
        return
    raise REPAIR_REFUSED(table=str(context.name), why=why)
