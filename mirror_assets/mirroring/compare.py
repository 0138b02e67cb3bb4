"""Reconciles a table: mirror against source at the covered version."""

from __future__ import annotations

from mirror_assets.mirroring.work import TableWork
from mirror_assets.monitoring import Mirror, TableState
from mirror_assets.replicator.reconcile import reconcile
from mirror_assets.replicator.reconciliation import ReconcileRequest, ReconcileState, Reconciliation


def reconcile_table(work: TableWork, mirror: Mirror) -> Reconciliation:
    """Whether the mirror is the source at the covered version; pending while files wait, missing before the first.

    Stopped while the replicator refuses to go on: then no file is waiting for anything but a person.

    Raises CoveredVersionGone, SourceUnreadable and MirrorUnreadable.
    """
    manifest, status = work.manifest(), mirror.table(work.name)
    if manifest is None:
        return Reconciliation(str(work.name), ReconcileState.MISSING, version=-1)
    if status is not None and status.state is TableState.FAILED:
        return Reconciliation(
            str(work.name), ReconcileState.STOPPED, manifest.covered, reason=status.message or "no reason given"
        )
    if status is None or not status.has_applied(manifest):
        return Reconciliation(str(work.name), ReconcileState.PENDING, manifest.covered)
    last = manifest.next_number - 1
    request = ReconcileRequest(
        table=str(work.name),
        source=work.table.source,
        version=manifest.covered,
        keys=manifest.keys,
        columns=tuple((column.name, column.type) for column in manifest.columns),
        mirror=status.location,
        applied_number=last,
        last_landed_number=last,
    )
    return reconcile(work.spark(), request)
