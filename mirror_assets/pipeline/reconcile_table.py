"""Reconciles a table: mirror against source at the covered version."""

from __future__ import annotations

from mirror_assets.config import Problem
from mirror_assets.fabric.monitoring import Mirror, TableState
from mirror_assets.landing.control_file import read_control_file
from mirror_assets.landing.format import Manifest, SliceKind
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.storage import Store
from mirror_assets.storage.credentials import CredentialKind
from mirror_assets.verify.reconcile import reconcile
from mirror_assets.verify.reconciliation import ReconcileRequest, ReconcileState, Reconciliation

_NO_IDENTITY = (
    "Spark can't read the mirror with the credential `default`; name client_secret, managed_identity or "
    "workload_identity"
)


def reconcile_table(context: TableContext, mirror: Mirror) -> Reconciliation:
    """Compare the mirror with the source at the covered version.

    The state is pending while landing files wait to be applied, missing before the first slice, stopped while the
    replicator has stopped the table, loading while a snapshot has landed in part. Of a mirror that began without a
    snapshot only the rows that it has are compared.

    Raises what `reconcile` raises, and ConfigInvalid for a mirror that Spark can't read.
    """
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
    fabric = context.config.mirror.fabric
    if fabric is not None and fabric.credential is CredentialKind.DEFAULT:
        raise context.config.invalid((Problem("mirror.fabric.credential", _NO_IDENTITY),))
    request = ReconcileRequest(
        table=str(context.name),
        source=context.source,
        version=manifest.covered,
        keys=manifest.keys,
        columns=tuple((column.name, column.type) for column in manifest.live_columns),
        mirror=status.location,
        since=first_landed(context.store, context.name, manifest),
    )
    return reconcile(context.spark(), request)


def first_landed(store: Store, table: TableName, manifest: Manifest) -> int | None:
    """Return the first version that landed in the manifest's epoch, if it began without a snapshot; else None."""
    begun = drive(read_control_file(Manifest, table.history(manifest.epoch, 1)), store).record or manifest
    return begun.covered + 1 if begun.generation == 1 and begun.kind is SliceKind.START else None
