"""Slices that are staged ahead cost no reads but their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.staged_parts import clear_refused, fitting_slices, staged_folders, staged_slices
from mirror_assets_tests.landing.staging import TABLE, land, position_of, stage
from mirror_assets_tests.zones.counting import CountingStore

_AHEAD = 20


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    """A landing zone with twenty slices staged, one behind the other."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    made = CountingStore(tmp_path / "zone")
    position = position_of(made)
    for last in range(7, 7 + _AHEAD):
        position = position.behind(stage(made, position, last))
    made.requested.clear()
    return made


def test_each_is_found_by_its_folders_name(store: CountingStore) -> None:
    (record,) = fitting_slices(store, staged_folders(store, TABLE), TABLE, SliceKey(1, 0, 7), position_of(store))
    assert record.slice.last == 7
    assert store.requested == {"read": 2, "list": 1}  # the manifest, and its own record


def test_landing_them_all_reads_each_record_once(store: CountingStore) -> None:
    for last in range(7, 7 + _AHEAD):
        position = position_of(store)
        (record,) = fitting_slices(
            store, staged_folders(store, TABLE), TABLE, SliceKey(1, position.covered + 1, last), position
        )
        land(store, record)
    assert store.requested["read"] <= 8 * _AHEAD


def test_refused_ones_are_looked_for_in_their_generation_only(store: CountingStore) -> None:
    clear_refused(store, staged_folders(store, TABLE, 3))
    assert store.requested == {"read": 1, "list": 1}
    assert len(staged_slices(store, TABLE)) == _AHEAD
