"""Only a folder that is there can say that it does not hold a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mirror_assets.lakes.access import PlainAccess
from mirror_assets.source.source_files import FilePresence, SourceFiles, local_presence

_NOBODY = 65534


@pytest.fixture
def table() -> Iterator[Path]:
    """A table's folder with a partition, which anybody may look into."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "t"
        (root / "_delta_log").mkdir(parents=True)
        (root / "day=1").mkdir()
        (root / "day=1" / "a.parquet").write_bytes(b"x")
        Path(folder).chmod(0o755)
        yield root


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Root may do everything; whoever else runs the tests is refused as he is."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_folder_that_is_not_there_says_nothing(table: Path) -> None:
    state = local_presence("day=1/a.parquet", table.with_name("unmounted"))
    assert not state.is_gone
    assert "unmounted is not there" in str(state.hindrance)


@pytest.mark.parametrize("linked", ["day=1/a.parquet", "day=1"])
def test_a_broken_link_is_reported_with_its_target(table: Path, linked: str) -> None:
    (table / linked).rename(table.parent / "kept")
    (table / linked).symlink_to("/not/mounted")
    state = local_presence("day=1/a.parquet", table)
    assert not state.is_gone
    assert f"{linked} is a link to /not/mounted" in str(state.hindrance)


@pytest.mark.parametrize("closed", ["day=1/a.parquet", "day=1"])
def test_a_path_without_permission_is_reported_as_denied(table: Path, closed: str) -> None:
    (table / closed).chmod(0)
    with _as_nobody():
        state = local_presence("day=1/a.parquet", table)
    (table / closed).chmod(0o755)
    assert not state.is_gone
    assert "Permission denied" in str(state.hindrance)


def test_a_folder_in_place_of_a_file_is_reported_as_a_folder(table: Path) -> None:
    assert "is a folder" in str(local_presence("day=1", table).hindrance)


def test_a_clones_file_is_gone_only_where_its_table_is_there(table: Path) -> None:
    clone = SourceFiles(str(table.parent), PlainAccess(str(table.parent)))
    assert clone.presence_of(f"file://{table}/day=1/a.parquet") == FilePresence()
    assert clone.presence_of(f"file://{table}/day=1/b.parquet").is_gone
    assert not clone.presence_of("file:///not/mounted/day=1/b.parquet").is_gone


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_path_and_a_uri_of_this_machine_say_the_same(table: Path, scheme: str) -> None:
    (table / "link.parquet").symlink_to("/not/mounted")
    files = SourceFiles(f"{scheme}{table}", PlainAccess(f"{scheme}{table}"))
    assert files.presence_of("day=1/a.parquet") == FilePresence()
    assert files.presence_of("day=1/b.parquet").is_gone
    assert files.presence_of("day=2/a.parquet").is_gone
    assert not files.presence_of("link.parquet").is_gone
