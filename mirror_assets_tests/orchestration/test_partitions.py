"""Which keys a plan looks at, and which are deleted."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from mirror_assets.orchestration import partitions
from mirror_assets.orchestration.asset_names import AssetKind, asset_key, partitions_name
from mirror_assets.orchestration.partitions import Surplus, delete_keys, ended_keys, registered
from mirror_assets_tests.lab import TABLE, key

NAME = partitions_name(TABLE)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def add(instance: dg.DagsterInstance, *keys: object) -> list[str]:
    """The keys, registered in this order."""
    texts = [str(one) for one in keys]
    instance.add_dynamic_partitions(NAME, texts)
    return texts


def test_only_slices_behind_what_is_covered_are_boundaries(instance: dg.DagsterInstance) -> None:
    add(instance, key(0, 1), key(2, 3), "foo", key(4, 5), key(6, 6), key(0, 9, epoch=2))
    assert registered(instance, TABLE, epoch=1, covered=3).boundaries(1, 3) == {5, 6, 9}
    assert registered(instance, TABLE, epoch=2, covered=9).boundaries(2, 9) == frozenset()


def test_old_pages_are_not_read(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "_PAGE", 10)
    keys = add(instance, *(key(v, v) for v in range(95)), "foo", *(key(v, v) for v in range(95, 100)))
    assert registered(instance, TABLE, 1, covered=99).keys == tuple(keys[-10:])
    assert registered(instance, TABLE, 1, covered=93).keys == tuple(keys[-20:])
    assert registered(instance, TABLE, 1, covered=-1).keys == tuple(keys)
    assert registered(instance, TABLE, 1, covered=85).strangers == ("foo",)


def test_the_oldest_beyond_those_to_keep_are_too_many(instance: dg.DagsterInstance) -> None:
    keys = add(instance, key(0, 1), "foo", *(key(v, v) for v in range(2, 10)))
    slices = [one for one in keys if one != "foo"]
    assert Surplus(TABLE, 9).keys(instance, 0, 1, 9) == []
    assert Surplus(TABLE, 7).keys(instance, 2, 1, 9) == slices[:2]
    assert Surplus(TABLE, 1).keys(instance, 0, 1, 3) == slices[:3]


def test_keys_are_counted_seldom(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    listings = 0
    real = instance.get_dynamic_partitions

    def counted(name: str) -> object:
        nonlocal listings
        listings += 1
        return real(name)

    monkeypatch.setattr(instance, "get_dynamic_partitions", counted)
    surplus, most = Surplus(TABLE, 1000), 0
    for version in range(3000):
        delete_keys(instance, TABLE, surplus.keys(instance, 1, 1, version))
        add(instance, key(version, version))
        most = max(most, version + 1 if version < 1000 else 0)
    kept = real(NAME)
    assert 1000 <= len(kept) <= 1010
    assert kept[-1] == str(key(2999, 2999))
    assert listings < 220


def test_a_great_many_go_in_several_ticks(instance: dg.DagsterInstance) -> None:
    add(instance, *(key(v, v) for v in range(2500)))
    surplus = Surplus(TABLE, 100)
    found = []
    for _ in range(4):
        old = surplus.keys(instance, 1, 1, 9999)
        delete_keys(instance, TABLE, old)
        found.append(len(old))
    assert found == [1000, 1000, 400, 0]


def test_a_slice_of_an_ended_epoch_that_has_not_landed_is_forgotten(instance: dg.DagsterInstance) -> None:
    add(instance, key(0, 1), key(2, 3), "foo", key(4, 5), key(0, 9, epoch=2), key(10, 10, epoch=2))
    for landed in (key(0, 1), key(2, 3)):
        event = dg.AssetMaterialization(asset_key(AssetKind.LANDING, TABLE), partition=str(landed))
        instance.report_runless_asset_event(event)
    assert ended_keys(instance, TABLE, epoch=2) == [str(key(4, 5))]
    assert ended_keys(instance, TABLE, epoch=1) == []
