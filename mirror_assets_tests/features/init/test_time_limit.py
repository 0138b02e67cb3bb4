"""Requests that must not hold up the loading of definitions."""

from __future__ import annotations

from threading import Event

import pytest

from mirror_assets.errors import ErrorCode, MirrorError, StopError
from mirror_assets.features.init.time_limit import TimeLimit
from mirror_assets.source.errors import SOURCE_NOT_DELTA, SourceNotDelta


@pytest.mark.parametrize("limit", [TimeLimit(60), TimeLimit(None)])
def test_the_result_or_error_is_that_of_the_request(limit: TimeLimit) -> None:
    assert limit.call("the store", lambda: 7) == 7

    def fail() -> None:
        raise SOURCE_NOT_DELTA(uri="/lake/orders")

    with pytest.raises(SourceNotDelta):
        limit.call("the store", fail)


@pytest.mark.parametrize("limit", [TimeLimit(60), TimeLimit(None)])
def test_any_other_exception_becomes_an_error_with_a_code(limit: TimeLimit) -> None:
    def fail() -> None:
        raise KeyError("answer")

    with pytest.raises(StopError, match="the store can't be read: KeyError: 'answer'") as failed:
        limit.call("the store", fail)
    assert failed.value.code is ErrorCode.UNEXPECTED


def test_a_request_without_an_answer_ends_at_its_own_limit_at_that_of_all_and_before_the_spare_time() -> None:
    never = Event()
    try:
        for limit, at_most, spare in ((TimeLimit(60), 0.05, 0), (TimeLimit(0.05), 60, 0), (TimeLimit(60), 60, 60)):
            with pytest.raises(MirrorError, match="the store did not respond in time"):
                limit.call("the store", never.wait, at_most=at_most, spare=spare)
    finally:
        never.set()
