"""A landing zone on a disk that is full or read-only: nothing lands by halves, and the next run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from mirror_assets.errors import ErrorCode, RetryError, SettingError
from mirror_assets.landing.names import landing_name
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_DENIED, STORE_FULL
from mirror_assets_tests.end_to_end.disks import Disk, disk
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landed_slices import landed_slices


class Struck(LocalStore):
    """The same store; something happens to its disk right before a file of this name is written or moved."""

    def __init__(self, disk_: Disk, name: str, happens: Callable[[Disk], None]) -> None:
        super().__init__(disk_.path)
        self._disk, self._name, self._happens = disk_, name, happens

    def create(self, path: str, data: bytes) -> str:
        self._strike(path)
        return super().create(path, data)

    def replace(self, path: str, data: bytes, etag: str) -> str:
        self._strike(path)
        return super().replace(path, data, etag)

    def rename(self, source: str, target: str, etag: str) -> None:
        self._strike(target)
        super().rename(source, target, etag)

    def _strike(self, path: str) -> None:
        if self._name in path:
            self._happens(self._disk)


@pytest.fixture
def small(lab: Lab) -> Iterator[Disk]:
    """The landing zone's disk, with the first slice landed."""
    with disk(lab.root / "landing", "3m") as mounted:
        lab.mirror()
        yield mounted


def test_disk_full_while_spark_encodes(lab: Lab, small: Disk) -> None:
    lab.sql("INSERT INTO {t} SELECT CAST(id + 100 AS INT), concat(uuid(), uuid(), uuid()), rand() FROM range(60000)")
    with pytest.raises(RetryError, match="no space left for Spark"):
        lab.mirror()
    assert len(lab.files) == 1
    small.remount("size=64m")
    _require_equal_after_a_run(lab, files=2)


@pytest.mark.parametrize("name", ["slice.json", "_mirror.json", "_mirror/"])
def test_disk_full_while_a_control_file_is_written(lab: Lab, small: Disk, name: str) -> None:
    lab.sql("UPDATE {t} SET amount = 100 WHERE id < 5")
    with raises_row(STORE_FULL):
        _mirror_struck(lab, Struck(small, name, Disk.fill))
    assert len(lab.files) == 1
    small.free()
    _require_equal_after_a_run(lab, files=2)


def test_read_only_disk(lab: Lab, small: Disk) -> None:
    lab.sql("UPDATE {t} SET amount = 100 WHERE id < 5")
    small.remount("ro")
    with pytest.raises(SettingError) as caught:
        lab.mirror()
    assert caught.value.code is ErrorCode.STORE_DENIED
    assert len(lab.files) == 1
    small.remount("rw")
    _require_equal_after_a_run(lab, files=2)


def test_disk_that_becomes_read_only_between_commit_and_landing(lab: Lab, small: Disk) -> None:
    lab.sql("UPDATE {t} SET amount = 100 WHERE id < 5")
    with raises_row(STORE_DENIED):
        _mirror_struck(lab, Struck(small, landing_name(2), lambda disk_: disk_.remount("ro")))
    manifest = lab.context.manifest()
    assert manifest is not None
    assert (manifest.next_number, len(lab.files)) == (3, 1)
    small.remount("rw")
    _require_equal_after_a_run(lab, files=2)


def _mirror_struck(lab: Lab, store: Struck) -> None:
    list(landed_slices(replace(lab.context, store=store), lab.replicator))


def _require_equal_after_a_run(lab: Lab, files: int) -> None:
    lab.mirror()
    assert len(lab.files) == files
    assert lab.is_equal
