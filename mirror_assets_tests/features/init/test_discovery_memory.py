"""Discovery's memory in the landing zone: what is written is read, and a damaged file is neither used nor replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.features.init.discovery_memory import DiscoveryMemory, MemoryFile
from mirror_assets.features.init.finding import FolderFacts, FolderKind, FoundFolder, PlaceFinding
from mirror_assets.landing.names import DISCOVERED
from mirror_assets.zones.local import LocalZone

_PLACE = "s3://lake sales/*"
_TIMES = st.floats(min_value=0, max_value=4e9)
_NAMES = st.text(min_size=1).filter(lambda name: "/" not in name and name not in (".", ".."))
_FACTS = st.builds(
    FolderFacts,
    kind=st.sampled_from(FolderKind),
    why=st.text(),
    table_id=st.text(),
    feed=st.booleans(),
    row_tracking=st.booleans(),
    columns=st.lists(st.text(), max_size=3).map(tuple),
)
_FOLDERS = st.builds(
    FoundFolder,
    path=st.lists(_NAMES, min_size=1, max_size=3).map("/".join),
    facts=_FACTS,
    first_seen=_TIMES,
    read_at=_TIMES,
    missing=st.integers(0, 9),
    unconfirmed=st.integers(0, 9),
)
_FINDINGS = st.builds(
    PlaceFinding, place=st.text(), listed_at=_TIMES, folders=st.lists(_FOLDERS, max_size=4).map(tuple)
)
_MEMORIES = st.builds(
    DiscoveryMemory, places=st.lists(_FINDINGS, max_size=3).map(tuple), sources=st.dictionaries(st.text(), st.text())
)
_FINDING = PlaceFinding(place=_PLACE, listed_at=7, folders=(FoundFolder(path="orders", first_seen=7),))
_MEMORY = DiscoveryMemory(places=(_FINDING,), sources={"orders": "s3://lake/sales/orders"})


@pytest.fixture
def zone(tmp_path: Path) -> LocalZone:
    return LocalZone(tmp_path / "landing")


def _read(zone: LocalZone, *, replaces_damaged: bool = False) -> MemoryFile:
    return MemoryFile.read(zone, replaces_damaged=replaces_damaged)


def _path(zone: LocalZone) -> Path:
    return zone.path / DISCOVERED


@settings(max_examples=30)
@given(memory=_MEMORIES)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, memory: DiscoveryMemory) -> None:
    zone = LocalZone(tmp_path_factory.mktemp("landing"))
    assert _read(zone).memory is None
    assert _read(zone).write(memory)
    assert _read(zone).memory == memory


def test_of_two_processes_the_later_one_has_to_read_again(zone: LocalZone) -> None:
    first, second = _read(zone), _read(zone)
    assert first.write(_MEMORY)
    other = DiscoveryMemory(places=(_FINDING.model_copy(update={"place": "s3://lake *"}),))
    assert not second.write(other)
    assert _read(zone).memory == _MEMORY
    assert _read(zone).write(other)


def test_an_unchanged_memory_is_not_written(zone: LocalZone) -> None:
    _read(zone).write(_MEMORY)
    before = _path(zone).stat()
    assert _read(zone).write(_MEMORY)
    assert _path(zone).stat() == before


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
    _read(zone).write(_MEMORY)
    before = _path(zone).read_text()
    _path(zone).write_text(_DAMAGES[damage](before))
    assert _path(zone).read_text() != before
    with pytest.raises(StopError, match=f"{DISCOVERED} is not a valid list of discovered tables") as damaged:
        _read(zone)
    assert damaged.value.code is ErrorCode.LANDING_DAMAGED
    assert "discover --accept" in damaged.value.next_step
    found = _read(zone, replaces_damaged=True)
    assert found.memory is None
    assert found.write(_MEMORY)
    assert _read(zone).memory == _MEMORY
