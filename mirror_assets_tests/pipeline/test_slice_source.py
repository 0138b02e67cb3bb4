"""A staged slice lands only under the settings that made it, whatever the clocks of the hosts say."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.landing.errors import SLICE_NOT_STAGED, SLICE_OUTDATED
from mirror_assets.landing.format import CheckVerdict, SliceRecord, encode
from mirror_assets.landing.names import AttemptFolder, attempt_id, attempt_ms
from mirror_assets.landing.publish import Outcome
from mirror_assets.landing.staged_parts import clear_refused, inspect_part, staged_slices, write_record
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import publish_slice, staged_ahead
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.slice_source import planned_binding, slice_key
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.staging import new_record, part_bytes, receipt_for
from mirror_assets_tests.pipeline.paper import TABLE, Paper

MASK = "columns: {name: 'sha2(name, 256)'}"
_YEAR_MS = 365 * 86_400_000
_NOW_MS = 1_800_000_000_000


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """Version 0 has landed, two commits wait."""
    made = Paper(tmp_path)
    made.create_waiting()
    return made


def _stage(context: TableContext, made_at: int, settings: TableSettings | None = None) -> SliceRecord:
    """Stage the next slice on a host with this clock, with these settings or the table's own, and pass its checks."""
    plan = plan_table(context)
    (planned,), position = plan.slices, plan.position
    attempt = attempt_id(made_at, b"0123456789", clear_refused(context.store, TABLE, position.generation))
    folder = AttemptFolder(TABLE, position.generation, attempt)
    data = part_bytes(receipt_for(position, slice_key(planned), attempt), 0)
    context.store.create(folder.part("part-00000.parquet"), data)
    (part,) = [inspect_part(context.store, info, info.name) for info in context.store.list(folder.parts)]
    record = new_record(position, slice_key(planned), attempt, (part,))
    verdicts = tuple(CheckVerdict(check=check, passed=True, etags=record.etags) for check in BLOCKING_CHECKS)
    made = {
        "source_table_id": planned.table_id,
        "source_schema": planned.schema_string,
        "binding": planned_binding(settings or context.table, planned),
        "verdicts": verdicts,
    }
    record = record.model_copy(update=made)
    write_record(context.store, record)
    return record


def test_a_slice_lands_under_the_settings_that_made_it(paper: Paper) -> None:
    context = paper.context
    record = _stage(context, _NOW_MS)
    assert staged_ahead(context) == (record,)
    published = publish_slice(context, record.slice)
    assert (published.outcome, published.manifest.attempt) == (Outcome.LANDED, record.attempt)


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
        until_committed.setattr("mirror_assets.landing.publish.redo", killed)
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
