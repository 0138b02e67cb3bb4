"""Where a table stands, and what the next slice has to be staged as."""

from __future__ import annotations

from mirror_assets.landing.format import encode
from mirror_assets.landing.state import CommitPosition, next_position, read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.staging import INCARNATION, TABLE
from mirror_assets_tests.landing.test_format import MANIFEST


def test_a_table_without_a_manifest_starts_an_epoch() -> None:
    assert next_position(None, epoch=3, incarnation="i") == CommitPosition(
        3, "i", generation=1, first_number=1, covered=-1
    )


def test_a_table_with_a_manifest_goes_on_in_its_epoch() -> None:
    position = next_position(MANIFEST, epoch=9, incarnation="other")
    assert position == CommitPosition(1, INCARNATION, generation=3, first_number=5, covered=9)
    assert position.after(covered=12, files=2) == CommitPosition(
        1, INCARNATION, generation=4, first_number=7, covered=12
    )


def test_the_manifest_is_read_with_its_etag(store: LocalStore) -> None:
    assert drive(read_manifest(TABLE), store) is None
    etag = store.create(TABLE.manifest, encode(MANIFEST))
    current = drive(read_manifest(TABLE), store)
    assert current is not None
    assert (current.manifest, current.etag) == (MANIFEST, etag)
