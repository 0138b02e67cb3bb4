"""What every answer means, and that no answer whatsoever makes the store raise anything but an error of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.identity import CredentialUnavailableError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_assets.errors import MirrorError
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.requests import ErrorAnswer, Meaning, answer_of
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.zones.onelake.wire import TOKEN, Clock, Reply, refused, store_over

IDENTITY = "0x1-20250101000000"
REQUESTS: dict[str, Callable[[OneLakeStore], object]] = {
    "head": lambda store: store.head("a/file"),
    "list": lambda store: store.list("a"),
    "identity": lambda store: store.folder_identity("a"),
    "read": lambda store: store.read("a/file", 100),
    "open": lambda store: store.open("a/file").read(),
    "create": lambda store: store.create("a/file", b"data"),
    "replace": lambda store: store.replace("a/file", b"data", "0x1"),
    "rename": lambda store: store.rename("a/file", "a/other", "0x1"),
    "delete": lambda store: store.delete("a/file"),
    "delete tree": lambda store: store.delete_tree("a", IDENTITY),
    "make folder": lambda store: store.make_folder("a"),
    "upload": lambda store: store.upload(Path(__file__), "a/file"),
}


def said(status: int, code: str = "", headers: dict[str, str] | None = None) -> ErrorAnswer:
    return answer_of(refused(status, code, headers))


@pytest.mark.parametrize(
    ("status", "code", "meaning"),
    [
        (404, "PathNotFound", Meaning.MISSING),
        (404, "BlobNotFound", Meaning.MISSING),
        (404, "SourcePathNotFound", Meaning.MISSING),
        (404, "RenameDestinationParentPathNotFound", Meaning.MISSING),
        (404, "FilesystemNotFound", Meaning.NO_ITEM),
        (404, "ContainerNotFound", Meaning.NO_ITEM),
        (404, "ArtifactNotFound", Meaning.NO_ITEM),
        (404, "ItemNotFound", Meaning.NO_ITEM),
        (409, "PathAlreadyExists", Meaning.EXISTS),
        (409, "BlobAlreadyExists", Meaning.EXISTS),
        (409, "DestinationPathIsBeingDeleted", Meaning.PASSING),
        (412, "ConditionNotMet", Meaning.CONDITION),
        (412, "SourceConditionNotMet", Meaning.CONDITION),
        (401, "InvalidAuthenticationInfo", Meaning.NO_TOKEN),
        (403, "AuthorizationPermissionMismatch", Meaning.DENIED),
        (403, "CapacityLimitExceeded", Meaning.THROTTLED),
        (403, "CapacityNotActive", Meaning.PAUSED),
        (503, "CapacityPaused", Meaning.PAUSED),
        (429, "", Meaning.THROTTLED),
        (430, "RequestRateTooLarge", Meaning.THROTTLED),
        (408, "", Meaning.PASSING),
        (500, "InternalError", Meaning.PASSING),
        (502, "", Meaning.PASSING),
        (503, "ServerBusy", Meaning.PASSING),
        (504, "", Meaning.PASSING),
        (400, "UnsupportedRestVersion", Meaning.VERSION),
        (400, "UnsupportedHeader", Meaning.REFUSED),
        (400, "FriendlyNameSupportDisabled", Meaning.ADDRESS),
        (405, "", Meaning.REFUSED),
        (416, "InvalidRange", Meaning.REFUSED),
        (501, "NotImplemented", Meaning.REFUSED),
        (304, "", Meaning.REFUSED),
    ],
)
def test_each_status_and_code_has_a_meaning(status: int, code: str, meaning: Meaning) -> None:
    assert said(status, code) == ErrorAnswer(meaning, f"{status} {code}".strip())


@pytest.mark.parametrize(
    "error",
    [
        ServiceRequestError("no route"),
        ServiceResponseError("aborted"),
        ServiceResponseTimeoutError("slow"),
        IncompleteReadError("half"),
        DecodeError("no JSON"),
        AzureError("something else"),
        TypeError("can't add NoneType and str"),
        ValueError("no number"),
    ],
)
def test_no_answer_or_one_that_cannot_be_read_may_have_worked(error: Exception) -> None:
    answer = answer_of(error)
    assert answer.meaning is Meaning.PASSING
    assert answer.is_passing
    assert answer.may_have_worked


@pytest.mark.parametrize("status", [200, 201, 206])
def test_a_success_that_cannot_be_read_may_have_worked(status: int) -> None:
    assert said(status) == ErrorAnswer(Meaning.PASSING, f"{status}, but an answer that can't be read")


def test_what_was_throttled_or_had_no_token_was_never_begun() -> None:
    for meaning in (Meaning.THROTTLED, Meaning.TOKEN_LATER):
        assert ErrorAnswer(meaning, "").is_passing
        assert not ErrorAnswer(meaning, "").may_have_worked


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "nan"}, 0.0),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "7", "x-ms-retry-after-ms": "1500"}, 7.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_what_the_service_says_about_waiting_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert said(429, headers=headers).retry_after == seconds


def caused(error: ClientAuthenticationError, cause: Exception) -> ClientAuthenticationError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (ClientAuthenticationError("AADSTS7000215: Invalid client secret provided."), Meaning.NO_TOKEN),
        (CredentialUnavailableError("no managed identity endpoint found"), Meaning.NO_TOKEN),
        (caused(CredentialUnavailableError("none of them"), ServiceRequestError("no route")), Meaning.NO_TOKEN),
        (caused(ClientAuthenticationError("failed"), ServiceRequestError("no route")), Meaning.TOKEN_LATER),
        (caused(ClientAuthenticationError("failed"), IncompleteReadError("half")), Meaning.TOKEN_LATER),
        (ClientAuthenticationError("Authentication failed: HTTP Error: 503"), Meaning.TOKEN_LATER),
        (caused(ClientAuthenticationError("failed"), ValueError("HTTP status: 429, Error")), Meaning.TOKEN_LATER),
        (caused(ClientAuthenticationError("failed"), ValueError("HTTP status: 400, Error")), Meaning.NO_TOKEN),
        (ClientAuthenticationError(response=refused(401).response), Meaning.NO_TOKEN),
    ],
    ids=str,
)
def test_an_authority_that_fails_is_not_one_that_refuses(error: ClientAuthenticationError, meaning: Meaning) -> None:
    assert answer_of(error).meaning is meaning


def test_a_text_that_is_no_code_is_not_shown() -> None:
    assert said(418, "Bearer eyJ0eXAi\n<b>").code == "418"
    assert said(418, "x" * 61).code == "418"


BODIES = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda value: json.dumps(value).encode(),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.dictionaries(st.sampled_from(["error", "code", "message", "paths", "name"]), inner)
                | st.lists(inner, max_size=2)
            ),
            max_leaves=5,
        ),
    ),
    st.sampled_from(
        [b"<Error><Code>X</Code></Error>", b"<Error/>", b"<html>", b'{"error":{"code":"X"}}', b'{"paths":[{}]}']
    ),
)
CODES = st.sampled_from(["", "PathNotFound", "ConditionNotMet", "BlobNotFound", "InvalidHeaderValue", "X", TOKEN])
TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "x-ms-error-code": CODES,
        "Content-Type": st.sampled_from(["application/json", "application/xml", "text/html", "x"]),
        "ETag": TEXTS,
        "Last-Modified": TEXTS | st.just("Wed, 01 Jan 2025 00:00:00 GMT"),
        "Content-Length": st.integers(-1, 70).map(str) | TEXTS,
        "Content-Range": TEXTS | st.just("bytes 0-3/4"),
        "Retry-After": TEXTS | st.integers(0, 500).map(str),
        "x-ms-creation-time": TEXTS,
        "x-ms-blob-type": TEXTS,
        "x-ms-meta-hdi_isfolder": st.just("true"),
        "x-ms-continuation": TEXTS,
        "WWW-Authenticate": TEXTS | st.just("Bearer authorization_uri=https://a/b resource_id=https://c"),
        "Location": TEXTS,
    },
)
STATUSES = st.sampled_from([200, 201, 202, 206, 304, 400, 401, 403, 404, 409, 412, 416, 429, 500, 503]) | st.integers(
    200, 599
)
REPLIES = st.lists(st.builds(Reply, STATUSES, HEADERS, BODIES), min_size=1, max_size=6)


@pytest.mark.parametrize("name", REQUESTS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(replies=REPLIES)
def test_whatever_is_answered_only_errors_of_ours_come_out_and_no_token(name: str, replies: list[Reply]) -> None:
    left = iter(replies)
    store = store_over(lambda _: next(left, Reply(500)), Clock().policy(limit_seconds=2.0))
    raised: MirrorError | None = None
    try:
        REQUESTS[name](store)
    except MirrorError as error:
        raised = error
    assert TOKEN not in f"{raised} {raised and vars(raised)}"


def test_a_folder_of_no_age_is_an_answer_to_ask_for_again() -> None:
    store = store_over(lambda _: Reply(200, {"x-ms-meta-hdi_isfolder": "true"}), Clock().policy(limit_seconds=2.0))
    with raises_row(STORE_UNAVAILABLE, match="when the folder was created"):
        store.folder_identity("a")
