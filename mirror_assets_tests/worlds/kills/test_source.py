"""The source's changes, as delta-rs tells them, are what its rows come from."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from mirror_assets.markers import Marker
from mirror_assets_tests.worlds.kills.source import Change, Orders


@pytest.mark.parametrize("seed", range(5))
def test_a_snapshot_and_the_changes_after_it_are_the_table(seed: int, tmp_path: Path) -> None:
    orders, random = Orders(tmp_path / "orders"), Random(seed)
    orders.create()
    first = orders.tip
    amounts = {change.id: change.amount for change in orders.snapshot(first)}
    for _ in range(4):
        orders.go_on(random)
    for version in range(first + 1, orders.tip + 1):
        changes = orders.changes(version, version)
        assert set(changes.values()) <= {1}
        for change in changes:
            assert (change.marker is Marker.INSERT) == (change.id not in amounts)
            assert change.amount in (None, float(version))
        amounts |= {change.id: change.amount for change in changes}
        for gone in [change.id for change in changes if change.marker is Marker.DELETE]:
            del amounts[gone]
    assert amounts == {row["id"]: row["amount"] for row in orders.rows().to_pylist()}


def test_a_touch_updates_the_lowest_keys_in_one_commit(tmp_path: Path) -> None:
    orders = Orders(tmp_path / "orders")
    orders.create(rows=9, files=3)
    orders.touch(rows=2)
    assert orders.tip == 3
    assert set(orders.changes(3, 3)) == {Change(Marker.UPDATE, 0, 3.0), Change(Marker.UPDATE, 1, 3.0)}
