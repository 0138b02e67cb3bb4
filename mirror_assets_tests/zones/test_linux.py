"""The two Linux calls, against the real system."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from mirror_assets.zones import linux


class OldLibrary:
    """A C library from before renameat2 and statx."""


def test_rename_moves_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    linux.rename_noreplace(tmp_path / "a", tmp_path / "b")
    assert [entry.name for entry in tmp_path.iterdir()] == ["b"]


def test_rename_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ours")
    (tmp_path / "b").write_bytes(b"theirs")
    with pytest.raises(FileExistsError) as refused:
        linux.rename_noreplace(tmp_path / "a", tmp_path / "b")
    assert (refused.value.filename, refused.value.filename2) == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == b"theirs"


def test_rename_of_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        linux.rename_noreplace(tmp_path / "none", tmp_path / "b")


def test_names_that_are_not_ascii(tmp_path: Path) -> None:
    (tmp_path / "ä").write_bytes(b"x")
    linux.rename_noreplace(tmp_path / "ä", tmp_path / "\N{SNOWMAN}")
    assert (tmp_path / "\N{SNOWMAN}").read_bytes() == b"x"


def test_a_library_without_the_call_is_reported_as_not_implemented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"x")
    monkeypatch.setattr(linux, "_libc", OldLibrary())
    with pytest.raises(OSError, match="not implemented") as refused:
        linux.rename_noreplace(tmp_path / "a", tmp_path / "b")
    assert refused.value.errno == errno.ENOSYS
    assert not (tmp_path / "b").exists()
    assert linux.birth_time(tmp_path) == (0, 0)


def test_birth_time_is_kept_while_other_times_change(tmp_path: Path) -> None:
    born = linux.birth_time(tmp_path)
    assert born != (0, 0)
    (tmp_path / "a").write_bytes(b"x")
    os.utime(tmp_path, (1, 1))
    assert linux.birth_time(tmp_path) == born
    assert abs(born[0] - (tmp_path / "a").stat().st_mtime) < 60


def test_birth_time_of_a_missing_file(tmp_path: Path) -> None:
    assert linux.birth_time(tmp_path / "none") == (0, 0)
