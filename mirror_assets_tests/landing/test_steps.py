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
    Create,
    DeleteTree,
    Head,
    ListFolder,
    Read,
    ReadReceipt,
    Rename,
    Replace,
    Steps,
    drive,
    read_control_file,
    write_control_file,
)
from mirror_assets.zones import LocalStore, PathExists, PathMissing
from mirror_assets.zones.errors import FileTooLarge

PATH = "_rebuild/t.json"
FIRST, SECOND = (RebuildRecord(table="t", epoch=epoch, step=RebuildStep.LOADING) for epoch in (2, 3))


def tour() -> Steps[list[object]]:
    """One request of every kind."""
    seen: list[object] = [(yield from Read("a/file")), (yield from Head("a/file")), (yield from ListFolder("a"))]
    etag = yield from Create("a/file", b"one")
    content = yield from Read("a/file")
    changed = yield from Replace("a/file", b"two", etag)
    seen += [content and content.data, etag != changed]
    yield from Rename("a/file", "a/moved", changed)
    moved = yield from Head("a/moved")
    seen += [moved and moved.etag == changed, (yield from ReadReceipt("a/moved"))]
    yield from DeleteTree("a")
    seen.append((yield from ListFolder("")))
    return seen


def test_every_request_is_answered(store: LocalStore) -> None:
    assert drive(tour(), store) == [None, None, [], b"one", True, True, None, []]


def test_a_stores_refusal_is_thrown_where_it_was_asked(store: LocalStore) -> None:
    def steps() -> Steps[str]:
        try:
            yield from Create("a/file", b"again")
        except PathExists as refused:
            return str(refused.facts["path"])
        return "not refused"

    assert drive(steps(), store) == "not refused"
    assert drive(steps(), store) == "a/file"


def test_an_error_that_the_steps_do_not_handle_goes_up(store: LocalStore) -> None:
    def steps() -> Steps[None]:
        yield from Rename("none", "other", "etag")

    with pytest.raises(PathMissing):
        drive(steps(), store)


def test_steps_that_ask_nothing_have_a_result(store: LocalStore) -> None:
    def steps() -> Steps[int]:
        yield from ()
        return 5

    assert drive(steps(), store) == 5


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
