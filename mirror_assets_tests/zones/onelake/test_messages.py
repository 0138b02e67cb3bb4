"""What OneLake's refusals, and Entra's, tell people to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets.zones.onelake.clients import open_clients
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.worlds.onelake import Drop, Fault, LoopbackItem, LoopbackOneLake, Moment, Operation, Reply
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.zones.onelake.wire import Clock, store_over
from mirror_assets_tests.zones.onelake.wire import Reply as WireReply

NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def item(onelake: LoopbackOneLake) -> LoopbackItem:
    return onelake.new_item()


@pytest.fixture
def store(onelake: LoopbackOneLake, item: LoopbackItem) -> OneLakeStore:
    return loopback_store(onelake, item, Clock().policy(limit_seconds=60.0))


def said(error: MirrorError, family: type[MirrorError], *words: str) -> None:
    """Fail unless the error is of the family, and its message has the words."""
    assert isinstance(error, family)
    for word in words:
        assert word in str(error)


@pytest.mark.parametrize("wrong", ["workspace", "item"])
def test_a_wrong_guid(onelake: LoopbackOneLake, item: LoopbackItem, wrong: str, tmp_path: Path) -> None:
    address = dataclasses.replace(OneLakeAddress.parse(item.url), **{wrong: NOBODY})
    store = OneLakeStore(open_clients(address, onelake.credential(), ca_bundle=onelake.ca), Clock().policy())
    with raises(SettingError, ErrorCode.ITEM_MISSING) as error:
        store.create("file", b"data")
    said(error.value, SettingError, NOBODY, "copy the landing zone's URL", "both GUIDs")
    (tmp_path / "large").write_bytes(b"x" * ((8 << 20) + 1))
    with raises(SettingError, ErrorCode.ITEM_MISSING):
        store.upload(tmp_path / "large", "file")


@pytest.mark.parametrize("code", ["PathNotFound", "ArtifactNotFound", "ItemNotFound", ""])
def test_a_deleted_item_is_not_a_missing_file(onelake: LoopbackOneLake, item: LoopbackItem, code: str) -> None:
    clock = Clock()
    store = loopback_store(onelake, item, clock.policy())
    etag = store.create("file", b"data")
    clock.now += 61
    onelake.faults.add(Fault(Reply(404, code), times=99))
    requests: list[Callable[[], object]] = [
        lambda: store.head("file"),
        lambda: store.read("file", 10),
        lambda: store.read_if_changed("file", etag, 10),
        lambda: store.list(""),
        lambda: store.list("folder"),
        lambda: store.folder_identity("folder"),
        lambda: store.create("other", b"data"),
        lambda: store.replace("file", b"data", etag),
        lambda: store.rename("file", "other", etag),
        lambda: store.delete("file"),
    ]
    for request in requests:
        with raises(SettingError, ErrorCode.ITEM_MISSING, match="mirrored database of .* was deleted") as error:
            request()
        said(error.value, SettingError, item.url, "restore it", "`mirror-assets run` loads all tables again")


def test_the_item_is_requested_only_if_nothing_was_found_for_a_minute(
    onelake: LoopbackOneLake, item: LoopbackItem
) -> None:
    clock = Clock()
    store = loopback_store(onelake, item, clock.policy())

    def requests_for_missing_file(path: str = "missing") -> int:
        onelake.log.reset()
        assert store.head(path) is None
        return len(onelake.log.storage)

    assert requests_for_missing_file("_leases/orders.json") == 1
    assert [requests_for_missing_file() for _ in range(3)] == [2, 1, 1]
    clock.now += 59
    assert requests_for_missing_file() == 1
    store.create("file", b"data")
    clock.now += 59
    assert requests_for_missing_file() == 1
    clock.now += 2
    assert requests_for_missing_file() == 2


@pytest.mark.parametrize(
    "reply",
    [
        Reply(429, "CapacityLimitExceeded", {"Retry-After": "9"}),
        Reply(430, "Throttled"),
        Reply(403, "CapacityLimitExceeded"),
    ],
)
def test_an_overloaded_capacity(onelake: LoopbackOneLake, store: OneLakeStore, reply: Reply) -> None:
    onelake.faults.add(Fault(reply, times=99))
    for ask in (lambda: store.create("file", b"data"), lambda: store.list("")):
        with raises(RetryError, ErrorCode.STORE_THROTTLED) as error:
            ask()
        said(error.value, RetryError, reply.code, "check in the portal whether the capacity is paused or overloaded")


def test_a_paused_capacity_is_named_at_once(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    clock = Clock()
    store = loopback_store(onelake, item, clock.policy())
    onelake.faults.add(Fault(Reply(403, "CapacityNotActive"), times=99))
    for ask in (lambda: store.create("file", b"data"), lambda: store.list(""), lambda: store.head("file")):
        with raises(RetryError, ErrorCode.STORE_THROTTLED) as error:
            ask()
        said(error.value, RetryError, "capacity of the workspace is paused (403 CapacityNotActive)", item.url)
        said(error.value, RetryError, "resume the capacity in the Azure portal", "mirror-assets fabric status")
    assert clock.slept == []


def test_an_unknown_refusal_is_quoted(onelake: LoopbackOneLake, store: OneLakeStore) -> None:
    message = b'<?xml version="1.0"?><Error><Code>Zonk</Code><Message>Why "not".\nRequestId:1</Message></Error>'
    reply = WireReply(403, {"x-ms-error-code": "Zonk", "Content-Type": "application/xml"}, message)
    with raises(SettingError, ErrorCode.STORE_DENIED) as error:
        store_over(lambda _: reply).create("file", b"data")
    said(error.value, SettingError, '/file is refused: OneLake answers 403 Zonk: "Why not". Next: ')
    onelake.faults.add(Fault(Reply(403, "Forbidden"), times=99))
    with raises(SettingError, ErrorCode.STORE_DENIED) as error:
        store.list("")
    said(error.value, SettingError, "too few permissions (403 Forbidden)", "role Contributor", "external to Fabric")


def test_a_wrong_secret(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    credential = onelake.credential(secret="planted-secret")  # noqa: S106 a wrong one
    clients = open_clients(OneLakeAddress.parse(item.url), credential, ca_bundle=onelake.ca)
    with raises(SettingError, ErrorCode.TOKEN_REFUSED) as error:
        OneLakeStore(clients, Clock().policy()).head("file")
    said(error.value, SettingError, "AADSTS7000215", "set AZURE_CLIENT_SECRET to the value of the client secret")
    assert "planted" not in str(error.value)


def test_an_authority_that_does_not_answer_is_asked_again(
    onelake: LoopbackOneLake, store: OneLakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azure.core.pipeline.transport._base.HttpTransport.sleep", lambda *_: None)
    asked_by_identity = 4
    onelake.faults.add(Fault(Drop(Moment.BEFORE), on=Operation.TOKEN, times=asked_by_identity))
    assert store.head("file") is None
    onelake.entra.forget_tokens()


def test_an_authority_that_is_down_is_no_wrong_setting(
    onelake: LoopbackOneLake, store: OneLakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azure.core.pipeline.transport._base.HttpTransport.sleep", lambda *_: None)
    onelake.faults.add(Fault(Reply(503, "ServerBusy"), on=Operation.TOKEN, times=999))
    with raises_row(STORE_UNAVAILABLE) as error:
        store.create("file", b"data")
    said(error.value, RetryError, "no token", "run again")


@pytest.mark.parametrize(
    "reply",
    [
        WireReply(400, {"x-ms-error-code": "UnsupportedRestVersion"}),
        WireReply(
            400,
            {"x-ms-error-code": "InvalidHeaderValue", "Content-Type": "application/xml"},
            b"<Error><Code>InvalidHeaderValue</Code><Message>The value for one of the HTTP headers is not in the "
            b"correct format.</Message><HeaderName>x-ms-version</HeaderName></Error>",
        ),
    ],
    ids=["files", "blobs"],
)
def test_a_version_that_onelake_does_not_speak(reply: WireReply) -> None:
    with raises(SettingError, ErrorCode.STORE_REFUSED) as error:
        store_over(lambda _: reply).read("file", 10)
    said(error.value, SettingError, "api_version", "such as 2021-06-08")


def test_a_version_that_the_sdk_does_not_speak(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    with raises(SettingError, ErrorCode.STORE_REFUSED, match="1999-01-01"):
        open_clients(OneLakeAddress.parse(item.url), onelake.credential(), "1999-01-01", onelake.ca)
    open_clients(OneLakeAddress.parse(item.url), onelake.credential(), "2021-06-08", onelake.ca)
