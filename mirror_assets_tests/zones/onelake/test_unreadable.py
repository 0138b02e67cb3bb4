"""Answers of a real server, garbled on the way: asked for again. Mistakes of our own around a request: not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mirror_assets.errors import UnknownOutcome
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets.zones.onelake import onelake_store as store
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.requests import raised_by_sdk
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.worlds.onelake import Action, CutBody, Fault, Garble, LoopbackItem, LoopbackOneLake, Operation
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.zones.onelake.wire import Clock

DATA = b"0123456789"


@pytest.fixture
def item(onelake: LoopbackOneLake) -> LoopbackItem:
    item = onelake.new_item()
    item.write("a/file", DATA)
    return item


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def zone(onelake: LoopbackOneLake, item: LoopbackItem, clock: Clock) -> OneLakeStore:
    onelake.log.reset()
    return loopback_store(onelake, item, clock.policy())


HEADS: dict[str, Action] = {
    "no date": Garble({"Last-Modified": "yesterday"}),
    "no creation time": Garble({"x-ms-creation-time": "yesterday"}),
    "no kind of blob": Garble({"x-ms-blob-type": "garbled"}),
}
LISTINGS: dict[str, Action] = {
    "cut": CutBody(),
    "cut, and nobody says so": Garble(body=b'{"paths":[{"name":"x","conte'),
    "no text": Garble(body=b"\x86\xff"),
    "nothing": Garble(body=b""),
    "a page": Garble(body=b"<html>"),
    "no object": Garble(body=b"[1]"),
    "no size": Garble(body=b'{"paths":[{"name":"x","contentLength":"many"}]}'),
}
READS: dict[str, Action] = {
    "cut": CutBody(),
    "no range": Garble({"Content-Range": "bytes"}),
    "no size": Garble({"Content-Range": "bytes 0-9/x"}),
    "no date": Garble({"Last-Modified": "yesterday"}),
}


def cases(operation: Operation, actions: dict[str, Action], ask: Callable[[OneLakeStore], object]) -> list[object]:
    return [pytest.param(operation, action, ask, id=f"{operation.value}-{name}") for name, action in actions.items()]


@pytest.mark.parametrize(
    ("operation", "action", "ask"),
    [
        *cases(Operation.HEAD, HEADS, lambda zone: zone.head("a/file")),
        *cases(Operation.LIST, LISTINGS, lambda zone: zone.list("a")),
        *cases(Operation.READ, READS, lambda zone: zone.read("a/file", 100)),
    ],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again(
    onelake: LoopbackOneLake,
    zone: OneLakeStore,
    operation: Operation,
    action: Action,
    ask: Callable[[OneLakeStore], object],
) -> None:
    right = ask(zone)
    onelake.faults.add(Fault(action, on=operation))
    assert ask(zone) == right
    assert onelake.log.counts()[operation] == 3


def test_a_write_whose_answer_cannot_be_read_is_read_back(onelake: LoopbackOneLake, zone: OneLakeStore) -> None:
    garbled = Garble({"Last-Modified": "yesterday"})
    onelake.faults.add(Fault(garbled, on=Operation.PUT_BLOB), Fault(garbled, on=Operation.RENAME))
    etag = zone.create("a/new", DATA)
    assert zone.read("a/new", 100).etag == etag
    with pytest.raises(UnknownOutcome):
        zone.rename("a/new", "a/target", etag)
    assert zone.read("a/target", 100).etag == etag


@pytest.mark.parametrize(
    "line", [b"{}", b'{"name":"x"}', b'{"name":"x","contentLength":"3"}', b'{"isDirectory":"true"}']
)
def test_a_listing_that_lacks_what_is_always_said(onelake: LoopbackOneLake, zone: OneLakeStore, line: bytes) -> None:
    onelake.faults.add(Fault(Garble(body=b'{"paths":[%s]}' % line), on=Operation.LIST))
    with raises_row(STORE_UNAVAILABLE, match="no name, size or ETag"):
        zone.list("a")


@pytest.mark.parametrize("mistake", [TypeError, KeyError, AttributeError, IndexError, ValueError])
def test_a_mistake_in_our_code_behind_the_answer_is_no_outage(
    onelake: LoopbackOneLake,
    zone: OneLakeStore,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    mistake: type[Exception],
) -> None:
    """The first lines behind the SDK's answer, within the call that is asked again."""

    def stumble(*_: object) -> str:
        raise mistake("ours")

    monkeypatch.setattr(store, "ByteRange", stumble)
    with pytest.raises(mistake, match="ours"):
        zone.read("a/file", 100)
    assert clock.slept == []
    assert onelake.log.counts() == {Operation.READ: 1}


def test_what_the_sdk_has_no_part_in_is_not_the_sdks() -> None:
    """An error without any way, and one from the standard library alone, are not the SDK's either."""
    assert not raised_by_sdk(TypeError())
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("x")
    assert not raised_by_sdk(raised.value)
