"""Which keys a plan reads, and which are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import dagster as dg
import pytest

from mirror_assets.orchestration import partitions
from mirror_assets.orchestration.mirror_assets import partitions_name
from mirror_assets.orchestration.mirror_tables import LastBoundaries
from mirror_assets.orchestration.partitions import delete_keys, ended_keys, registered_boundaries, surplus_keys
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets_tests.lab import TABLE, key
from mirror_assets_tests.orchestration.mirrors import assets_of

NAME = partitions_name(asset_key(AssetKind.LANDING, TABLE))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def add(instance: dg.DagsterInstance, *keys: object) -> list[str]:
    """The keys, registered in this order."""
    texts = [str(one) for one in keys]
    instance.add_dynamic_partitions(NAME, texts)
    return texts


def test_only_slices_after_the_covered_version_are_boundaries(instance: dg.DagsterInstance) -> None:
    add(instance, key(0, 1), key(2, 3), "foo", key(4, 5), key(6, 6), key(0, 9, epoch=2))
    boundaries = registered_boundaries(instance, assets_of([TABLE]), TABLE)
    assert boundaries(1, 3) == {5, 6, 9}
    assert boundaries(2, 9) == frozenset()


def test_boundaries_are_those_read_last_while_dagsters_storage_is_away(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(instance, key(2, 3))
    last = LastBoundaries(instance, assets_of([TABLE]))
    assert last.of(TABLE)(1, 1) == {3}
    add(instance, key(4, 5))
    with monkeypatch.context() as away:
        away.setattr(instance, "get_paginated_dynamic_partitions", mock.Mock(side_effect=OSError("refused")))
        assert last.of(TABLE)(1, 1) == {3}
    assert last.of(TABLE)(1, 1) == {3, 5}
    monkeypatch.setattr(instance, "get_paginated_dynamic_partitions", mock.Mock(side_effect=ValueError("a defect")))
    with pytest.raises(ValueError, match="a defect"):
        last.of(TABLE)(1, 1)


@pytest.mark.parametrize(("covered", "pages"), [(99, 1), (93, 2), (85, 3), (-1, 11)])
def test_old_pages_are_not_read(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, covered: int, pages: int
) -> None:
    monkeypatch.setattr(partitions, "_PAGE", 10)
    add(instance, *(key(v, v) for v in range(95)), "foo", *(key(v, v) for v in range(95, 100)))
    read = mock.Mock(wraps=instance.get_paginated_dynamic_partitions)
    monkeypatch.setattr(instance, "get_paginated_dynamic_partitions", read)
    assert registered_boundaries(instance, assets_of([TABLE]), TABLE)(1, covered) == frozenset(range(covered + 1, 100))
    assert read.call_count == pages


def test_the_oldest_landed_slices_beyond_those_to_keep_are_surplus(instance: dg.DagsterInstance) -> None:
    keys = add(instance, key(0, 1), "foo", *(key(v, v) for v in range(2, 10)))
    slices = [one for one in keys if one != "foo"]
    assert surplus_keys(instance, NAME, 9, 1, 9) == []
    assert surplus_keys(instance, NAME, 7, 1, 9) == slices[:2]
    assert surplus_keys(instance, NAME, 1, 1, 3) == slices[:3], "the others are pending"


def test_a_thousand_are_deleted_at_a_time(instance: dg.DagsterInstance) -> None:
    add(instance, *(key(v, v) for v in range(2500)))
    found = []
    for _ in range(4):
        old = surplus_keys(instance, NAME, 100, 1, 9999)
        delete_keys(instance, NAME, old)
        found.append(len(old))
    assert found == [1000, 1000, 400, 0]


def test_a_slice_of_an_ended_epoch_that_has_not_landed_is_forgotten(instance: dg.DagsterInstance) -> None:
    add(instance, key(0, 1), key(2, 3), "foo", key(4, 5), key(0, 9, epoch=2), key(10, 10, epoch=2))
    for landed in (key(0, 1), key(2, 3)):
        event = dg.AssetMaterialization(asset_key(AssetKind.LANDING, TABLE), partition=str(landed))
        instance.report_runless_asset_event(event)
    assert ended_keys(instance, NAME, asset_key(AssetKind.LANDING, TABLE), epoch=2) == [str(key(4, 5))]
    assert ended_keys(instance, NAME, asset_key(AssetKind.LANDING, TABLE), epoch=1) == []
