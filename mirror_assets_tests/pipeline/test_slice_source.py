"""A staged slice lands, and is taken up, only under the settings that made it, whatever the clocks of the hosts say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.errors import SLICE_NOT_STAGED, SLICE_OUTDATED
from mirror_assets.landing.format import ChangeCounts, CheckVerdict, SliceRecord, encode
from mirror_assets.landing.names import AttemptFolder, attempt_id, attempt_ms
from mirror_assets.landing.publish import Outcome
from mirror_assets.landing.staged_parts import (
    add_verdicts,
    clear_refused,
    inspect_part,
    staged_folders,
    staged_slices,
    write_record,
)
from mirror_assets.landing.state import CommitPosition
from mirror_assets.pipeline import stage
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import publish_slice, stage_range, staged_ahead
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.slice_source import chunk_of, is_bound, planned_binding, slice_key
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.source.batching import Compared
from mirror_assets.source.commits import SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.planner import PlannedSlice
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import Lab, key
from mirror_assets_tests.landing.staging import hex_id, new_record, part_bytes, receipt_for
from mirror_assets_tests.pipeline.paper import COLUMNS, SCHEMA, TABLE, Paper
from mirror_assets_tests.source.handmade import metadata_action

MASK = "columns: {name: 'sha2(name, 256)'}"
_YEAR_MS = 365 * 86_400_000
_NOW_MS = 1_800_000_000_000


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """Version 0 has landed, two commits wait."""
    made = Paper(tmp_path)
    made.create_waiting()
    return made


def _write(
    context: TableContext,
    planned: PlannedSlice,
    position: CommitPosition,
    attempt: str,
    *passed: str,
    settings: TableSettings | None = None,
) -> SliceRecord:
    """Write a staged attempt of one part, as an earlier run has left it, with these settings or the table's own."""
    folder = AttemptFolder(TABLE, position.generation, attempt)
    receipt = receipt_for(position, slice_key(planned), attempt)
    context.store.create(folder.part("part-00000.parquet"), part_bytes(receipt, 0))
    parts = tuple(inspect_part(context.store, info, info.name) for info in context.store.list(folder.parts))
    record = new_record(position, slice_key(planned), attempt, parts)
    bound = {
        "source_table_id": planned.table_id,
        "source_schema": planned.schema_string,
        "chunk": chunk_of(planned),
        "binding": planned_binding(settings or context.table, planned),
        "verdicts": tuple(CheckVerdict(check=check, passed=True, etags=record.etags) for check in passed),
    }
    record = record.model_copy(update=bound)
    write_record(context.store, record)
    return record


def _stage(context: TableContext, made_at: int, settings: TableSettings | None = None) -> SliceRecord:
    """Stage the next slice on a host with this clock, and pass its checks."""
    plan = plan_table(context)
    (planned,), position = plan.slices, plan.position
    attempt = attempt_id(
        made_at, b"0123456789", clear_refused(context.store, staged_folders(context.store, TABLE, position.generation))
    )
    return _write(context, planned, position, attempt, *BLOCKING_CHECKS, settings=settings)


@pytest.mark.parametrize("setting", [MASK, "where: id > 3", "compact: true", "columns: [id]", "changes: files"])
def test_a_slice_of_other_settings_does_not_land(paper: Paper, setting: str) -> None:
    """Above all not without a mask that was added since it was staged."""
    record = _stage(paper.context, _NOW_MS)
    other = Paper(paper.root, setting).context
    with raises_row(SLICE_OUTDATED, match="materialize changes for this partition again"):
        publish_slice(other, record.slice)
    assert staged_ahead(other) == ()
    assert publish_slice(paper.context, record.slice).outcome is Outcome.LANDED


def test_a_committed_generation_is_finished_under_any_settings(paper: Paper, monkeypatch: pytest.MonkeyPatch) -> None:
    record = _stage(paper.context, _NOW_MS)

    def killed(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as until_committed:
        until_committed.setattr("mirror_assets.landing.publish.land", killed)
        with pytest.raises(KeyboardInterrupt):
            publish_slice(paper.context, record.slice)
    landed = paper.zone / TABLE.landing_file(record.first_number)
    assert not landed.exists()
    assert publish_slice(Paper(paper.root, MASK).context, record.slice).outcome is Outcome.COVERED
    assert landed.exists()


def test_a_slice_that_is_bound_to_nothing_does_not_land(paper: Paper) -> None:
    record = _stage(paper.context, _NOW_MS)
    unbound = record.model_copy(update={"binding": None})
    path = record.folder.record
    found = paper.context.store.head(path)
    assert found is not None
    paper.context.store.replace(path, encode(unbound), found.etag)
    with raises_row(SLICE_OUTDATED):
        publish_slice(paper.context, record.slice)


def test_without_a_staged_slice_it_is_not_outdated(paper: Paper) -> None:
    record = _stage(paper.context, _NOW_MS)
    paper.context.store.delete_tree(record.folder.path)
    with raises_row(SLICE_NOT_STAGED):
        publish_slice(paper.context, record.slice)


@pytest.mark.parametrize("years", [-40, 0, 40])
def test_the_clock_of_a_host_lands_no_other_settings(paper: Paper, years: int) -> None:
    masked = Paper(paper.root, MASK).context
    _stage(paper.context, _NOW_MS + years * _YEAR_MS)
    new = _stage(paper.context, _NOW_MS, masked.table)
    assert publish_slice(masked, new.slice).manifest.attempt == new.attempt


@pytest.mark.parametrize("years", [-40, 0, 40])
def test_the_newest_attempt_sorts_last_whatever_the_clocks(paper: Paper, years: int) -> None:
    first = _stage(paper.context, _NOW_MS + years * _YEAR_MS)
    second = _stage(paper.context, _NOW_MS)
    assert first.attempt < second.attempt
    assert [record.attempt for record in staged_slices(paper.context.store, TABLE, 2)] == [
        first.attempt,
        second.attempt,
    ]
    assert staged_ahead(paper.context) == (second,)
    if years <= 0:
        assert attempt_ms(second.attempt) == max(_NOW_MS, attempt_ms(first.attempt) + 1)


def test_an_attempt_at_the_end_of_time_is_no_error() -> None:
    last = attempt_id(2**60, b"0123456789")
    assert attempt_id(_NOW_MS, b"0123456789", last)[:12] == last[:12] == "f" * 12


class Encoded(Exception):
    """The slice is staged anew."""


@pytest.fixture(autouse=True)
def _no_encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(*_: object) -> NoReturn:
        raise Encoded

    if not {"lab", "waiting"} & set(request.fixturenames):
        monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", encode)


def _next(paper: Paper) -> tuple[TableContext, PlannedSlice, CommitPosition]:
    context = paper.context
    plan = plan_table(context)
    return context, plan.slices[0], plan.position


def test_a_staged_slice_is_used_again_first_one_that_has_passed(paper: Paper) -> None:
    context, planned, position = _next(paper)
    record = _write(context, planned, position, hex_id("a"))
    assert stage_slice(context, planned, position) == record
    assert stage_slice(*_next(paper)) == record
    passed = add_verdicts(context.store, record, [CheckVerdict(check="one", passed=True, etags=record.etags)])
    _write(context, planned, position, hex_id("b"))
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
    record = _write(context, planned, position, hex_id("one"))
    _SPOILT[spoilt](context, record)
    with pytest.raises(Encoded):
        stage_slice(context, planned, position)
    assert context.store.list(TABLE.scratch)  # another publisher may be moving its parts at this moment


def test_a_staged_slice_of_another_position_is_staged_again(paper: Paper) -> None:
    context, planned, position = _next(paper)
    _write(context, planned, replace(position, incarnation="0" * 32), hex_id("one"))
    with pytest.raises(Encoded):
        stage_slice(context, planned, position)


@pytest.mark.parametrize("setting", ["where: id > 3", "slices: {max_commits: 1}"])
def test_other_settings_make_another_slice(paper: Paper, setting: str) -> None:
    """The same commits in other slices also; which settings bind a slice is tested where it is published."""
    context, planned, position = _next(paper)
    _write(context, planned, position, hex_id("one"))
    other = Paper(paper.root, setting)
    if setting.startswith("slices"):
        planned = plan_table(other.context).slices[0]
    with pytest.raises(Encoded):
        stage_slice(other.context, planned, position)


@pytest.mark.parametrize("setting", ["files: {target_rows: 7}", "lag: {warn_seconds: 7}"])
def test_settings_that_change_no_value_make_the_same_slice(paper: Paper, setting: str) -> None:
    context, planned, position = _next(paper)
    record = _write(context, planned, position, hex_id("one"))
    other = Paper(paper.root, setting).context
    assert stage_slice(other, plan_table(other).slices[0], position) == record


def test_another_release_makes_another_slice(paper: Paper, monkeypatch: pytest.MonkeyPatch) -> None:
    context, planned, position = _next(paper)
    record = _write(context, planned, position, hex_id("one"))
    monkeypatch.setattr("mirror_assets.pipeline.slice_source.version", lambda _: "0.0.1")
    assert not is_bound(context.table, record)


def test_why_a_slice_is_read_by_files_changes_no_row(paper: Paper) -> None:
    context, planned, _ = _next(paper)
    compared = replace(planned, compared=Compared(0, 2, 1, 1, "the feed was off"))
    assert planned_binding(context.table, compared) == planned_binding(context.table, planned)


def test_other_commits_make_another_slice(paper: Paper) -> None:
    context, planned, position = _next(paper)
    record = _write(context, planned, position, hex_id("one"))
    paper.commit(3, 3)
    with pytest.raises(Encoded):
        stage_slice(*_next(paper))
    assert stage_slice(context, planned, position) == record


def test_a_run_takes_up_what_the_one_before_it_has_staged(waiting: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it failed at a later slice; and what is taken up has the rows of what would be encoded."""
    waiting.configure(defaults="slices: {max_commits: 1}")
    real, encoded = stage.stage_attempt, []

    def counted(context: TableContext, planned: PlannedSlice, *others: object) -> SliceRecord:
        encoded.append(planned.first)
        if planned.first == 4 and encoded.count(4) == 1:
            raise Encoded
        return real(context, planned, *others)  # type: ignore[arg-type]

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


@pytest.mark.parametrize("changes", ["feed", "row_tracking"])
def test_the_source_is_loaded_once_for_all_slices_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: str
) -> None:
    paper = Paper(tmp_path, f"changes: {changes}")
    paper.create(delta__enableRowTracking="true")
    paper.cover(0)
    for version in range(1, 6):
        paper.commit(version, version)
    loads, real = [], DeltaLog.state

    def counted(log: DeltaLog, version: int | None = None) -> SourceState:
        loads.append(version)
        return real(log, version)

    monkeypatch.setattr(DeltaLog, "state", counted)
    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", _without_parts)
    records = list(stage_range(paper.context, [key(number, number) for number in range(1, 6)]))
    assert [record.slice for record in records if record] == [key(number, number) for number in range(1, 6)]
    assert loads == [None, 0]  # the newest version and the covered one
    assert [record.slice for record in staged_ahead(paper.context)] == [record.slice for record in records if record]


def test_a_slice_after_one_that_only_switched_the_feed_off_is_read_by_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = Paper(tmp_path, "changes: feed")
    paper.create()
    paper.cover(0)
    paper.commit(1, 1)
    paper.commit(2, 2, metadata_action(SCHEMA))
    paper.commit(3, 3)
    compared = list[bool]()

    def staged(context: TableContext, planned: PlannedSlice, position: CommitPosition, _: object) -> SliceRecord:
        compared.append(planned.compared is not None)
        return _without_parts(context, planned, position)

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", staged)
    list(stage_range(paper.context, [key(number, number) for number in range(1, 4)]))
    assert compared == [False, False, True]


def _without_parts(context: TableContext, planned: PlannedSlice, position: CommitPosition, *_: object) -> SliceRecord:
    """Staged without Spark."""
    record = new_record(position, slice_key(planned), hex_id(str(planned.first)), ())
    update = {
        "columns": COLUMNS,
        "source_schema": planned.schema_string,
        "source_table_id": planned.table_id,
        "read": ChangeCounts(insert=planned.rows),
        "binding": planned_binding(context.table, planned),
    }
    record = record.model_copy(update=update)
    write_record(context.store, record)
    return record


def test_a_slice_that_the_source_does_not_have_yet_is_refused(tmp_path: Path) -> None:
    paper = Paper(tmp_path, "changes: feed")
    paper.create()
    paper.cover(0)
    with raises(SettingError, ErrorCode.NO_SLICE, match="is not one slice: the source has no such commit"):
        list(stage_range(paper.context, [key(1, 2)]))
