"""A clock that jumps back and forth: attempts are ordered wrongly and lag looks small, but nothing depends on it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from mirror_assets.landing.staged_parts import staged_slices
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.lag import pending_commits, table_lag
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.stage import stage_attempt
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
        plan = plan_table(lab.context)
        for _ in range(2):  # two runs die behind their checks, and each says it is the newest
            run_checks(lab.context, stage_attempt(lab.context, plan.slices[0], plan.position))
        assert len({record.attempt for record in staged_slices(lab.store, TABLE)}) >= 2
        for now in (jumps - 50 * _YEAR, jumps, jumps + 50 * _YEAR):
            assert table_lag(pending_commits(lab.context), now).seconds >= 0
        lab.mirror()
    assert len(lab.files) == 4
    assert lab.is_equal
