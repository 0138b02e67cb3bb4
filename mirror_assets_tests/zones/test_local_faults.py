"""A disk that is full, read-only, failing or unfit: what the store says, and that nothing is left behind."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, SettingError, UnknownOutcome
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_DENIED, STORE_FULL, STORE_UNAVAILABLE
from mirror_assets_tests.errors import raises, raises_row


def failing(code: int) -> Callable[..., None]:
    """A system call that always fails with this error number."""

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def failing_from(call: int, real: Callable[[int], None]) -> Callable[[int], None]:
    """An fsync that works until its `call`-th call."""
    left = [call]

    def fsync(descriptor: int) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise OSError(errno.EIO, "the disk is gone")
        real(descriptor)

    return fsync


def visible(store: LocalStore) -> list[str]:
    """Every file of the store, locks left out."""
    files = [path for path in Path(store.root).rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    return sorted(str(path.relative_to(store.root)) for path in files)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB; needs the right to mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not mount or not umount:
        pytest.skip("no mount command")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip("no right to mount a disk")
    yield disk
    subprocess.run([umount, "-l", str(disk)], check=True)


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)  # noqa: S607 - the fixture found it


@pytest.fixture
def stocked(local: LocalStore) -> LocalStore:
    local.create("a/file", b"old")
    return local


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.ENOSPC, STORE_FULL),
        (errno.EDQUOT, STORE_FULL),
        (errno.EROFS, STORE_DENIED),
        (errno.EACCES, STORE_DENIED),
        (errno.EIO, STORE_UNAVAILABLE),
    ],
)
def test_failed_write_says_why_and_leaves_nothing(
    stocked: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int, error: ErrorRow[MirrorError]
) -> None:
    store = stocked
    content = store.read("a/file", 10)
    monkeypatch.setattr(os, "fsync", failing(code))
    with raises_row(error, match="a/new"):
        store.create("a/new", b"data")
    with raises_row(error, match="a/file"):
        store.replace("a/file", b"data", content.etag)
    assert visible(store) == ["a/file"]
    assert store.read("a/file", 10) == content


def test_read_only_disk(tiny_disk: Path) -> None:
    store = LocalStore(tiny_disk)
    etag = store.create("a/file", b"old")
    remount(tiny_disk, "ro")
    writes = (
        lambda: store.create("a/new", b"x"),
        lambda: store.create("b/new", b"x"),
        lambda: store.replace("a/file", b"x", etag),
        lambda: store.rename("a/file", "a/target", etag),
        lambda: store.delete("a/file"),
        lambda: store.delete_tree("a"),
    )
    for write in writes:
        with raises_row(STORE_DENIED):
            write()
    assert store.read("a/file", 10).data == b"old"


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS])
def test_disk_without_conditional_rename_is_unfit(
    stocked: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    store = stocked
    content = store.read("a/file", 10)
    monkeypatch.setattr("mirror_assets.zones.local.rename_noreplace", failing(code))
    with raises(SettingError, ErrorCode.FILE_SYSTEM_UNFIT) as unfit:
        store.create("a/new", b"x")
    assert unfit.value.what.startswith(f"the file system of {store.root} ")
    with raises(SettingError, ErrorCode.FILE_SYSTEM_UNFIT):
        store.rename("a/file", "a/target", content.etag)
    assert visible(store) == ["a/file"]


def test_failure_behind_the_rename_is_an_unknown_outcome(stocked: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name has moved already, so "nothing happened" would be a lie."""
    store, real = stocked, os.fsync
    etag = store.read("a/file", 10).etag
    monkeypatch.setattr(os, "fsync", failing_from(2, real))
    with pytest.raises(UnknownOutcome):
        store.create("a/new", b"x")
    assert store.read("a/new", 10).data == b"x"
    monkeypatch.setattr(os, "fsync", failing_from(2, real))
    with pytest.raises(UnknownOutcome):
        store.replace("a/file", b"new", etag)
    assert store.read("a/file", 10).data == b"new"
    monkeypatch.setattr(os, "fsync", failing_from(1, real))
    with pytest.raises(UnknownOutcome):
        store.rename("a/file", "a/target", store.read("a/file", 10).etag)
    assert store.read("a/target", 10).data == b"new"
    assert visible(store) == ["a/new", "a/target"]
