"""The doctor finds a sound store sound, and each broken promise where it is broken."""

from __future__ import annotations

import pytest

from mirror_assets.errors import MirrorError
from mirror_assets.zones import FileInfo, Store
from mirror_assets.zones.errors import STORE_DENIED, STORE_REFUSED, STORE_UNAVAILABLE
from mirror_assets.zones.probe import QUESTIONS, Diagnosis, examine
from mirror_assets_tests.landing.mutants import CarelessCreate, CarelessSource, CarelessSwap, CarelessTarget
from mirror_assets_tests.zones.memory import MemoryStore


def diagnoses(store: Store) -> list[Diagnosis]:
    return list(examine(store, "scratch", lambda: "heard"))


def failed(store: Store) -> list[str]:
    return [found.question for found in diagnoses(store) if not found.passed]


def test_a_sound_store_passes_and_is_left_as_it_was(store: Store) -> None:
    found = diagnoses(store)
    assert [one.question for one in found if not one.passed] == []
    assert len(found) == len(QUESTIONS) + 1
    assert store.list("scratch") == []


class Copies(MemoryStore):
    def rename(self, source: str, target: str, etag: str) -> None:
        data = self.read(source, 1 << 30).data
        super().rename(source, target, etag)
        self._put(source, data)
        self._born[source] -= 1


class NewEtags(MemoryStore):
    def rename(self, source: str, target: str, etag: str) -> None:
        super().rename(source, target, etag)
        self._put(target, self.read(target, 1 << 30).data)


class ListsLate(MemoryStore):
    def list(self, folder: str) -> list[FileInfo]:
        return super().list(folder)[:-1]


class KeepsFolders(MemoryStore):
    def delete_tree(self, folder: str, identity: str | None = None) -> None:
        """It forgets to."""


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (CarelessCreate(), "written only where there is none"),
        (CarelessSwap(), "replaced only while it has the ETag"),
        (CarelessSource(), "refuse a source that has changed"),
        (CarelessTarget(), "refuse a target that is taken"),
        (Copies(), "does a rename move a file"),
        (NewEtags(), "keep its ETag"),
        (ListsLate(), "listing show new files"),
        (KeepsFolders(), "a deleted folder removed"),
    ],
)
def test_a_broken_promise_is_found(store: MemoryStore, words: str) -> None:
    assert any(words in question for question in failed(store))


class Down(MemoryStore):
    """A store whose writes fail with the error, from the write with this number on."""

    def __init__(self, error: MirrorError, first: int = 0) -> None:
        super().__init__()
        self._error, self._left = error, first

    def create(self, path: str, data: bytes) -> str:
        if self._left == 0:
            raise self._error
        self._left -= 1
        return super().create(path, data)


@pytest.mark.parametrize(
    "error", [STORE_UNAVAILABLE(path="p", why="it is down"), STORE_DENIED(path="p", why="it is down")]
)
@pytest.mark.parametrize("first", [0, 5])
def test_an_error_that_concerns_all_requests_ends_the_questions(error: MirrorError, first: int) -> None:
    *before, last = diagnoses(Down(error, first))
    assert (last.passed, last.ends, last.next_step) == (False, True, error.next_step)
    assert last.saw.endswith("it is down (heard)")
    assert all(one.passed and not one.ends for one in before)
    assert len(before) == (0 if first == 0 else 2)


def test_a_refusal_of_one_request_ends_nothing() -> None:
    found = diagnoses(Down(STORE_REFUSED(path="p", answer="400 UnsupportedHeader")))
    assert [one.passed for one in found] == [False] * len(QUESTIONS) + [True]
    assert not any(one.ends for one in found)
