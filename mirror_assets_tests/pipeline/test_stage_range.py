"""What staging a run of slices costs besides encoding them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.format import Column, SliceRecord
from mirror_assets.landing.staged_parts import write_record
from mirror_assets.landing.state import CommitPosition
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan import slice_key
from mirror_assets.pipeline.stage_range import stage_range, staged_ahead
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.source_state import SourceState
from mirror_assets_tests.errors import raises
from mirror_assets_tests.lab import key
from mirror_assets_tests.landing.staging import hex_id, new_record
from mirror_assets_tests.pipeline.paper import Paper

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
    assert loads == ([None] if changes == "feed" else [None, 0])  # row tracking looks at the covered version, too
    assert [record.slice for record in staged_ahead(paper.context)] == [record.slice for record in records if record]


def _without_parts(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
    """Staged without Spark."""
    record = new_record(position, slice_key(planned), hex_id(str(planned.first)), ())
    update = {"columns": _COLUMNS, "source_schema": planned.schema_string, "source_table_id": planned.table_id}
    record = record.model_copy(update=update)
    write_record(context.store, record)
    return record


def test_a_slice_that_the_source_does_not_have_yet_is_refused(tmp_path: Path) -> None:
    paper = Paper(tmp_path, "changes: feed")
    paper.create()
    paper.cover(0)
    with raises(SettingError, ErrorCode.NO_SLICE, match="is not one slice: the source has no such commit"):
        list(stage_range(paper.context, [key(1, 2)]))
