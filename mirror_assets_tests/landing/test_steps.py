"""Requests as values: what is asked, what is answered, and where errors are thrown.

Control files are read with their ETag and written by compare-and-swap; an unreadable hint can be replaced.
"""

from __future__ import annotations

import pytest

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import encode
from mirror_assets.landing.rebuild import RebuildRecord, RebuildStep
from mirror_assets.landing.steps import (
    ControlFile,
    drive,
    read_control_file,
    write_control_file,
)
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import FileTooLarge

PATH = "_rebuild/t.json"
FIRST, SECOND = (RebuildRecord(table="t", epoch=epoch, step=RebuildStep.LOADING) for epoch in (2, 3))


def read(store: LocalStore, *, is_hint: bool = False) -> ControlFile[RebuildRecord]:
    return drive(read_control_file(RebuildRecord, PATH, is_hint=is_hint), store)


def test_only_the_first_of_two_writers_succeeds(store: LocalStore) -> None:
    missing = read(store)
    assert missing == ControlFile(PATH)
    assert [drive(write_control_file(missing, FIRST), store) for _ in range(2)] == [True, False]
    found = read(store)
    assert (found.record, found.content and found.content.data) == (FIRST, encode(FIRST))
    assert [drive(write_control_file(found, SECOND), store) for _ in range(2)] == [True, False]
    changed = read(store)
    assert changed.record == SECOND
    store.delete(PATH)
    assert not drive(write_control_file(changed, FIRST), store)


def test_only_an_unreadable_hint_can_be_replaced(store: LocalStore) -> None:
    store.create(PATH, b"{}")
    with pytest.raises(ManifestCorrupt, match=PATH):
        read(store)
    hint = read(store, is_hint=True)
    assert hint.record is None
    assert drive(write_control_file(hint, FIRST), store)
    assert read(store).record == FIRST


def test_a_file_that_is_too_large_is_refused(store: LocalStore) -> None:
    store.create(PATH, b"{}")
    with store.local_path(PATH).open("r+b") as file:
        file.truncate(65 << 20)
    with pytest.raises(FileTooLarge):
        read(store)
