"""A clock that jumps back and forth: attempts are ordered wrongly and lag looks small, but nothing depends on it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from mirror_assets.landing.parts import staged_slices
from mirror_assets.mirroring.compare import reconcile_table
from mirror_assets.mirroring.judge import judge_slice
from mirror_assets.mirroring.lag import table_lag
from mirror_assets.mirroring.planning import plan_table
from mirror_assets.mirroring.stage import stage_slice
from mirror_assets.mirroring.uncovered import look
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import TABLE, Lab

_YEAR = 365 * 24 * 3600


@pytest.fixture
def jumps(monkeypatch: pytest.MonkeyPatch) -> Iterator[float]:
    """Each question is answered with another year, earlier and later than the one before in turn."""
    real, years = time.time, itertools.cycle((30, -40, 10, -55, 25))

    def now() -> float:
        return real() + next(years) * _YEAR

    monkeypatch.setattr(time, "time", now)
    monkeypatch.setattr(time, "time_ns", lambda: int(now() * 1e9))
    yield real()
    monkeypatch.undo()


def test_every_slice_lands_once_under_a_clock_that_jumps(lab: Lab, jumps: float) -> None:
    lab.mirror()
    for step in range(3):
        lab.sql(f"UPDATE {{t}} SET amount = {step} WHERE id < 5")
        plan = plan_table(lab.work)
        for _ in range(2):  # two runs die behind their checks, and each says it is the newest
            judge_slice(lab.work, stage_slice(lab.work, plan.slices[0], plan.footing))
        assert len({record.attempt for record in staged_slices(lab.store, TABLE)}) >= 2
        for now in (jumps - 50 * _YEAR, jumps, jumps + 50 * _YEAR):
            assert table_lag(look(lab.work), now).seconds >= 0
        lab.mirror()
    assert len(lab.files) == 4
    lab.replicator.poll()
    assert reconcile_table(lab.work, lab.replicator).state is ReconcileState.EQUAL
