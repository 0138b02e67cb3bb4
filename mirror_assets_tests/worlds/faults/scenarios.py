"""What a process is doing when something goes wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import (
    RebuildStep,
    advance_rebuild,
    begin_rebuild,
    drop_table_folder,
    read_rebuild,
)
from mirror_assets.landing.recover import recover
from mirror_assets.landing.staged_parts import add_verdicts, upload_parts, write_record
from mirror_assets.landing.state import CommitPosition
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore, Store
from mirror_assets_tests.landing.staging import CHECKS, TABLE, hex_id, position_of, stage, with_verdicts
from mirror_assets_tests.worlds.faults.bench import Bench

Process = Callable[[Store], object]
Contents = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Work:
    """What the process does, from its start; and what has landed when it is done: contents, and the covered version."""

    process: Process
    contents: Contents
    covered: int


@dataclass(frozen=True)
class Scenario:
    """A story that ends with work to do on the bench; `files` is a folder of this machine for what is uploaded."""

    name: str
    prepare: Callable[[Bench, Path], Work]

    def __str__(self) -> str:
        return self.name


def landing(record: SliceRecord) -> Process:
    return lambda store: drive(publish(TABLE, record, CHECKS), store)


def staged(bench: Bench, last: int, parts: int, position: CommitPosition | None = None) -> SliceRecord:
    return stage(bench.store, position or position_of(bench.store), last, parts)


def landed_before(bench: Bench, *slices: tuple[int, int]) -> Contents:
    """Land slices, each given by its last version and its parts; the service takes what it has processed."""
    for last, parts in slices:
        landing(staged(bench, last, parts))(bench.store)
        bench.consume()
    return tuple((last, part) for last, parts in slices for part in range(parts))


def parts_of(last: int, parts: int) -> Contents:
    return tuple((last, part) for part in range(parts))


def _first(bench: Bench, _: Path) -> Work:
    return Work(landing(staged(bench, 7, 3)), parts_of(7, 3), 7)


def _increment(bench: Bench, _: Path) -> Work:
    before = landed_before(bench, (5, 1), (7, 3))
    return Work(landing(staged(bench, 8, 2)), before + parts_of(8, 2), 8)


def _without_parts(bench: Bench, _: Path) -> Work:
    before = landed_before(bench, (7, 2))
    return Work(landing(staged(bench, 9, 0)), before, 9)


def _staging(bench: Bench, files: Path) -> Work:
    """A part is uploaded in chunks, recorded and judged, each start under a new attempt; nothing is published."""
    before, stager = landed_before(bench, (7, 1)), Stager(bench, LocalStore(files))
    return Work(stager.stage, before, 7)


def _upload(bench: Bench, files: Path) -> Work:
    before, stager = landed_before(bench, (7, 1)), Stager(bench, LocalStore(files))
    return Work(stager.stage_and_publish, before + parts_of(8, 1), 8)


class Stager:
    """Stages the next slice by upload from a folder of this machine, as a run does."""

    def __init__(self, bench: Bench, local_staging: LocalStore) -> None:
        self._bench, self._local_staging = bench, local_staging
        self._attempts = (f"upload {number}" for number in itertools.count())

    def stage_and_publish(self, store: Store) -> None:
        """Recover; then stage and publish, unless that has been done."""
        drive(recover(TABLE), store)
        if position_of(store).covered < 8:
            landing(self.stage(store))(store)

    def stage(self, store: Store) -> SliceRecord:
        """The record of a new attempt; one that fails is cleared away."""
        local = stage(
            self._local_staging, position := position_of(store), position.covered + 1, attempt=next(self._attempts)
        )
        try:
            parts = upload_parts(self._local_staging, store, local.folder, local.parts)
            record = local.model_copy(update={"parts": parts, "verdicts": ()})
            write_record(store, record)
        except MirrorError:
            store.delete_tree(local.folder.path)
            raise
        return add_verdicts(store, record, with_verdicts(record).verdicts)


def _rebuild(bench: Bench, _: Path) -> Work:
    landed_before(bench, (5, 2), (7, 2))
    snapshot = staged(bench, 8, 2, CommitPosition(2, hex_id("second epoch"), generation=1, first_number=1, covered=-1))
    return Work(lambda store: _rebuilt(store, snapshot), parts_of(8, 2), 8)


def _rebuilt(store: Store, snapshot: SliceRecord) -> None:
    """As `rebuild_table` does, with a mirror that follows at once; a finished rebuild is not begun again."""
    known = drive(read_rebuild(TABLE), store)
    if known is not None and not known.is_running:
        return
    record = drive(begin_rebuild(TABLE), store)
    if record.step is RebuildStep.STAGING:
        record = drive(advance_rebuild(TABLE, record, RebuildStep.DROPPING), store)
    if record.step is RebuildStep.DROPPING:
        drive(drop_table_folder(TABLE, record), store)
        record = drive(advance_rebuild(TABLE, record, RebuildStep.LOADING), store)
    drive(publish(TABLE, snapshot, CHECKS, record.epoch), store)
    if record.step is RebuildStep.LOADING:
        record = drive(advance_rebuild(TABLE, record, RebuildStep.RETURNING), store)
    drive(advance_rebuild(TABLE, record, RebuildStep.FINISHED), store)


SCENARIOS = (
    Scenario("first slice of three files", _first),
    Scenario("two files after the service moved three", _increment),
    Scenario("slice without parts", _without_parts),
    Scenario("part staged in chunks", _staging),
    Scenario("part staged in chunks and published", _upload),
    Scenario("rebuild", _rebuild),
)
