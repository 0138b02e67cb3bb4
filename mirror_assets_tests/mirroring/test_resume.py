"""What an earlier run has staged is taken up, if it is just what would be staged now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from mirror_assets.landing.format import SliceRecord, StagedPart, Verdict
from mirror_assets.landing.names import AttemptFolder
from mirror_assets.landing.parts import add_verdicts, inspect_part, staged_slices, write_record
from mirror_assets.landing.state import Footing
from mirror_assets.mirroring import stage
from mirror_assets.mirroring.compare import reconcile_table
from mirror_assets.mirroring.plan_digest import plan_digest
from mirror_assets.mirroring.planning import plan_table
from mirror_assets.mirroring.queue import stage_keys
from mirror_assets.mirroring.resume import resume_or_stage
from mirror_assets.mirroring.stage import slice_key
from mirror_assets.mirroring.work import TableWork
from mirror_assets.replicator.reconciliation import ReconcileState
from mirror_assets.source.planner import PlannedSlice
from mirror_assets_tests.lab import Lab, key
from mirror_assets_tests.landing.staging import hex_id, new_record, part_bytes, receipt_for
from mirror_assets_tests.mirroring.paper import TABLE, Paper


class Encoded(Exception):
    """The slice is staged anew."""


@pytest.fixture(autouse=True)
def _no_encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(*_: object) -> NoReturn:
        raise Encoded

    if "lab" not in request.fixturenames:
        monkeypatch.setattr("mirror_assets.mirroring.resume.stage_slice", encode)


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """Version 0 has landed, two commits wait."""
    made = Paper(tmp_path)
    made.create()
    made.cover(0)
    made.commit(1, 1)
    made.commit(2, 2)
    return made


def _staged(work: TableWork, planned: PlannedSlice, footing: Footing, attempt: str = "one") -> SliceRecord:
    """A staged attempt of one part, as an earlier run has left it."""
    folder = AttemptFolder(TABLE, footing.generation, hex_id(attempt))
    receipt = receipt_for(footing, slice_key(planned), folder.attempt)
    work.store.create(folder.part("part-00000.parquet"), part_bytes(receipt, 0))
    parts: list[StagedPart] = [inspect_part(work.store, info, info.name) for info in work.store.list(folder.parts)]
    record = new_record(footing, slice_key(planned), folder.attempt, tuple(parts))
    record = record.model_copy(update={"plan": plan_digest(work, planned)})
    write_record(work.store, record)
    return record


def _next(paper: Paper) -> tuple[TableWork, PlannedSlice, Footing]:
    work = paper.work
    plan = plan_table(work)
    return work, plan.slices[0], plan.footing


def test_a_staged_slice_is_taken_up(paper: Paper) -> None:
    work, planned, footing = _next(paper)
    record = _staged(work, planned, footing)
    assert resume_or_stage(work, planned, footing) == record
    assert resume_or_stage(*_next(paper)) == record


def test_one_that_has_passed_comes_first(paper: Paper) -> None:
    work, planned, footing = _next(paper)
    passed = _staged(work, planned, footing, "a")
    passed = add_verdicts(work.store, passed, [Verdict(check="one", passed=True, etags=passed.etags)])
    _staged(work, planned, footing, "b")
    assert resume_or_stage(work, planned, footing) == passed


def _refuse(work: TableWork, record: SliceRecord) -> None:
    add_verdicts(work.store, record, [Verdict(check="one", passed=False, etags=record.etags)])


def _rewrite(work: TableWork, record: SliceRecord) -> None:
    path, part = record.folder.part(record.parts[0].name), record.parts[0]
    work.store.replace(path, work.store.read(path, 1 << 20).data, part.etag)


_SPOILT: dict[str, Callable[[TableWork, SliceRecord], object]] = {
    "a check has refused it": _refuse,
    "a part is gone": lambda work, record: work.store.delete(record.folder.part(record.parts[0].name)),
    "a part was written anew": _rewrite,
    "it was never finished": lambda work, record: work.store.delete(record.folder.record),
}


@pytest.mark.parametrize("spoilt", _SPOILT)
def test_one_that_cannot_land_is_staged_anew(paper: Paper, spoilt: str) -> None:
    work, planned, footing = _next(paper)
    record = _staged(work, planned, footing)
    _SPOILT[spoilt](work, record)
    with pytest.raises(Encoded):
        resume_or_stage(work, planned, footing)
    assert work.store.list(TABLE.scratch)  # another publisher may be moving its parts at this moment


_ELSEWHERE: dict[str, Callable[[Footing], Footing]] = {
    "another incarnation": lambda footing: replace(footing, incarnation="0" * 32),
    "another first number": lambda footing: replace(footing, first_number=footing.first_number + 1),
    "another generation": lambda footing: replace(footing, generation=footing.generation + 1),
    "another life": lambda footing: replace(footing, life=footing.life + 1),
}


@pytest.mark.parametrize("elsewhere", _ELSEWHERE)
def test_one_that_stands_on_something_else_is_staged_anew(paper: Paper, elsewhere: str) -> None:
    work, planned, footing = _next(paper)
    _staged(work, planned, _ELSEWHERE[elsewhere](footing))
    with pytest.raises(Encoded):
        resume_or_stage(work, planned, footing)


@pytest.mark.parametrize(
    "setting",
    [
        "compact: true",
        "files: {compression: snappy}",
        "files: {target_rows: 7}",
        "columns: [id]",
        "slices: {max_commits: 1}",
    ],
)
def test_other_settings_make_another_slice(paper: Paper, setting: str) -> None:
    work, planned, footing = _next(paper)
    _staged(work, planned, footing)
    other = Paper(paper.root, setting)
    other_planned = plan_table(other.work).slices[0]
    assert plan_digest(other.work, other_planned) != plan_digest(work, planned)
    with pytest.raises(Encoded):
        resume_or_stage(other.work, other_planned, footing)


def test_other_commits_make_another_slice(paper: Paper) -> None:
    work, planned, footing = _next(paper)
    record = _staged(work, planned, footing)
    paper.commit(3, 3)
    with pytest.raises(Encoded):
        resume_or_stage(*_next(paper))
    assert resume_or_stage(work, planned, footing) == record


def test_a_run_takes_up_what_the_one_before_it_has_staged(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it failed at a later slice; and what is taken up has the rows of what would be encoded."""
    lab.configure(defaults="slices: {max_commits: 1}")
    lab.mirror()
    lab.change()
    real, encoded = stage.stage_slice, []

    def counted(work: TableWork, planned: PlannedSlice, footing: Footing) -> SliceRecord:
        encoded.append(planned.first)
        if planned.first == 4 and encoded.count(4) == 1:
            raise Encoded
        return real(work, planned, footing)

    monkeypatch.setattr("mirror_assets.mirroring.resume.stage_slice", counted)
    keys = [key(number, number) for number in range(2, 6)]
    with pytest.raises(Encoded):
        list(stage_keys(lab.work, keys))
    first = tuple(record for record in staged_slices(lab.store, TABLE) if record.generation > 1)
    records = list(stage_keys(lab.work, keys))
    assert encoded == [2, 3, 4, 4, 5]
    assert tuple(records[:2]) == first
    assert lab.mirror()
    assert encoded == [2, 3, 4, 4, 5]
    lab.replicator.poll()
    assert reconcile_table(lab.work, lab.replicator).state is ReconcileState.EQUAL
