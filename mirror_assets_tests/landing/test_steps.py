"""Requests as values: what is asked, what is answered, and where errors are thrown."""

from __future__ import annotations

import pytest

from mirror_assets.landing.steps import (
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
)
from mirror_assets.zones import LocalStore, PathExists, PathMissing


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
