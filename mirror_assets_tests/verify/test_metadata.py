"""The declared keys against those of mirror.yaml and of the manifest."""

from __future__ import annotations

import pytest

from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.verify.landed import metadata_unchanged
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage
from mirror_assets_tests.zones.memory import MemoryStore


@pytest.mark.parametrize(
    ("landed", "declared", "requested", "passes"),
    [
        (("id",), ("id",), ("id",), True),
        (("id",), ("id",), ("other",), False),
        (("id",), ("id",), (), False),
        (("id",), (), ("id",), False),
        ((), (), (), True),
        ((), (), ("id",), True),
        ((), ("id",), ("id",), True),
        ((), ("id",), (), False),
        ((), ("id",), ("other",), False),
    ],
)
def test_keys_may_be_added_where_none_were_and_nothing_else(
    landed: tuple[str, ...], declared: tuple[str, ...], requested: tuple[str, ...], *, passes: bool
) -> None:
    store = MemoryStore()
    record = stage(store, position_of(store), last=7).model_copy(update={"keys": landed})
    drive(publish(TABLE, record, CHECKS), store)
    store.delete(TABLE.metadata)
    store.create(TABLE.metadata, metadata_bytes(declared))
    assert metadata_unchanged(store, TABLE, requested).passed is passes
