"""Discovery's memory in the landing zone: a damaged file is neither used nor replaced, except on request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.features.init.discovery_memory import DiscoveryMemory, read_memory, write_memory
from mirror_assets.features.init.finding import FoundFolder, PlaceFinding
from mirror_assets.landing.names import DISCOVERED
from mirror_assets.zones.local import LocalZone

_PLACE = "s3://lake sales/*"
_FINDING = PlaceFinding(place=_PLACE, listed_at=7, folders=(FoundFolder(path="orders", first_seen=7),))
_MEMORY = DiscoveryMemory(places=(_FINDING,), sources={"orders": "s3://lake/sales/orders"})


@pytest.fixture
def zone(tmp_path: Path) -> LocalZone:
    return LocalZone(tmp_path / "landing")


def _path(zone: LocalZone) -> Path:
    return zone.path / DISCOVERED


_DAMAGES: dict[str, Callable[[str], str]] = {
    "cut off": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "no JSON": lambda _: "cos\nsystem\n(S'true'\ntR.",
    "a list": lambda _: "[]",
    "a later version": lambda text: text.replace('"format": 1', '"format": 2'),
    "leads out": lambda text: text.replace('"path": "orders"', '"path": "../../etc"'),
    "unknown field": lambda text: json.dumps(json.loads(text) | {"more": 1}),
    "not a time": lambda text: text.replace('"listed_at": 7', '"listed_at": -1'),
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_damaged_file_is_replaced_only_on_request(zone: LocalZone, damage: str) -> None:
    assert write_memory(zone, read_memory(zone, replaces_damaged=False), _MEMORY)
    before = _path(zone).read_text()
    _path(zone).write_text(_DAMAGES[damage](before))
    assert _path(zone).read_text() != before
    with pytest.raises(StopError, match=f"{DISCOVERED} is not a valid list of discovered tables") as damaged:
        read_memory(zone, replaces_damaged=False)
    assert damaged.value.code is ErrorCode.LANDING_DAMAGED
    assert "discover --accept" in damaged.value.next_step
    found = read_memory(zone, replaces_damaged=True)
    assert found.record is None
    assert write_memory(zone, found, _MEMORY)
    assert read_memory(zone, replaces_damaged=False).record == _MEMORY
