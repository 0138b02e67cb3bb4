"""What a quick look at a table must not overlook, and what it costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.next_action import QuietMark, is_quiet
from mirror_assets.source import log as source_log
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.source_files import commit_path
from mirror_assets.zones import Store
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.worlds.onelake import LoopbackOneLake, Operation
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.zones.memory import MemoryStore

TABLE = TableName("shop", "orders")


@pytest.fixture(params=["listed", "asked for by name"])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of four commits, whose log is short; or taken for a long one."""
    if request.param != "listed":
        monkeypatch.setattr(source_log, "_SHORT_LOG", 0)
    for number in range(4):
        write_deltalake(tmp_path / "orders", pa.table({"id": [number]}), mode="append")
    return tmp_path / "orders"


def marked(store: Store, source: Path) -> QuietMark:
    """The mark of a table whose four commits are covered, as far as a look can tell."""
    etag = store.create(TABLE.manifest, b"a manifest")
    tip = DeltaLog(str(source)).tip_mark(3)
    assert tip is not None
    return QuietMark(etag, None, tip)


def commit(source: Path) -> None:
    write_deltalake(source, pa.table({"id": [9]}), mode="append")


def recreate(source: Path) -> None:
    shutil.rmtree(source)
    for number in range(4):
        write_deltalake(source, pa.table({"id": [number]}), mode="append")


def restore_from_backup(source: Path) -> None:
    (source / commit_path(3)).unlink()


def rewrite(source: Path) -> None:
    os.utime(source / commit_path(3), ns=(1, 1))


def begin_one(store: Store) -> None:
    drive(begin_rebuild(TABLE), store)


def land(store: Store) -> None:
    found = store.read(TABLE.manifest, 100)
    store.replace(TABLE.manifest, found.data, found.etag)


def drop(store: Store) -> None:
    store.delete_tree(TABLE.folder)


@pytest.mark.parametrize("event", [commit, recreate, restore_from_backup, rewrite, shutil.rmtree])
def test_whatever_happens_to_the_source_ends_the_quiet(source: Path, event: Callable[[Path], None]) -> None:
    store = MemoryStore()
    mark, log = marked(store, source), DeltaLog(str(source))
    assert is_quiet(mark, TABLE, store, log)
    event(source)
    assert not is_quiet(mark, TABLE, store, log)


@pytest.mark.parametrize("event", [begin_one, land, drop])
def test_whatever_happens_to_the_landing_zone_ends_it(source: Path, event: Callable[[Store], None]) -> None:
    store = MemoryStore()
    mark, log = marked(store, source), DeltaLog(str(source))
    event(store)
    assert not is_quiet(mark, TABLE, store, log)


def test_a_rebuild_that_moves_ends_the_quiet(source: Path) -> None:
    store = MemoryStore()
    mark = marked(store, source)
    drive(begin_rebuild(TABLE), store)
    info = store.head(TABLE.rebuild_record)
    assert info is not None
    later, log = QuietMark(mark.manifest_etag, info.etag, mark.tip), DeltaLog(str(source))
    assert is_quiet(later, TABLE, store, log)
    store.delete(TABLE.rebuild_record)
    assert not is_quiet(later, TABLE, store, log)


def test_checkpoints_and_what_writers_put_beside_commits_are_no_news(source: Path) -> None:
    store = MemoryStore()
    mark = marked(store, source)
    DeltaTable(source).create_checkpoint()
    (source / "_delta_log" / f"{3:020d}.crc").write_text("{}")
    assert is_quiet(mark, TABLE, store, DeltaLog(str(source)))


def test_a_listing_sees_behind_a_hole(tmp_path: Path) -> None:
    for number in range(6):
        write_deltalake(tmp_path / "orders", pa.table({"id": [number]}), mode="append")
    newer = tmp_path / "orders" / commit_path(5)
    hidden = newer.rename(tmp_path / "hidden")
    (tmp_path / "orders" / commit_path(4)).unlink()
    store = MemoryStore()
    mark = marked(store, tmp_path / "orders")
    hidden.rename(newer)
    assert not is_quiet(mark, TABLE, store, DeltaLog(str(tmp_path / "orders")))


def test_no_mark_is_made_of_a_version_that_is_not_the_newest(source: Path) -> None:
    log = DeltaLog(str(source))
    assert log.tip_mark(2) is None
    assert log.tip_mark(4) is None
    shutil.rmtree(source)
    assert log.tip_mark(3) is None


def test_a_source_that_does_not_answer_is_not_quiet(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    mark, log = marked(store, source), DeltaLog(str(source))

    def broken(_: object) -> None:
        raise SOURCE_UNAVAILABLE(uri=str(source), why="no route")

    monkeypatch.setattr(log, "is_still_tip", broken)
    with raises_row(SOURCE_UNAVAILABLE):
        is_quiet(mark, TABLE, store, log)


def test_it_costs_two_requests_of_onelake(onelake: LoopbackOneLake, source: Path) -> None:
    item = onelake.new_item()
    store = loopback_store(onelake, item)
    item.make_folder(TABLE.folder)
    mark = marked(store, source)
    onelake.log.reset()
    assert is_quiet(mark, TABLE, store, DeltaLog(str(source)))
    assert onelake.log.counts() == {Operation.READ: 1, Operation.HEAD: 1}
    assert sum(record.bytes_out for record in onelake.log.storage if record.status == 304) == 0


def test_it_needs_no_spark() -> None:
    command = "import sys; import mirror_assets.pipeline.next_action; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
