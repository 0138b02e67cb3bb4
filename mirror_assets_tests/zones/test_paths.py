"""Paths: every one that is let through stays below the root and can be written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_assets.errors import SettingError
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import PATH_REFUSED
from mirror_assets.zones.store import checked
from mirror_assets_tests.errors import raises_row

SEGMENTS = st.sampled_from(["a", "b.c", "..", ".", "", " ", "...", "ü", "\\", "\x00", "\x7f", "\x85", "\ud800", "~"])


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc",
        "..",
        "a/..",
        "../a",
        "a/../b",
        ".",
        "a/./b",
        "a//b",
        "a/",
        "a\\b",
        "a\x00b",
        "a\tb",
        "a\x7fb",
        "\ud800",
    ],
)
def test_refused_paths(path: str) -> None:
    with raises_row(PATH_REFUSED) as refused:
        checked(path)
    assert refused.value.facts["path"] == path
    str(refused.value).encode()


@pytest.mark.parametrize(
    "path", ["a", "a/b/c", "_mirror.json", "...", "a b/c", "schema.schema/täble/x.parquet", "a..b"]
)
def test_plain_paths_come_back_as_they_are(path: str) -> None:
    assert checked(path) == path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(SEGMENTS, max_size=4).map("/".join) | st.text(max_size=90))
def test_what_is_let_through_is_written_below_the_root(tmp_path: Path, path: str) -> None:
    store = LocalStore(tmp_path / "zone")
    try:
        store.create(path, b"x")
    except SettingError:
        assert not list(tmp_path.glob("*")) or [entry.name for entry in tmp_path.iterdir()] == ["zone"]
        return
    assert (tmp_path / "zone").resolve() in (tmp_path / "zone" / path).resolve().parents
    assert store.read(path, 10).data == b"x"
    store.delete_tree(path.partition("/")[0]) if "/" in path else store.delete(path)
