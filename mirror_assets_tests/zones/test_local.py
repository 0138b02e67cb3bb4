"""What is special about a disk: durable names, times that grow, files of other programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_assets.zones import FileInfo, LocalStore, PathExists
from mirror_assets.zones.errors import PATH_REFUSED
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
