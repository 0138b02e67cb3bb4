"""Retention: told before a commit that waits can be gone, with the statement that keeps it. Lag: quiet is not late."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.pipeline.lag import pending_commits, table_lag
from mirror_assets.source.actions import Metadata
from mirror_assets.source.table_properties import Retention
from mirror_assets.verify.timeliness import Lag, ReadDeadline, check_lag, check_retention
from mirror_assets_tests.errors import raises
from mirror_assets_tests.lab import Lab

_DAY, _HOUR = 86_400, 3_600
_LOG, _FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"


def _deadline(age_days: float | None = 6.0, **configuration: str) -> ReadDeadline:
    properties = {f"delta.{name}": value for name, value in configuration.items()}
    now = 1_700_000_000.0
    return ReadDeadline(
        version=6,
        waits=True,
        committed=None if age_days is None else now - age_days * _DAY,
        retention=Retention.of("/lake/orders", Metadata("id", "{}", properties)),
        now=now,
        then="the table is rebuilt",
    )


def test_the_first_clock_to_run_out_is_the_deadline() -> None:
    assert _deadline().clock.name == _FILES
    assert _deadline().seconds_left == pytest.approx(_DAY)
    longer = _deadline(deletedFileRetentionDuration="interval 30 days", logRetentionDuration="interval 10 days")
    assert longer.clock.name == _LOG
    assert longer.seconds_left == pytest.approx(4 * _DAY)
    kept = _deadline(logRetentionDuration="interval 1 day", enableExpiredLogCleanup="false")
    assert kept.clock.name == _FILES


def test_a_commit_that_can_soon_not_be_read_fails_with_the_deadline_and_the_statement() -> None:
    result = check_retention(_deadline(), 2 * _DAY)
    assert "version 6 can be read until 2023-11-15 22:13:20 UTC, for 24.0 hours" in result.message
    assert f"SET TBLPROPERTIES ({_FILES} = 'interval 14 days')" in result.message
    assert check_retention(_deadline(), _DAY - _HOUR).passed
    assert "version 6 can be read until" in check_retention(_deadline(), _DAY - _HOUR).note
    assert check_retention(_deadline(), None).passed


def test_the_statement_keeps_the_log_at_least_as_long_as_the_files() -> None:
    """Delta refuses files that are kept for longer than the log."""
    (clause,) = [_deadline(age_days=40).statement.partition("TBLPROPERTIES ")[2]]
    assert clause == f"({_LOG} = 'interval 47 days', {_FILES} = 'interval 47 days')"
    # It does so even where the log is never cleaned.
    never_cleaned = _deadline(age_days=40, enableExpiredLogCleanup="false")
    assert f"{_LOG} = 'interval 47 days'" in never_cleaned.statement


def test_a_deadline_that_is_past_and_a_commit_that_is_gone() -> None:
    past = check_retention(_deadline(age_days=8), 1)
    assert "version 6 may be deleted since" in past.message
    assert past.metadata["seconds_left"] == 0
    gone = check_retention(_deadline(age_days=None), 1)
    assert "version 6 was deleted from the log: the table is rebuilt" in gone.message
    held = check_retention(replace(_deadline(age_days=None), then="the table is held"), 1)
    assert "the table is held" in held.message


def test_nothing_waiting_passes_and_says_what_the_next_commit_has() -> None:
    result = check_retention(replace(_deadline(age_days=None), waits=False), 30 * _DAY)
    assert result.passed
    assert result.note == f"no commit waits; the next one can be read for 7.0 days ({_FILES})"
    assert "seconds_left" not in result.metadata


def test_a_property_that_is_no_interval_is_named() -> None:
    with raises(
        SettingError, ErrorCode.SOURCE_UNFIT, match=f"{_LOG} of /lake/orders can't be read: 'soon' is not an interval"
    ):
        _deadline(logRetentionDuration="soon")


def test_a_waiting_commit_is_late_after_the_limit_and_a_quiet_source_never() -> None:
    assert check_lag(Lag(5, 5, 0.0), 1).passed
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
