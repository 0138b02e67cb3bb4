"""What a scheduled comparison reads: all columns, a share of them, or nothing where neither table has changed."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.generations import Reconciled
from mirror_assets.landing.steps import drive, read_control_file
from mirror_assets.pipeline.reconcile_table import reconcile_in_turn
from mirror_assets.verify.reconciliation import ReconcileState, Reconciliation, Share, check_reconciled
from mirror_assets_tests.lab import TABLE, Lab

_WEEK_NS = 7 * 24 * 3_600 * 10**9


def _stored(lab: Lab) -> Reconciled | None:
    return drive(read_control_file(Reconciled, TABLE.reconciled), lab.store).record


def _reconcile(lab: Lab, *, scheduled: bool = True) -> Reconciliation:
    lab.replicator.poll()
    found = reconcile_in_turn(lab.context, lab.replicator, scheduled=scheduled)
    assert found.state is ReconcileState.EQUAL
    return found


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Lab:
    """A mirrored table with the key `id` and two more columns."""
    made = Lab(spark, tmp_path)
    made.configure(defaults="slices: {max_commits: 20}")
    made.create()
    made.mirror()
    return made


@pytest.mark.long(20)
def test_a_small_table_is_compared_whole_unless_nothing_has_changed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.is_equal
    assert _stored(lab) is None  # the command only reads
    first = _reconcile(lab)
    assert (first.read, first.source_rows) == ("all columns", 10)
    unchanged = _reconcile(lab)
    assert (unchanged.is_unchanged, unchanged.source_rows) == (True, 10)
    assert check_reconciled(unchanged).metadata["read"] == unchanged.read
    assert not _reconcile(lab, scheduled=False).is_unchanged
    later = time.time_ns() + _WEEK_NS
    with monkeypatch.context() as patched:
        patched.setattr("mirror_assets.pipeline.reconcile_table.time.time_ns", lambda: later)
        assert _reconcile(lab).read == "all columns"
    lab.sql("UPDATE {t} SET amount = 7 WHERE id = 1", "DELETE FROM {t} WHERE id = 2")
    lab.mirror()
    second = _reconcile(lab)
    assert (second.read, second.source_rows) == ("all columns", 9)
    stored = _stored(lab)
    assert stored is not None
    assert (stored.equal.version, stored.equal.rows) == (3, 9)
    lab.sql("ALTER TABLE {t} ADD COLUMN note STRING", "INSERT INTO {t} VALUES (20, 'x', 1, 'y')")
    lab.mirror()
    assert _reconcile(lab).source_rows == 10


@pytest.mark.long(20)
def test_shares_of_a_large_table_are_compared_in_turn(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_assets.verify.reconcile._LARGE_BYTES", 0)
    assert _reconcile(lab).share is None, "the first comparison reads all"
    assert _reconcile(lab).is_unchanged
    shares = []
    for amount in (1, 2, 3):
        lab.sql(f"UPDATE {{t}} SET amount = {amount} WHERE id = 1")
        lab.mirror()
        shares.append(_reconcile(lab).share)
    assert shares == [Share(1, 2), Share(2, 2), Share(1, 2)]
    # The last share at these versions completes them.
    assert [_reconcile(lab).read for _ in range(2)] == [
        "share 2 of 2 of the columns",
        "nothing: neither table has changed since the newest equal result",
    ]
    assert _reconcile(lab, scheduled=False).read == "all columns"


@pytest.mark.long(20)
def test_a_share_that_differs_is_compared_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the next share came first, the check would pass the next day."""
    monkeypatch.setattr("mirror_assets.verify.reconcile._LARGE_BYTES", 0)
    _reconcile(lab)
    status = lab.replicator.table(TABLE)
    assert status is not None
    lab.spark.sql(f"UPDATE delta.`{status.location}` SET name = 'other' WHERE id = 1")
    for _ in range(2):
        found = reconcile_in_turn(lab.context, lab.replicator, scheduled=True)
        assert (found.state, found.share, found.columns) == (ReconcileState.DIFFERENT, Share(1, 2), ("name",))


def test_a_source_made_again_with_equal_rows_is_outdated(lab: Lab) -> None:
    """With as many versions, it has the mirrored version; the planner has not seen it yet."""
    _reconcile(lab)
    shutil.rmtree(lab.uri)
    lab.create()
    found = reconcile_in_turn(lab.context, lab.replicator, scheduled=True)
    assert (found.state, found.equal_versions) == (ReconcileState.OUTDATED, None)
    assert "another table id" in check_reconciled(found).problems[0]
