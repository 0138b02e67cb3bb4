"""`_metadata.json` and `_partnerEvents.json`: made once, compared, never changed; keys may be added where none were."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.errors import METADATA_DIFFERS, TABLE_DROPPED
from mirror_assets.landing.metadata import declared_keys, ensure_metadata, ensure_partner_events, metadata_bytes
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.staging import TABLE

LIMIT = 1 << 20


@pytest.mark.parametrize(("keys", "document"), [(["id", "größe"], {"keyColumns": ["id", "größe"]}), ([], {})])
def test_keys_are_declared_once_as_fabric_reads_them(
    store: LocalStore, keys: list[str], document: dict[str, object]
) -> None:
    for _ in range(2):
        drive(ensure_metadata(TABLE, keys), store)
    assert json.loads(store.read("shop.schema/orders/_metadata.json", LIMIT).data) == document


def test_declared_keys_are_never_changed(store: LocalStore) -> None:
    drive(ensure_metadata(TABLE, ["a", "b"]), store)
    before = store.read(TABLE.metadata, LIMIT)
    for keys in (["b", "a"], ["a"], ["a", "b", "c"], []):
        with raises_row(METADATA_DIFFERS) as refused:
            drive(ensure_metadata(TABLE, keys), store)
        assert refused.value.facts["path"] == TABLE.metadata
    assert store.read(TABLE.metadata, LIMIT) == before


def test_other_settings_beside_the_keys_are_left_alone(store: LocalStore) -> None:
    written = b'\xef\xbb\xbf{"keyColumns": ["id"], "fileDetectionStrategy": "SequentialFileName"}'
    store.create(TABLE.metadata, written)
    drive(ensure_metadata(TABLE, ["id"]), store)
    assert store.read(TABLE.metadata, LIMIT).data == written


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"keyColumns": "id"}',
        b'{"keyColumns": [1]}',
        b'{"keyColumns": null}',
        b"[" * 10**5,
    ],
    ids=lambda data: repr(data[:20]),
)
def test_unreadable_declaration_is_refused_and_left_alone(store: LocalStore, data: bytes) -> None:
    assert declared_keys(data) is None
    store.create(TABLE.metadata, data)
    with raises_row(METADATA_DIFFERS, match="no readable keyColumns"):
        drive(ensure_metadata(TABLE, ["id"]), store)
    assert store.read(TABLE.metadata, LIMIT).data == data


def test_publisher_that_meets_another_compares_with_what_that_one_wrote(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = store.create

    def be_late(path: str, data: bytes) -> str:
        create(path, metadata_bytes(["theirs"]))
        return create(path, data)

    monkeypatch.setattr(store, "create", be_late)
    with raises_row(METADATA_DIFFERS, match="theirs"):
        drive(ensure_metadata(TABLE, ["ours"]), store)
    drive(ensure_metadata(TABLE, ["theirs"]), store)


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_keys_round_trip(keys: Sequence[str]) -> None:
    assert declared_keys(metadata_bytes(keys)) == tuple(keys)


@pytest.mark.parametrize("data", [b"{}", b'{"keyColumns": []}', b'{"fileDetectionStrategy": "SequentialFileName"}'])
def test_keys_are_added_beside_what_is_there(store: LocalStore, data: bytes) -> None:
    store.create(TABLE.metadata, data)
    drive(ensure_metadata(TABLE, ["id"]), store)
    assert json.loads(store.read(TABLE.metadata, LIMIT).data) == json.loads(data) | {"keyColumns": ["id"]}


def test_keys_that_were_taken_away_are_not_put_back(store: LocalStore) -> None:
    store.create(TABLE.metadata, b"{}")
    with raises_row(METADATA_DIFFERS):
        drive(ensure_metadata(TABLE, ["id"], landed=["id"]), store)
    with raises_row(METADATA_DIFFERS):
        drive(ensure_metadata(TABLE, ["other"], landed=["id"]), store)
    assert store.read(TABLE.metadata, LIMIT).data == b"{}"


def test_a_table_that_is_dropped_while_its_keys_are_added_is_reported_as_dropped(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive(ensure_metadata(TABLE, []), store)
    replace = store.replace

    def be_dropped(path: str, data: bytes, etag: str) -> str:
        store.delete(path)
        return replace(path, data, etag)

    monkeypatch.setattr(store, "replace", be_dropped)
    with raises_row(TABLE_DROPPED):
        drive(ensure_metadata(TABLE, ["id"]), store)
    assert store.head(TABLE.metadata) is None


def test_partner_events_name_the_publisher_and_stay_as_they_are(store: LocalStore) -> None:
    ensure_partner_events(store, "mirror_assets", {"sourceType": "Delta Lake"})
    written = store.read("_partnerEvents.json", LIMIT)
    assert json.loads(written.data) == {"partnerName": "mirror_assets", "sourceInfo": {"sourceType": "Delta Lake"}}
    ensure_partner_events(store, "another", {})
    assert store.read("_partnerEvents.json", LIMIT) == written
