"""What is asked again, what is believed, and when nobody can tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from azure.core.exceptions import ServiceResponseError

from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError, StopError, UnknownOutcome
from mirror_assets.zones import PathChanged, PathExists, PathMissing
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets.zones.onelake.requests import Requests
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


def test_a_write_that_was_never_begun_ends_as_throttled() -> None:
    service = without_end(THROTTLED)
    with raises(RetryError, ErrorCode.STORE_THROTTLED, match="paused or overloaded"):
        service.write()


def test_a_read_ends_as_unavailable() -> None:
    with raises_row(STORE_UNAVAILABLE, match=r"repeatedly for 1[0-9][0-9] s"):
        without_end(BUSY).read()


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((404, "FilesystemNotFound"), (SettingError, ErrorCode.ITEM_MISSING), "copy the landing zone's URL"),
        (
            (401, "InvalidAuthenticationInfo"),
            (SettingError, ErrorCode.TOKEN_REFUSED),
            "InvalidAuthenticationInfo.*check the credential, the tenant",
        ),
        (
            (403, "AuthorizationPermissionMismatch"),
            (SettingError, ErrorCode.STORE_DENIED),
            "root/file .403 AuthorizationPermissionMismatch.*grant read and write",
        ),
        ((400, "UnsupportedHeader"), (StopError, ErrorCode.STORE_REFUSED), "doctor"),
    ],
)
def test_what_will_not_pass_says_at_once_what_to_do(answer: tuple[int, str], error: Expected, words: str) -> None:
    service = Service(answer)
    with raises(*error, match=words):
        service.write()
    assert service.requested == 1


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


@pytest.mark.parametrize("ask", [Service.read, Service.write])
@pytest.mark.parametrize("mistake", [TypeError("ours"), KeyError("ours"), AttributeError("ours"), ValueError("ours")])
def test_a_mistake_of_ours_is_not_asked_again(ask: Ask, mistake: Exception) -> None:
    service = Service(mistake, DONE)
    with pytest.raises(type(mistake), match="ours"):
        ask(service)
    assert service.requested == 1
    assert service.clock.slept == []
