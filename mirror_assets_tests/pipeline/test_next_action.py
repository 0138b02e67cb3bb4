"""Failures that are over: who looks at a healthy table sees none, and who mirrors it forgets them."""

from __future__ import annotations

import time

import pytest

from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.landing.failures import FailureRecord, read_failure
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.next_action import Land, Rest, check_not_failing, next_action
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
    return check_not_failing(lab.context, lambda: plan_table(lab.context, frozenset())).passed


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
