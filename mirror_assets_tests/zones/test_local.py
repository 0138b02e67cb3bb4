"""What is special about a disk: durable names, growing times, other programs, and what these do meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from mirror_assets.errors import MirrorError
from mirror_assets.zones import FileInfo, LocalStore, PathExists, linux
from mirror_assets.zones.errors import PATH_REFUSED
from mirror_assets.zones.linux import rename_noreplace
from mirror_assets_tests.errors import raises_row


def test_root_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore(Path("zone"))
    monkeypatch.chdir("/")
    store.create("a/file", b"x")
    assert store.root == str(tmp_path / "zone")
    assert store.local_path("a/file") == tmp_path / "zone" / "a" / "file"
    assert (tmp_path / "zone/a/file").read_bytes() == b"x"


def test_every_new_name_is_durable(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut must not take back a file, nor a folder above it."""
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    root = Path(local.root)
    etag = local.create("a/b/file", b"x")
    assert synced[-1] == root / "a/b"
    assert {root.parent, root, root / "a", root / "a/b"} <= set(synced)
    synced.clear()
    etag = local.replace("a/b/file", b"y", etag)
    assert synced[-1] == root / "a/b"
    assert synced[0].name not in ("b", "file")
    synced.clear()
    local.rename("a/b/file", "a/target", etag)
    assert synced == [root / "a", root / "a/b"]
    synced.clear()
    local.fsync(FileInfo("a/target", 0, ""))
    assert synced == [root / "a/target", root / "a"]


def test_replaced_file_never_gets_an_older_etag_back(local: LocalStore) -> None:
    """Inodes are used again, and a coarse or turned-back clock gives times again: time must grow with each content."""
    etag = local.create("a/file", b"x")
    path = local.local_path("a/file")
    ahead = path.stat().st_mtime_ns + 3_600 * 10**9
    os.utime(path, ns=(ahead, ahead))
    head = local.head("a/file")
    assert head is not None
    assert head.etag != etag
    local.replace("a/file", b"y", head.etag)
    assert path.stat().st_mtime_ns > ahead


def test_too_long_a_name_is_a_refused_path(local: LocalStore) -> None:
    local.create(f"a/{'x' * 240}", b"x")
    for ask in (lambda: local.create(f"a/{'x' * 300}", b"x"), lambda: local.head("a/" + "x" * 300)):
        with raises_row(PATH_REFUSED):
            ask()


def test_files_of_other_programs_are_seen(local: LocalStore) -> None:
    folder = local.local_path("a")
    folder.mkdir(parents=True)
    (folder / "spark.parquet").write_bytes(b"123")
    (folder / "dangling").symlink_to(folder / "none")
    info = local.fsync(FileInfo("a/spark.parquet", 0, ""))
    assert info.size == 3
    assert local.list("a") == [info]
    with pytest.raises(PathExists):
        local.create("a/spark.parquet", b"x")
    (folder / "spark.parquet").write_bytes(b"1234")
    after = local.head("a/spark.parquet")
    assert after is not None
    assert after.etag != info.etag


def test_rename_whose_source_folder_another_publisher_deletes(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.create("a/file", b"x")
    etag = local.create("staged/file", b"ours")

    def rename_and_lose_the_folder(source: Path, target: Path) -> None:
        rename_noreplace(source, target)
        shutil.rmtree(source.parent)

    monkeypatch.setattr("mirror_assets.zones.local.rename_noreplace", rename_and_lose_the_folder)
    local.rename("staged/file", "a/target", etag)
    assert local.read("a/target", 10).data == b"ours"


def test_list_leaves_out_a_file_that_goes_meanwhile(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only that file: a publisher must never take a busy folder for an empty one."""
    for name in "abc":
        local.create(f"folder/{name}", b"x")
    scandir = os.scandir

    def scan_then_lose(folder: Path) -> AbstractContextManager[list[os.DirEntry[str]]]:
        with scandir(folder) as entries:
            found = list(entries)
        (folder / "b").unlink()
        return nullcontext(found)

    monkeypatch.setattr(os, "scandir", scan_then_lose)
    assert [info.name for info in local.list("folder")] == ["a", "c"]


def test_create_returns_the_etag_of_its_own_file(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another publisher may have replaced it by the time create returns."""
    path, real = local.local_path("a/file"), local._move

    def move_and_replace(source: Path, target: Path, name: str) -> None:
        real(source, target, name)
        target.with_name("other").write_bytes(b"other")
        target.with_name("other").rename(target)

    monkeypatch.setattr(local, "_move", move_and_replace)
    etag = local.create("a/file", b"x")
    head = local.head("a/file")
    assert head is not None
    assert (path.read_bytes(), etag != head.etag) == (b"other", True)


def test_replace_does_not_bring_a_dropped_folder_back(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table folder that a rebuild drops must not come back without its `_metadata.json`."""
    etag, real = local.create("table/_mirror.json", b"x"), local._locked

    def drop_first(path: str) -> object:
        shutil.rmtree(local.local_path("table"))
        return real(path)

    monkeypatch.setattr(local, "_locked", drop_first)
    with pytest.raises(MirrorError):
        local.replace("table/_mirror.json", b"y", etag)
    assert local.folder_identity("table") is None


class OldLibrary:
    """A C library from before renameat2 and statx."""


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
