"""Reconciles a table: mirror against source at the covered version."""

from __future__ import annotations

from mirror_assets.config import Problem
from mirror_assets.fabric.monitoring import Mirror, TableState
from mirror_assets.landing.format import Manifest, SliceKind, load
from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.work import TableWork
from mirror_assets.replicator.reconcile import reconcile
from mirror_assets.replicator.reconciliation import ReconcileRequest, ReconcileState, Reconciliation
from mirror_assets.storage import Store
from mirror_assets.storage.credentials import CredentialKind

_NO_IDENTITY = (
    "Spark can't read the mirror with the credential `default`; name client_secret, managed_identity or "
    "workload_identity"
)


def reconcile_table(work: TableWork, mirror: Mirror) -> Reconciliation:
    """Whether the mirror is the source at the covered version; pending while files wait, missing before the first.

    Stopped while the replicator refuses to go on: then no file is waiting for anything but a person. Loading while a
    snapshot has not landed whole: then there is no version that the mirror could be equal to. Of a mirror that began
    without a snapshot only the rows that it has are compared: what it was given before is not known.

    Raises CoveredVersionGone, SourceUnreadable and MirrorUnreadable, and ConfigInvalid for a mirror that Spark can't
    read.
    """
    manifest, status = work.manifest(), mirror.table(work.name)
    if manifest is None:
        why = f"nothing of it has landed: run `mirror-assets run --table {work.name}` first"
        return Reconciliation(str(work.name), ReconcileState.MISSING, version=-1, reason=why)
    if status is not None and status.state is TableState.FAILED:
        return Reconciliation(
            str(work.name), ReconcileState.STOPPED, manifest.covered, reason=status.message or "no reason given"
        )
    if manifest.loading is not None:
        return Reconciliation(str(work.name), ReconcileState.LOADING, version=-1, reason=str(manifest.loading))
    if status is None or not status.has_applied(manifest):
        return Reconciliation(str(work.name), ReconcileState.PENDING, manifest.covered)
    _require_credential(work)
    request = ReconcileRequest(
        table=str(work.name),
        source=work.table.source,
        version=manifest.covered,
        keys=manifest.keys,
        columns=tuple((column.name, column.type) for column in manifest.live_columns),
        mirror=status.location,
        applied_number=manifest.next_number - 1,
        last_landed_number=manifest.next_number - 1,
        since=first_landed(work.store, work.name, manifest),
    )
    return reconcile(work.spark(), request)


def first_landed(store: Store, table: TableName, manifest: Manifest) -> int | None:
    """The first version that landed in the manifest's life, where that began without a snapshot; else None."""
    path = table.history(manifest.life, 1)
    kept = load(store, Manifest, path)
    begun = kept[0] if kept else manifest
    return begun.covered + 1 if begun.generation == 1 and begun.kind is SliceKind.START else None


def _require_credential(work: TableWork) -> None:
    fabric = work.config.mirror.fabric
    if fabric is not None and fabric.credential is CredentialKind.DEFAULT:
        raise work.config.invalid((Problem("mirror.fabric.credential", _NO_IDENTITY),))
