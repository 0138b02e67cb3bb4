"""Whom we trust: a server whose certificate is not signed by a known authority gets no request, and no retry."""

from __future__ import annotations

from pathlib import Path

import pytest
from urllib3.util import connection

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.zones.onelake.clients import open_clients
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets_tests.errors import raises
from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake
from mirror_assets_tests.worlds.onelake.certificates import Authority
from mirror_assets_tests.zones.onelake.wire import Clock


@pytest.fixture
def item(onelake: LoopbackOneLake) -> LoopbackItem:
    """An item of a server that only its own authority vouches for; nothing in the log."""
    made = onelake.new_item()
    onelake.log.reset()
    return made


def store_that_trusts(onelake: LoopbackOneLake, address: OneLakeAddress, ca: Path | None, clock: Clock) -> OneLakeStore:
    return OneLakeStore(open_clients(address, onelake.credential(), ca_bundle=ca), clock.policy())


@pytest.mark.parametrize("another", [True, False], ids=["another authority", "the usual authorities"])
def test_a_server_with_an_untrusted_certificate_is_refused_at_once(
    onelake: LoopbackOneLake, item: LoopbackItem, tmp_path: Path, another: bool
) -> None:
    ca = Authority(tmp_path).ca if another else None
    clock = Clock()
    with raises(SettingError, ErrorCode.CERTIFICATE_REFUSED, match="ca_bundle") as error:
        store_that_trusts(onelake, OneLakeAddress.parse(item.url), ca, clock).create("file", b"data")
    assert "can't be disabled" in str(error.value)
    assert clock.slept == []
    assert onelake.log.storage == ()


def test_a_certificate_for_another_host_is_refused(
    onelake: LoopbackOneLake, item: LoopbackItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = onelake.url.rpartition(":")[2]
    elsewhere = OneLakeAddress(item.workspace, item.guid, f"https://127.0.0.2:{port}")
    connect = connection.create_connection
    monkeypatch.setattr(
        connection,
        "create_connection",
        lambda address, *options, **more: connect(("127.0.0.1", address[1]), *options, **more),
    )
    with raises(SettingError, ErrorCode.CERTIFICATE_REFUSED, match=r"not valid for '127\.0\.0\.2'"):
        store_that_trusts(onelake, elsewhere, onelake.ca, Clock()).head("file")


def test_the_authority_that_was_named_is_trusted(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    store = store_that_trusts(onelake, OneLakeAddress.parse(item.url), onelake.ca, Clock())
    store.create("file", b"data")
    assert item.read("file") == b"data"
