"""The file of problems in a landing zone: compare-and-swap, and what a damaged file does."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.errors import RetryError
from mirror_assets.landing import problems
from mirror_assets.landing.names import PROBLEMS
from mirror_assets.landing.problems import Mute, ProblemFile, ProblemStore
from mirror_assets.zones import LocalStore


def _muted(file: ProblemFile, subject: str) -> ProblemFile:
    return file.model_copy(update={"mutes": (*file.mutes, Mute(subject=subject, until_ms=5))})


def test_each_change_is_a_generation_and_no_change_writes_nothing(tmp_path: Path) -> None:
    store = ProblemStore(LocalStore(tmp_path))
    assert store.read() == ProblemFile()
    before, after = store.change(lambda file: file)
    assert before == after == ProblemFile()
    assert not (tmp_path / PROBLEMS).exists()
    store.change(lambda file: _muted(file, "a"))
    before, after = store.change(lambda file: _muted(file, "b"))
    assert (before.generation, after.generation) == (1, 2)
    assert store.read() == after
    assert after.muted("b", 4) is not None
    assert after.muted("b", 5) is None


def test_a_change_is_repeated_when_another_process_was_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, others = ProblemStore(LocalStore(tmp_path)), ["a", "b"]

    def change(file: ProblemFile) -> ProblemFile:
        if others:
            name = others.pop()
            ProblemStore(LocalStore(tmp_path)).change(lambda found: _muted(found, name))
        return _muted(file, "c")

    _, after = store.change(change)
    assert [one.subject for one in after.mutes] == ["b", "a", "c"]
    monkeypatch.setattr(problems, "write_control_file", lambda *_: iter(()))
    with pytest.raises(RetryError, match="changed by other processes 20 times"):
        store.change(lambda file: _muted(file, "d"))


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / PROBLEMS).parent.mkdir()
    (tmp_path / PROBLEMS).write_text("{")
    store = ProblemStore(LocalStore(tmp_path))
    assert store.read() == ProblemFile()
    store.change(lambda file: _muted(file, "a"))
    assert len(store.read().mutes) == 1
