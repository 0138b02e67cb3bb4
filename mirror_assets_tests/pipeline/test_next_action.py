"""Failures that are over: who looks at a healthy table sees none, and who mirrors it forgets them."""

from __future__ import annotations

import time

import pytest

from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.landing.failures import FailureRecord, read_failure, record_failure
from mirror_assets.landing.rebuild import RebuildStep, begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.liveness import now_ms
from mirror_assets.pipeline.next_action import Land, Rest, check_not_failing, next_action, running_rebuild, zone_state
from mirror_assets.pipeline.plan import no_boundaries, plan_table
from mirror_assets_tests.lab import TABLE, Lab

_OUTAGE = RetryError("the store did not answer", "run again", code=ErrorCode.STORE_UNAVAILABLE)


def recorded(lab: Lab) -> FailureRecord | None:
    return read_failure(lab.store, TABLE)


@pytest.fixture
def quiet(lab: Lab) -> Lab:
    """A table of which all has landed, and that a run could not look at for a moment."""
    lab.mirror()
    note_failure(lab.context, _OUTAGE, pytest.fail)
    return lab


def not_failing(lab: Lab) -> bool:
    return check_not_failing(lab.context, zone_state(lab.context), lambda: plan_table(lab.context, frozenset())).passed


def test_a_table_with_nothing_left_to_do_does_not_fail_and_looking_at_it_changes_nothing(quiet: Lab) -> None:
    assert not_failing(quiet)
    assert recorded(quiet) is not None, "who only looks writes nothing"


def test_the_next_run_forgets_a_failure_that_is_over(quiet: Lab) -> None:
    assert quiet.mirror() == []
    assert recorded(quiet) is None


def test_the_next_complete_look_of_a_scheduler_forgets_it(quiet: Lab) -> None:
    action = next_action(quiet.context, no_boundaries, time.time() + 7200)
    assert isinstance(action, Rest)
    assert recorded(quiet) is None


def test_a_failure_of_a_table_with_pending_commits_stands(quiet: Lab) -> None:
    quiet.change()
    assert not not_failing(quiet)
    assert isinstance(next_action(quiet.context, no_boundaries, time.time() + 7200), Land)
    assert recorded(quiet) is not None


def _rebuild_that_fails(lab: Lab, times: int) -> None:
    """A run needs a rebuild, and this many runs fail."""
    for n in range(times):
        because = "a data file is gone" if n == 0 else None
        message = "shop.orders: the file x.parquet is gone. Next: rebuild the table."
        record_failure(lab.store, TABLE, ErrorCode.DATA_FILE_MISSING, message, now_ms(), None, because)


def test_a_rebuild_that_fails_as_well_is_a_failing_table_from_the_second_failure_on(lab: Lab) -> None:
    lab.mirror()
    lab.change()
    _rebuild_that_fails(lab, 1)
    assert not_failing(lab), "it waits for its rebuild"
    _rebuild_that_fails(lab, 1)
    found = check_not_failing(lab.context, zone_state(lab.context), lambda: plan_table(lab.context, frozenset()))
    assert found.message == "2 runs of shop.orders failed: the rebuild fails as well: the file x.parquet is gone."
    assert found.next_step.startswith("restore the file, or repair the source")
    assert found.metadata["code"] == "data_file_missing"


def test_earlier_failures_are_not_those_of_a_rebuild_that_a_person_has_started(lab: Lab) -> None:
    lab.mirror()
    lab.change()
    for _ in range(3):
        record_failure(lab.store, TABLE, ErrorCode.CHECKS_FAILED, "a NULL key.", now_ms() - 60_000)
    drive(begin_rebuild(TABLE, None), lab.store)
    found = check_not_failing(lab.context, zone_state(lab.context), lambda: plan_table(lab.context, frozenset()))
    assert "the rebuild fails" not in found.message
    assert running_rebuild(lab.context, zone_state(lab.context), time.time()) is RebuildStep.STAGING
    record_failure(lab.store, TABLE, ErrorCode.CHECKS_FAILED, "a NULL key.", now_ms() + 1000)
    found = check_not_failing(lab.context, zone_state(lab.context), lambda: plan_table(lab.context, frozenset()))
    assert "the rebuild fails as well: a NULL key." in found.message
    assert running_rebuild(lab.context, zone_state(lab.context), time.time()) is None


def test_a_rebuild_whose_step_takes_hours_hides_no_lag(lab: Lab) -> None:
    lab.mirror()
    assert running_rebuild(lab.context, zone_state(lab.context), time.time()) is None
    drive(begin_rebuild(TABLE, None), lab.store)
    assert running_rebuild(lab.context, zone_state(lab.context), time.time() + 5 * 3600) is RebuildStep.STAGING
    assert running_rebuild(lab.context, zone_state(lab.context), time.time() + 7 * 3600) is None
