"""Findings in files: what is written is read, and whatever else is in a file is ignored with a warning."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mirror_assets.discovery.cache import FindingCache
from mirror_assets.discovery.finding import FolderFacts, FolderKind, FoundFolder, PlaceFinding

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
    columns=st.lists(st.text()).map(tuple),
)
_FOLDERS = st.builds(
    FoundFolder,
    path=st.lists(_NAMES, min_size=1, max_size=3).map("/".join),
    facts=_FACTS,
    first_seen=_TIMES,
    read_at=_TIMES,
    missing=st.integers(0, 9),
)
_FINDINGS = st.builds(PlaceFinding, place=st.just(_PLACE), listed_at=_TIMES, folders=st.lists(_FOLDERS).map(tuple))
FINDING = PlaceFinding(place=_PLACE, listed_at=7, folders=(FoundFolder(path="orders", first_seen=7),))


@pytest.fixture
def cache(tmp_path: Path) -> FindingCache:
    return FindingCache.of(tmp_path / "mirror.yaml", {"DAGSTER_HOME": str(tmp_path / "home")})


@settings(max_examples=50)
@given(finding=_FINDINGS)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, finding: PlaceFinding) -> None:
    cache = FindingCache(Path("/etc/mirror.yaml"), tmp_path_factory.mktemp("cache"))
    cache.write(finding)
    assert cache.read(_PLACE) == finding


def test_it_is_beside_the_instance_or_in_the_users_cache(cache: FindingCache, tmp_path: Path) -> None:
    assert cache.read(_PLACE) is None
    cache.write(FINDING)
    (kept,) = (tmp_path / "home/storage/mirror_assets").iterdir()
    assert kept == cache.path(_PLACE)
    users = FindingCache.of(tmp_path / "mirror.yaml", {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    users.write(FINDING)
    assert len(list((tmp_path / "cache/mirror_assets/discovered").iterdir())) == 1


def test_each_place_and_each_configuration_has_a_file_of_its_own(cache: FindingCache, tmp_path: Path) -> None:
    cache.write(FINDING)
    assert cache.read("s3://lake *") is None
    assert FindingCache(tmp_path / "other.yaml", cache.folder).read(_PLACE) is None
    (tmp_path / "link.yaml").symlink_to(tmp_path / "mirror.yaml")
    linked = FindingCache.of(tmp_path / "link.yaml", {"DAGSTER_HOME": str(tmp_path / "home")})
    assert linked.read(_PLACE) == FINDING, "the same file by another name"


_DAMAGES: dict[str, Callable[[str], str]] = {
    "cut off": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "no JSON": lambda _: "cos\nsystem\n(S'true'\ntR.",
    "a list": lambda _: "[]",
    "another's": lambda text: text.replace("mirror.yaml", "theirs.yaml"),
    "another place": lambda text: text.replace("sales/*", "*"),
    "a later version": lambda text: text.replace('"format":1', '"format":2'),
    "leads out": lambda text: text.replace('"orders"', '"../../etc"'),
    "unknown field": lambda text: json.dumps(json.loads(text) | {"more": 1}),
    "not a time": lambda text: text.replace('"listed_at":7', '"listed_at":-1'),
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_damaged_or_foreign_file_is_ignored_with_a_warning(
    cache: FindingCache, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write(FINDING)
    path = cache.path(_PLACE)
    assert path is not None
    before = path.read_text()
    path.write_text(_DAMAGES[damage](before))
    assert path.read_text() != before
    assert cache.read(_PLACE) is None
    assert f"{path} is ignored" in caplog.text
    cache.write(FINDING)
    assert cache.read(_PLACE) == FINDING


def test_a_file_that_can_not_be_replaced_stays_whole(
    cache: FindingCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write(FINDING)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache.write(FINDING.model_copy(update={"listed_at": 8}))
    assert cache.read(_PLACE) == FINDING
    assert "can't be written" in caplog.text
    assert cache.folder is not None
    assert [path for path in cache.folder.iterdir() if path.name.startswith(".new-")] == []


def test_without_a_place_nothing_is_kept() -> None:
    cache = FindingCache(Path("/etc/mirror.yaml"), None)
    cache.write(FINDING)
    assert cache.read(_PLACE) is None
