"""Lag: a quiet source is not late."""

from __future__ import annotations

import time

from mirror_assets.pipeline.lag import pending_commits, table_lag
from mirror_assets.verify.timeliness import Lag, check_lag
from mirror_assets_tests.lab import Lab


def test_a_quiet_source_is_not_late_however_old() -> None:
    assert check_lag(Lag(5, 5, 0.0), 1).passed


def test_a_waiting_commit_is_late_after_the_limit() -> None:
    assert "version 5 has waited 61 s" in check_lag(Lag(7, 4, 61.0), 60).message
    assert check_lag(Lag(7, 4, 59.0), 60).passed
    assert check_lag(Lag(7, 4, 1e9), None).passed


def test_a_commit_from_the_future_warns_of_clocks_that_are_apart() -> None:
    told = check_lag(Lag(7, 7, 0.0, ahead_seconds=3600.0), 1)
    assert told.is_warning
    assert "version 7 is dated 3,600 s after this machine's clock" in told.message
    assert "correct the clock" in told.next_step
    assert check_lag(Lag(7, 7, 0.0, ahead_seconds=59.0), 1).passed
    assert "has waited" in check_lag(Lag(7, 4, 61.0, ahead_seconds=3600.0), 60).message


def test_the_lag_of_a_table_is_the_age_of_its_first_uncovered_commit(mirrored: Lab) -> None:
    assert table_lag(pending_commits(mirrored.context), time.time()).commits == 0
    mirrored.sql("INSERT INTO {t} VALUES (700, 'x', 1)", "INSERT INTO {t} VALUES (701, 'x', 1)")
    lag = table_lag(pending_commits(mirrored.context), time.time() + 100)
    assert lag.commits == 2
    assert 100 <= lag.seconds < 400
    assert lag.ahead_seconds == 0
    assert 3500 < table_lag(pending_commits(mirrored.context), time.time() - 3600).ahead_seconds <= 3600
