"""How long a request is asked again: what the service asks for is waited in full, and there is an end."""

from __future__ import annotations

from azure.core.exceptions import ServiceResponseError
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets.zones.onelake.requests import Requests, RetryPolicy
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.zones.onelake.wire import Clock

JITTERS = st.floats(0, 1, exclude_max=True)


@given(st.integers(0, 60), JITTERS)
def test_pauses_double_up_to_the_longest_within_the_jitters_bounds(attempt: int, jitter: float) -> None:
    policy = RetryPolicy(first_pause=0.5, longest_pause=20.0, jitter=lambda: jitter)
    whole = min(20.0, 0.5 * 2**attempt)
    assert whole / 2 <= policy.pause(attempt, None) <= whole


@given(st.integers(0, 60), st.floats(0, 3600), JITTERS)
def test_retry_after_is_waited_in_full_and_hardly_longer(attempt: int, requested: float, jitter: float) -> None:
    policy = RetryPolicy(longest_pause=20.0, jitter=lambda: jitter)
    assert requested <= policy.pause(attempt, requested) <= requested + 2.0


def test_publishers_that_were_refused_together_do_not_come_back_together() -> None:
    pauses = {RetryPolicy().pause(3, 1.0) for _ in range(20)}
    assert len(pauses) > 1


def ask_in_vain(clock: Clock, limit_seconds: float, meanwhile: float = 0.0) -> int:
    """How often a request is asked that never gets an answer; each try takes, or moves the clock by, `meanwhile`."""
    requested = 0

    def call() -> None:
        nonlocal requested
        requested += 1
        clock.now += meanwhile
        raise ServiceResponseError("aborted")

    with raises_row(STORE_UNAVAILABLE):
        Requests("root", clock.policy(limit_seconds)).read("file", call)
    return requested


@given(st.floats(0, 300))
def test_retries_wait_no_longer_than_the_limit(limit_seconds: float) -> None:
    clock = Clock()
    ask_in_vain(clock, limit_seconds)
    assert sum(clock.slept) <= limit_seconds


def test_tries_count_against_the_limit_too() -> None:
    assert ask_in_vain(Clock(), 120.0, meanwhile=60.0) == 2


def test_a_clock_that_jumps_ahead_ends_the_waiting() -> None:
    clock = Clock()
    assert ask_in_vain(clock, 120.0, meanwhile=3600.0) == 1
    assert clock.slept == []


def test_a_clock_that_jumps_back_does_not_make_it_endless() -> None:
    clock = Clock()
    ask_in_vain(clock, 120.0, meanwhile=-3600.0)
    assert sum(clock.slept) <= 120.0
