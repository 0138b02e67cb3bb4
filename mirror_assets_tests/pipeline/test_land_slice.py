"""What staging a run of slices costs besides encoding them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.format import ChangeCounts, Column, SliceRecord
from mirror_assets.landing.staged_parts import write_record
from mirror_assets.landing.state import CommitPosition
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import stage_range, staged_ahead
from mirror_assets.pipeline.slice_source import planned_binding, slice_key
from mirror_assets.source.commits import SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.planner import PlannedSlice
from mirror_assets_tests.errors import raises
from mirror_assets_tests.lab import key
from mirror_assets_tests.landing.staging import hex_id, new_record
from mirror_assets_tests.pipeline.paper import SCHEMA, Paper
from mirror_assets_tests.source.handmade import metadata_action

_COLUMNS = (Column(name="id", type="bigint"), Column(name="name", type="string"))


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

    def staged(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
        compared.append(planned.compared is not None)
        return _without_parts(context, planned, position)

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", staged)
    list(stage_range(paper.context, [key(number, number) for number in range(1, 4)]))
    assert compared == [False, False, True]


def _without_parts(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
    """Staged without Spark."""
    record = new_record(position, slice_key(planned), hex_id(str(planned.first)), ())
    update = {
        "columns": _COLUMNS,
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
