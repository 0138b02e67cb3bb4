"""Which rows a comparison reads: all, or of the files that changed since the stored equal result."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.control_file import read_control_file
from mirror_assets.landing.generations import Reconciled
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.reconcile_table import reconcile_changes
from mirror_assets.verify.reconciliation import ReconcileState, Reconciliation
from mirror_assets_tests.lab import TABLE, Lab


def _stored(lab: Lab) -> Reconciled | None:
    return drive(read_control_file(Reconciled, TABLE.reconciled), lab.store).record


def _reconcile(lab: Lab, *, scheduled: bool = True) -> Reconciliation:
    lab.replicator.poll()
    return reconcile_changes(lab.context, lab.replicator, scheduled=scheduled)


@pytest.mark.long(20)
def test_a_scheduled_comparison_reads_all_rows_once_a_week_and_else_what_changed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.verify.reconcile._MOST_CHANGED", 10)  # pays also in tables of one file
    lab = Lab(spark, tmp_path)
    lab.configure(defaults="slices: {max_commits: 20}")
    lab.create()
    lab.mirror()
    assert lab.is_equal
    assert _stored(lab) is None  # the command only reads
    first = _reconcile(lab)
    assert (first.state, first.is_full, first.source_rows) == (ReconcileState.EQUAL, True, 10)
    lab.sql("UPDATE {t} SET amount = 7 WHERE id = 1", "DELETE FROM {t} WHERE id = 2")
    lab.mirror()
    second = _reconcile(lab)
    assert (second.state, second.is_full, second.source_rows) == (ReconcileState.EQUAL, False, 9)
    stored = _stored(lab)
    assert stored is not None
    assert (stored.equal.version, stored.equal.rows) == (3, 9)
    assert _reconcile(lab, scheduled=False).is_full
    later = time.time_ns() + 7 * 24 * 3_600 * 10**9
    with monkeypatch.context() as patched:
        patched.setattr("mirror_assets.pipeline.reconcile_table.time.time_ns", lambda: later)
        assert _reconcile(lab).is_full
    lab.sql("ALTER TABLE {t} ADD COLUMN note STRING", "INSERT INTO {t} VALUES (20, 'x', 1, 'y')")
    lab.mirror()
    assert (third := _reconcile(lab)).is_full
    assert third.state is ReconcileState.EQUAL
