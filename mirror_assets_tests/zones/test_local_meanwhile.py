"""What others do to the folder between two system calls of ours."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from mirror_assets.errors import MirrorError
from mirror_assets.zones import LocalStore
from mirror_assets.zones.linux import rename_noreplace


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


def test_delete_tree_goes_on_when_another_deletes_too(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        local.create(f"folder/{name}/file", b"x")
    folder, rmtree = local.local_path("folder"), shutil.rmtree

    def lose_one_first(tree: Path) -> None:
        if (tree / "b").exists():
            rmtree(tree / "b")
            raise FileNotFoundError(errno.ENOENT, "gone", str(tree / "b"))
        rmtree(tree)

    monkeypatch.setattr(shutil, "rmtree", lose_one_first)
    local.delete_tree("folder")
    assert not folder.exists()


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
