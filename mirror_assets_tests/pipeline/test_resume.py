"""What an earlier run has staged is taken up, if it is just what would be staged now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from mirror_assets.landing.format import CheckVerdict, SliceRecord, StagedPart
from mirror_assets.landing.names import AttemptFolder
from mirror_assets.landing.staged_parts import add_verdicts, inspect_part, staged_slices, write_record
from mirror_assets.landing.state import CommitPosition
from mirror_assets.pipeline import stage
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import stage_range
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.slice_source import chunk_of, is_bound, planned_binding, slice_key
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.source.batching import Compared
from mirror_assets.source.planner import PlannedSlice
from mirror_assets_tests.lab import Lab, key
from mirror_assets_tests.landing.staging import hex_id, new_record, part_bytes, receipt_for
from mirror_assets_tests.pipeline.paper import TABLE, Paper


class Encoded(Exception):
    """The slice is staged anew."""


@pytest.fixture(autouse=True)
def _no_encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(*_: object) -> NoReturn:
        raise Encoded

    if not {"lab", "waiting"} & set(request.fixturenames):
        monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", encode)


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """Version 0 has landed, two commits wait."""
    made = Paper(tmp_path)
    made.create_waiting()
    return made


def _staged(
    context: TableContext, planned: PlannedSlice, position: CommitPosition, attempt: str = "one"
) -> SliceRecord:
    """A staged attempt of one part, as an earlier run has left it."""
    folder = AttemptFolder(TABLE, position.generation, hex_id(attempt))
    receipt = receipt_for(position, slice_key(planned), folder.attempt)
    context.store.create(folder.part("part-00000.parquet"), part_bytes(receipt, 0))
    parts: list[StagedPart] = [
        inspect_part(context.store, info, info.name) for info in context.store.list(folder.parts)
    ]
    record = new_record(position, slice_key(planned), folder.attempt, tuple(parts))
    bound = {
        "source_table_id": planned.table_id,
        "source_schema": planned.schema_string,
        "chunk": chunk_of(planned),
        "binding": planned_binding(context.table, planned),
    }
    record = record.model_copy(update=bound)
    write_record(context.store, record)
    return record


def _next(paper: Paper) -> tuple[TableContext, PlannedSlice, CommitPosition]:
    context = paper.context
    plan = plan_table(context)
    return context, plan.slices[0], plan.position


def test_a_staged_slice_is_used_again_first_one_that_has_passed(paper: Paper) -> None:
    context, planned, position = _next(paper)
    record = _staged(context, planned, position, "a")
    assert stage_slice(context, planned, position) == record
    assert stage_slice(*_next(paper)) == record
    passed = add_verdicts(context.store, record, [CheckVerdict(check="one", passed=True, etags=record.etags)])
    _staged(context, planned, position, "b")
    assert stage_slice(context, planned, position) == passed


def _refuse(context: TableContext, record: SliceRecord) -> None:
    add_verdicts(context.store, record, [CheckVerdict(check="one", passed=False, etags=record.etags)])


def _rewrite(context: TableContext, record: SliceRecord) -> None:
    path, part = record.folder.part(record.parts[0].name), record.parts[0]
    context.store.replace(path, context.store.read(path, 1 << 20).data, part.etag)


_SPOILT: dict[str, Callable[[TableContext, SliceRecord], object]] = {
    "a check has refused it": _refuse,
    "a part is gone": lambda context, record: context.store.delete(record.folder.part(record.parts[0].name)),
    "a part was written anew": _rewrite,
    "it was never finished": lambda context, record: context.store.delete(record.folder.record),
}


@pytest.mark.parametrize("spoilt", _SPOILT)
def test_a_staged_slice_that_cannot_land_is_staged_again(paper: Paper, spoilt: str) -> None:
    context, planned, position = _next(paper)
    record = _staged(context, planned, position)
    _SPOILT[spoilt](context, record)
    with pytest.raises(Encoded):
        stage_slice(context, planned, position)
    assert context.store.list(TABLE.scratch)  # another publisher may be moving its parts at this moment


_ELSEWHERE: dict[str, Callable[[CommitPosition], CommitPosition]] = {
    "another incarnation": lambda position: replace(position, incarnation="0" * 32),
    "another first number": lambda position: replace(position, first_number=position.first_number + 1),
    "another generation": lambda position: replace(position, generation=position.generation + 1),
    "another epoch": lambda position: replace(position, epoch=position.epoch + 1),
}


@pytest.mark.parametrize("elsewhere", _ELSEWHERE)
def test_a_staged_slice_of_another_position_is_staged_again(paper: Paper, elsewhere: str) -> None:
    context, planned, position = _next(paper)
    _staged(context, planned, _ELSEWHERE[elsewhere](position))
    with pytest.raises(Encoded):
        stage_slice(context, planned, position)


@pytest.mark.parametrize(
    "setting",
    [
        "compact: true",
        "changes: files",
        "columns: [id]",
        "columns: {name: 'sha2(name, 256)'}",
        "where: id > 3",
        "slices: {max_commits: 1}",
    ],
)
def test_other_settings_make_another_slice(paper: Paper, setting: str) -> None:
    context, planned, position = _next(paper)
    record = _staged(context, planned, position)
    other = Paper(paper.root, setting)
    if setting.startswith("slices"):  # the same commits, in other slices
        planned = plan_table(other.context).slices[0]
    else:
        assert not is_bound(other.context.table, record)
    with pytest.raises(Encoded):
        stage_slice(other.context, planned, position)


@pytest.mark.parametrize("setting", ["files: {target_rows: 7}", "lag: {warn_seconds: 7}"])
def test_settings_that_change_no_value_make_the_same_slice(paper: Paper, setting: str) -> None:
    context, planned, position = _next(paper)
    record = _staged(context, planned, position)
    other = Paper(paper.root, setting).context
    assert stage_slice(other, plan_table(other).slices[0], position) == record


def test_another_release_makes_another_slice(paper: Paper, monkeypatch: pytest.MonkeyPatch) -> None:
    context, planned, position = _next(paper)
    record = _staged(context, planned, position)
    monkeypatch.setattr("mirror_assets.pipeline.slice_source.version", lambda _: "0.0.1")
    assert not is_bound(context.table, record)


def test_why_a_slice_is_read_by_files_changes_no_row(paper: Paper) -> None:
    context, planned, _ = _next(paper)
    compared = replace(planned, compared=Compared(0, 2, 1, 1, "the feed was off"))
    assert planned_binding(context.table, compared) == planned_binding(context.table, planned)


def test_other_commits_make_another_slice(paper: Paper) -> None:
    context, planned, position = _next(paper)
    record = _staged(context, planned, position)
    paper.commit(3, 3)
    with pytest.raises(Encoded):
        stage_slice(*_next(paper))
    assert stage_slice(context, planned, position) == record


def test_a_run_takes_up_what_the_one_before_it_has_staged(waiting: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it failed at a later slice; and what is taken up has the rows of what would be encoded."""
    waiting.configure(defaults="slices: {max_commits: 1}")
    real, encoded = stage.stage_attempt, []

    def counted(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
        encoded.append(planned.first)
        if planned.first == 4 and encoded.count(4) == 1:
            raise Encoded
        return real(context, planned, position)

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", counted)
    keys = [key(number, number) for number in range(2, 6)]
    with pytest.raises(Encoded):
        list(stage_range(waiting.context, keys))
    first = tuple(record for record in staged_slices(waiting.store, TABLE) if record.generation > 1)
    records = list(stage_range(waiting.context, keys))
    assert encoded == [2, 3, 4, 4, 5]
    assert tuple(records[:2]) == first
    assert waiting.mirror()
    assert encoded == [2, 3, 4, 4, 5]
    assert waiting.is_equal
