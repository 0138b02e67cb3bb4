"""`file_continuity` of what is new: it costs the same at any age, and finds what the whole check finds.

`metadata_unchanged`: the declared keys against those of mirror.yaml and of the manifest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.format import CommittedFile, MarkerCounts, decode
from mirror_assets.landing.generations import Generation, Verified, list_history
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.names import PROCESSED
from mirror_assets.landing.publish import publish
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.verify.landed import (
    CommittedFiles,
    HistoryReader,
    file_continuity,
    incremental_continuity,
    metadata_unchanged,
)
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_DENIED
from mirror_assets_tests.landing.schedules import roll_ups_of
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage
from mirror_assets_tests.landing.zone import consume
from mirror_assets_tests.zones.counting import CountingStore
from mirror_assets_tests.zones.memory import MemoryStore


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    """An empty landing zone."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return CountingStore(tmp_path / "zone")


@pytest.fixture
def verified(store: CountingStore) -> CountingStore:
    """Six generations, of which the first two files were applied; looked at after the fourth."""
    land(store, 3)
    consume(store)
    land(store, 1)
    assert incremental_continuity(store, TABLE, None).passed
    land(store, 1)
    land(store, 1, parts=2)
    return store


def land(store: LocalStore, generations: int, parts: int = 1) -> None:
    for _ in range(generations):
        position = position_of(store)
        drive(publish(TABLE, stage(store, position, position.covered + 3, parts), CHECKS), store)


def path_of(store: LocalStore, number: int) -> Path:
    return store.local_path(TABLE.landing_file(number))


def _rewrite(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(bytes(data))


def _swap(store: LocalStore) -> None:
    first, second, kept = path_of(store, 3), path_of(store, 5), path_of(store, 3).with_name("_kept")
    first.rename(kept)
    second.rename(first)
    kept.rename(second)


_DAMAGES: dict[str, Callable[[LocalStore], object]] = {
    "a file that waited is gone": lambda store: path_of(store, 4).unlink(),
    "a new file is gone": lambda store: path_of(store, 5).unlink(),
    "the last file is gone": lambda store: path_of(store, 7).unlink(),
    "a file that waited was changed": lambda store: _rewrite(path_of(store, 4)),
    "a new file was changed": lambda store: _rewrite(path_of(store, 5)),
    "a new file was cut off": lambda store: path_of(store, 5).write_bytes(b"PAR1"),
    "an old file and a new one were swapped": _swap,
    "a file that was applied is there again": lambda store: shutil.copy(
        store.local_path(f"{TABLE.folder}/{PROCESSED}/{1:020d}.parquet"), path_of(store, 1)
    ),
    "a stranger's file": lambda store: store.create(f"{TABLE.folder}/x.parquet", b""),
    "a new generation is gone": lambda store: store.delete(TABLE.history(1, 5)),
    "the manifest is an older one": lambda store: store.local_path(TABLE.manifest).write_bytes(
        store.local_path(TABLE.history(1, 3)).read_bytes()
    ),
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_the_incremental_check_reports_new_damage_like_the_whole_check(verified: CountingStore, damage: str) -> None:
    _DAMAGES[damage](verified)
    for applied in (2, None):
        whole = file_continuity(verified, TABLE, applied)
        assert incremental_continuity(verified, TABLE, applied) == whole
        assert not whole.passed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (f"{9:020d}.parquet", f"{9:020d}.parquet was not published by this mirror"),
        (f"{'9' * 20}.parquet", f"{'9' * 20}.parquet was not published by this mirror"),
        (f"{8:020d}.parquet.tmp", "not published by this mirror: its name is not 20 digits"),
        ("part-0001.parquet", "not published by this mirror: its name is not 20 digits"),
        ("day=1/part-0001.parquet", "day=1 was not published by this mirror"),
    ],
)
def test_a_foreign_file_is_to_be_moved_and_no_rebuild_is_advised_for_it(
    verified: CountingStore, name: str, text: str
) -> None:
    verified.create(f"{TABLE.folder}/{name}", b"x")
    found = file_continuity(verified, TABLE, None)
    assert text in found.message
    assert "find out which program wrote the file" in found.next_step
    assert found.next_step.endswith("Rebuild the table only if the file was applied.")
    path_of(verified, 4).unlink()
    assert file_continuity(verified, TABLE, None).next_step.endswith("or rebuild the table.")


def test_a_foreign_file_that_was_applied_says_so(verified: CountingStore) -> None:
    verified.create(TABLE.landing_file(9), b"x")
    assert file_continuity(verified, TABLE, 9).message.startswith(f"{TABLE.landing_file(9)} was not published")
    assert "was not published by this mirror, and was applied" in file_continuity(verified, TABLE, 9).message


def test_a_file_that_fabric_ignores_is_no_problem(verified: CountingStore) -> None:
    for name in ("_metadata.json~", "_tmp/part.parquet"):
        verified.create(f"{TABLE.folder}/{name}", b"x")
    assert file_continuity(verified, TABLE, None).passed


def test_nothing_new_is_found_in_order(verified: CountingStore) -> None:
    assert incremental_continuity(verified, TABLE, None) == file_continuity(verified, TABLE, None)
    assert incremental_continuity(verified, TABLE, 2).passed


def test_its_requests_are_the_same_at_any_age(store: CountingStore) -> None:
    """However many generations, and however many files the service has put aside; only what is new is read."""
    requested = []
    with roll_ups_of({"GENERATIONS": 5, "KEPT": 5, "FILES": 100}):
        for _ in range(6):
            land(store, 7)
            consume(store)
            assert incremental_continuity(store, TABLE, None).passed
            land(store, 2)
            store.requested.clear()
            assert incremental_continuity(store, TABLE, None).passed
            requested.append(dict(store.requested))
    assert requested == [{"read": 4, "list": 1, "open": 2, "replace": 1}] * 6


def test_who_was_away_for_long_looks_at_everything(store: CountingStore) -> None:
    with roll_ups_of({"GENERATIONS": 5, "KEPT": 5, "FILES": 100}):
        land(store, 2)
        assert incremental_continuity(store, TABLE, None).passed
        land(store, 20)
        assert incremental_continuity(store, TABLE, None).passed
        store.requested.clear()
        assert incremental_continuity(store, TABLE, None).passed
    assert store.requested == {"read": 2, "list": 1}


def test_a_change_that_a_local_etag_does_not_show_is_found_by_the_whole_check(verified: CountingStore) -> None:
    path, before = path_of(verified, 4), path_of(verified, 4).stat()
    _rewrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert incremental_continuity(verified, TABLE, None).passed
    assert "does not have the content" in file_continuity(verified, TABLE, None).message


def test_a_failure_is_not_remembered(verified: CountingStore) -> None:
    kept = path_of(verified, 5).read_bytes()
    before = verified.read(TABLE.verified, 1 << 20)
    path_of(verified, 5).write_bytes(b"PAR1")
    assert not incremental_continuity(verified, TABLE, None).passed
    assert not file_continuity(verified, TABLE, None).passed
    assert verified.read(TABLE.verified, 1 << 20) == before
    path_of(verified, 5).write_bytes(kept)
    assert incremental_continuity(verified, TABLE, None).passed


def test_an_older_verdict_that_comes_late_costs_only_work(verified: CountingStore) -> None:
    older = verified.read(TABLE.verified, 1 << 20).data
    consume(verified)
    assert incremental_continuity(verified, TABLE, None).passed
    verified.local_path(TABLE.verified).write_bytes(older)
    assert incremental_continuity(verified, TABLE, None).passed
    found = decode(Verified, TABLE.verified, verified.read(TABLE.verified, 1 << 20).data)
    assert (found.generation.generation, [file.number for file in found.waiting]) == (6, [7])


@pytest.mark.parametrize("spoilt", [b"{", b"{}", b""])
def test_an_unreadable_verdict_is_computed_and_stored_again(verified: CountingStore, spoilt: bytes) -> None:
    verified.local_path(TABLE.verified).write_bytes(spoilt)
    assert incremental_continuity(verified, TABLE, None).passed
    found = decode(Verified, TABLE.verified, verified.read(TABLE.verified, 1 << 20).data)
    assert found.generation.generation == 6


def test_a_verdict_of_another_epoch_counts_for_nothing(verified: CountingStore) -> None:
    found = decode(Verified, TABLE.verified, verified.read(TABLE.verified, 1 << 20).data)
    other = found.model_copy(update={"generation": found.generation.model_copy(update={"incarnation": "other"})})
    verified.local_path(TABLE.verified).write_bytes(other.model_dump_json().encode())
    _rewrite(path_of(verified, 4))
    assert not incremental_continuity(verified, TABLE, None).passed


def test_who_may_only_read_can_look(verified: CountingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str, *_: object) -> str:
        raise STORE_DENIED(path=path, why="read only")

    monkeypatch.setattr(verified, "replace", denied)
    assert incremental_continuity(verified, TABLE, None).passed
    assert file_continuity(verified, TABLE, None).passed


def test_before_anything_has_landed(store: CountingStore) -> None:
    assert incremental_continuity(store, TABLE, None).passed
    assert store.head(TABLE.verified) is None
    store.create(TABLE.landing_file(1), b"")
    assert "without a manifest" in incremental_continuity(store, TABLE, None).message


@pytest.mark.parametrize(
    ("landed", "declared", "requested", "passes"),
    [
        (("id",), ("id",), ("id",), True),
        (("id",), ("id",), ("other",), False),
        (("id",), ("id",), (), False),
        (("id",), (), ("id",), False),
        ((), (), (), True),
        ((), (), ("id",), True),
        ((), ("id",), ("id",), True),
        ((), ("id",), (), False),
        ((), ("id",), ("other",), False),
    ],
)
def test_keys_may_be_added_where_none_were_and_nothing_else(
    landed: tuple[str, ...], declared: tuple[str, ...], requested: tuple[str, ...], *, passes: bool
) -> None:
    store = MemoryStore()
    record = stage(store, position_of(store), last=7).model_copy(update={"keys": landed})
    drive(publish(TABLE, record, CHECKS), store)
    store.delete(TABLE.metadata)
    store.create(TABLE.metadata, metadata_bytes(declared))
    assert metadata_unchanged(store, TABLE, requested).passed is passes


def test_a_finished_file_must_have_its_committed_size(verified: CountingStore) -> None:
    path = f"{TABLE.folder}/{PROCESSED}/{1:020d}.parquet"
    size = verified.local_path(path).stat().st_size
    verified.local_path(path).write_bytes(b"PAR1")
    assert file_continuity(verified, TABLE, None).problems == (f"{path} has 4 bytes, and {size} were committed",)


def test_a_finished_file_of_another_program_is_no_problem(verified: CountingStore) -> None:
    verified.create(f"{TABLE.folder}/{PROCESSED}/{'9' * 20}.parquet", b"x")
    assert file_continuity(verified, TABLE, None).passed


def test_one_roll_up_is_in_memory_at_a_time(store: CountingStore) -> None:
    """However many generations there are: numbers and sizes alone are held of all files."""
    with roll_ups_of({"GENERATIONS": 5, "KEPT": 5, "FILES": 100}):
        land(store, 43)
    manifest = drive(read_manifest(TABLE), store)
    assert manifest is not None
    reader = HistoryReader(store, TABLE, manifest.manifest, drive(list_history(TABLE, 1), store))
    held, numbers, seen = list[int](), list[int](), list[ref[Generation]]()
    for generation in reader.generations():
        numbers += [file.number for file in generation.files]
        seen.append(ref(generation))
        held.append(sum(one() is not None for one in seen))
    assert numbers == list(range(1, 44))
    assert (reader.problems, reader.is_whole) == ((), True)
    assert max(held) <= 5 + 2 * 5 + 2


_NUMBERS = st.lists(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=3), min_size=1, max_size=5)


@given(_NUMBERS, st.sets(st.integers(1, 10)), st.lists(st.integers(1, 11)))
def test_committed_files_are_those_of_all_generations_at_once(
    committed: list[list[tuple[int, int]]], waiting: set[int], asked: list[int]
) -> None:
    """Also where damage has two files of one number: the later one counts."""
    generations = [
        cast(
            "Generation",
            SimpleNamespace(
                files=tuple(
                    CommittedFile(number=number, etag="e", bytes=size, sha256=None, markers=MarkerCounts())
                    for number, size in one
                )
            ),
        )
        for one in committed
    ]
    found = CommittedFiles(lambda: generations, waiting)
    whole = {file.number: file for generation in generations for file in generation.files}
    assert found.newest is generations[-1]
    assert found.numbers.tolist() == sorted(whole)
    expected = [whole[number].bytes if number in whole else -1 for number in asked]
    assert found.sizes(np.array(asked, np.int64)).tolist() == expected
    for number in range(1, 11):
        assert found.file(number) == (whole.get(number) if number in waiting else None)
        kept = [(file, one) for one in generations for file in one.files if file.number == number and number in waiting]
        assert found.records.get(number, []) == kept
