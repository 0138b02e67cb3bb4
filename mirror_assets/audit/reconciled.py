"""The reconciliation of mirror and source as a finding."""

from __future__ import annotations

from mirror_assets.audit.finding import CheckResult
from mirror_assets.replicator.reconciliation import DifferenceSample, ReconcileState, Reconciliation

_WAITS = "landing files wait for the replicator"


def check_reconciled(result: Reconciliation) -> CheckResult:
    """Fails on a difference and, naming it as waiting, while the mirror is behind or not there yet."""
    figures: dict[str, int | float | str] = {"state": result.state.value, "version": result.version}
    if result.source_rows is not None and result.mirror_rows is not None:
        figures |= {"source_rows": result.source_rows, "mirror_rows": result.mirror_rows, "seconds": result.seconds}
    return CheckResult("reconciled", _problems(result), figures)


def _problems(result: Reconciliation) -> tuple[str, ...]:
    if result.state is ReconcileState.EQUAL:
        return ()
    if result.state is ReconcileState.PENDING:
        return (_WAITS,)
    if result.state is ReconcileState.LOADING:
        return (result.reason,)
    if result.state is ReconcileState.STOPPED:
        return (f"the replicator has stopped the table: {result.reason}",)
    if result.state is ReconcileState.MISSING:
        return ("the mirror has no such table yet",)
    counts = f"{result.source_rows} rows in the source, {result.mirror_rows} in the mirror"
    columns = f"columns that differ: {', '.join(result.columns)}" if result.columns else "no column sum differs"
    return (counts, columns, *(shown(sample) for sample in result.samples))


def shown(sample: DifferenceSample) -> str:
    """A differing key in words."""
    key = ", ".join("NULL" if value is None else value for value in sample.key)
    columns = f" in {', '.join(sample.columns)}" if sample.columns else ""
    return f"key ({key}) {sample.side.value}{columns}"
