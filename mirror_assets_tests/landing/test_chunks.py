"""Publishing the chunks of a snapshot: what is covered, what may come next, what a killed load leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.landing.errors import SLICE_MISSING, SLICE_NOT_STAGED
from mirror_assets.landing.format import Chunk, Loading
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import CommitPosition
from mirror_assets.verify.landed import file_continuity
from mirror_assets.zones import LocalStore
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.staging import TABLE, land, land_next, landed_manifest, position_of, stage, stage_chunk
from mirror_assets_tests.landing.zone import require_exactly_once


def _loading(store: LocalStore) -> CommitPosition:
    """A table of which the first of three chunks of version 7 has landed."""
    land(store, stage_chunk(store, position_of(store), end=2, of=3))
    return position_of(store)


def test_nothing_is_covered_before_the_last_chunk(store: LocalStore) -> None:
    position = _loading(store)
    manifest = landed_manifest(store)
    assert (manifest.covered, manifest.covered_commit_ms, manifest.next_number) == (-1, None, 3)
    assert position.loading == Loading(SliceKey(1, 0, 7), Chunk(number=1, of=3, first=0, end=2))
    assert str(position.loading) == "loading: 1 of 3 chunks of version 7"
    land(store, stage_chunk(store, position, end=3, of=3))
    land(store, stage_chunk(store, position_of(store), end=4, of=3))
    require_exactly_once(store, [(7, 10), (7, 21), (7, 30), (7, 40)], covered=7)
    assert position_of(store).loading is None
    assert file_continuity(store, TABLE, None).problems == ()
    land(store, stage(store, position_of(store), last=8))
    require_exactly_once(store, [(7, 10), (7, 21), (7, 30), (7, 40), (8, 0)], covered=8)


def test_changes_wait_for_the_last_chunk(store: LocalStore) -> None:
    position = _loading(store)
    with raises_row(SLICE_MISSING):
        land(store, stage(store, position.after(covered=7, files=0), last=8))


@pytest.mark.parametrize(
    ("last", "chunk"),
    [
        (7, None),
        (8, Chunk(number=2, of=3, first=2, end=3)),
        (7, Chunk(number=2, of=3, first=1, end=3)),
        (7, Chunk(number=2, of=3, first=3, end=4)),
        (7, Chunk(number=3, of=3, first=2, end=3)),
    ],
    ids=["the whole table", "of another version", "overlapping", "leaving a file out", "of another number"],
)
def test_only_the_next_chunk_may_follow(store: LocalStore, last: int, chunk: Chunk | None) -> None:
    record = stage(store, _loading(store), last, 1, "other", chunk)
    with raises_row(SLICE_NOT_STAGED):
        land(store, record)
    assert position_of(store).generation == 2


@pytest.mark.parametrize(
    ("landed", "chunk"),
    [((), Chunk(number=2, of=3, first=2, end=3)), ((7,), Chunk(number=1, of=2, first=0, end=1))],
    ids=["a later chunk at the start of an epoch", "a chunk after changes"],
)
def test_a_load_starts_with_its_first_chunk_and_an_epoch(
    store: LocalStore, landed: tuple[int, ...], chunk: Chunk
) -> None:
    for last in landed:
        land_next(store, last)
    with raises_row(SLICE_NOT_STAGED):
        land(store, stage(store, position_of(store), 9, 1, "one", chunk))


def test_a_generation_that_does_not_go_on_with_the_load_is_found(store: LocalStore) -> None:
    _loading(store)
    land(store, stage_chunk(store, position_of(store), end=3, of=3))
    for path in (TABLE.manifest, TABLE.history(1, 2)):
        file = Path(store.root) / path
        file.write_text(file.read_text().replace('"first": 2', '"first": 1'))
    (problem,) = file_continuity(store, TABLE, None).problems
    assert problem == "generation 2 does not continue the snapshot, loading: 1 of 3 chunks of version 7"
