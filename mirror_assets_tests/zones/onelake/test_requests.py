"""What is asked again, what is believed, and when nobody can tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from azure.core.exceptions import ServiceResponseError
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError, StopError, UnknownOutcome
from mirror_assets.zones import PathChanged, PathExists, PathMissing
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets.zones.onelake.requests import Requests, RetryPolicy
from mirror_assets_tests.errors import Expected, raises, raises_row
from mirror_assets_tests.zones.onelake.wire import Clock, Reply, refused, store_over

BUSY = (503, "ServerBusy")
THROTTLED = (429, "TooManyRequests")
DONE = (200, "")


def unreadable() -> Exception:
    """What the SDK raises over an answer whose headers are no headers: no error of its own, but from its own code."""
    client = store_over(lambda _: Reply(200, {"x-ms-blob-type": "garbled"}))._clients.blob("file")
    with pytest.raises(ValueError, match="BlobType") as raised:
        client.get_blob_properties()
    return raised.value


CONFLICTS = [
    ((404, "PathNotFound"), PathMissing),
    ((409, "PathAlreadyExists"), PathExists),
    ((412, "ConditionNotMet"), PathChanged),
    ((412, "SourceConditionNotMet"), PathChanged),
]


class Service:
    """Answers one request after another as it was told, and no more after that."""

    def __init__(self, *answers: tuple[int, str] | Exception, clock: Clock | None = None) -> None:
        self._answers = iter(answers)
        self.clock = clock or Clock()
        self.requested = 0

    def __call__(self) -> str:
        self.requested += 1
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        if answer[0] >= 300:
            raise refused(*answer)
        return "done"

    def read(self) -> str:
        return Requests("root", self.clock.policy()).read("file", self)

    def write(self) -> str:
        return Requests("root", self.clock.policy()).write("file", self)


Ask = Callable[[Service], str]


@pytest.mark.parametrize("ask", [Service.read, Service.write])
@pytest.mark.parametrize(
    "first", [BUSY, THROTTLED, (408, ""), (500, ""), ServiceResponseError("aborted"), unreadable()]
)
def test_what_may_pass_is_asked_again(ask: Ask, first: tuple[int, str] | Exception) -> None:
    service = Service(first, first, DONE)
    assert ask(service) == "done"
    assert service.requested == 3
    assert len(service.clock.slept) == 2


@pytest.mark.parametrize("ask", [Service.read, Service.write])
@pytest.mark.parametrize(("answer", "error"), CONFLICTS)
def test_a_conflict_at_the_first_try_is_an_answer(ask: Ask, answer: tuple[int, str], error: type[MirrorError]) -> None:
    service = Service(answer)
    with pytest.raises(error):
        ask(service)
    assert service.requested == 1


@pytest.mark.parametrize("lost", [BUSY, (408, ""), (500, ""), ServiceResponseError("aborted"), unreadable()])
@pytest.mark.parametrize(("answer", "error"), CONFLICTS)
def test_a_conflict_behind_a_lost_reply_may_be_with_ourselves(
    lost: tuple[int, str] | Exception, answer: tuple[int, str], error: type[MirrorError]
) -> None:
    with pytest.raises(UnknownOutcome):
        Service(lost, answer).write()
    with pytest.raises(UnknownOutcome):
        Service(lost, THROTTLED, answer).write()
    with pytest.raises(error):
        Service(lost, answer).read()


@pytest.mark.parametrize(("answer", "error"), CONFLICTS)
def test_a_conflict_behind_a_refusal_to_begin_is_an_answer(answer: tuple[int, str], error: type[MirrorError]) -> None:
    with pytest.raises(error):
        Service(THROTTLED, (403, "CapacityLimitExceeded"), answer).write()


def without_end(*answers: tuple[int, str]) -> Service:
    return Service(*answers * 1_000)


def test_a_write_that_may_have_worked_ends_unknown_whatever_came_last() -> None:
    for service in (without_end(BUSY), without_end(THROTTLED, BUSY)):
        with pytest.raises(UnknownOutcome):
            service.write()


def test_a_read_ends_as_unavailable() -> None:
    with raises_row(STORE_UNAVAILABLE, match=r"repeatedly for 1[0-9][0-9] s"):
        without_end(BUSY).read()


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (
            (401, "InvalidAuthenticationInfo"),
            (SettingError, ErrorCode.TOKEN_REFUSED),
            "InvalidAuthenticationInfo.*check the credential, the tenant",
        ),
        (
            (403, "AuthorizationPermissionMismatch"),
            (SettingError, ErrorCode.STORE_DENIED),
            "access to root is refused.*403 AuthorizationPermissionMismatch.*role Contributor",
        ),
        (
            (403, "RequestDeniedByInboundPolicy"),
            (SettingError, ErrorCode.STORE_DENIED),
            r"403 RequestDeniedByInboundPolicy.*private link.*z<its first two characters>\.dfs\.fabric",
        ),
        ((403, "AuthorizationFailure"), (SettingError, ErrorCode.STORE_DENIED), "403 AuthorizationFailure.*firewall"),
        ((403, "PrincipalTypeNotSupported"), (SettingError, ErrorCode.STORE_DENIED), "tenant setting.*Service princ"),
        ((403, "NeverHeardOf"), (SettingError, ErrorCode.STORE_DENIED), "root/file is refused: OneLake answers 403 N"),
        ((403, ""), (SettingError, ErrorCode.STORE_DENIED), "root/file is refused: OneLake answers 403. Next"),
        ((403, "CapacityNotActive"), (RetryError, ErrorCode.STORE_THROTTLED), "paused.*resume the capacity"),
        ((503, "CapacityNotActive"), (RetryError, ErrorCode.STORE_THROTTLED), "paused.*resume the capacity"),
        (
            (400, "FriendlyNameSupportDisabled"),
            (SettingError, ErrorCode.STORE_REFUSED),
            "400 FriendlyNameSupportDisabled.*use the GUIDs of workspace and item",
        ),
        ((400, "UnsupportedHeader"), (StopError, ErrorCode.STORE_REFUSED), "doctor"),
    ],
)
def test_what_will_not_pass_says_at_once_what_to_do(answer: tuple[int, str], error: Expected, words: str) -> None:
    service = Service(answer)
    with raises(*error, match=words):
        service.write()
    assert service.requested == 1


def test_a_pause_of_the_capacity_after_a_lost_reply_leaves_the_outcome_unknown() -> None:
    with pytest.raises(UnknownOutcome):
        Service(BUSY, (403, "CapacityNotActive")).write()
    with raises(RetryError, ErrorCode.STORE_THROTTLED, match="paused"):
        Service(BUSY, (403, "CapacityNotActive")).read()


def test_retry_after_is_obeyed() -> None:
    clock = Clock()
    refusal = refused(429, "", {"Retry-After": "30"})
    assert Service(refusal, refusal, DONE, clock=clock).write() == "done"
    assert all(30 <= pause <= 32 for pause in clock.slept)


def test_a_pause_longer_than_the_limit_is_not_begun() -> None:
    clock = Clock()
    refusal = refused(429, "", {"Retry-After": "3600"})
    with raises(RetryError, ErrorCode.STORE_THROTTLED):
        Service(refusal, clock=clock).write()
    assert clock.slept == []


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


def test_a_clock_that_jumps_back_does_not_make_it_endless() -> None:
    clock = Clock()
    ask_in_vain(clock, 120.0, meanwhile=-3600.0)
    assert sum(clock.slept) <= 120.0
