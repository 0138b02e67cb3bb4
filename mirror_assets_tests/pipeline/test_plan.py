"""What a plan takes of a range, where it begins, and what becomes of a choice of columns; from logs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

from mirror_assets.config.load import parse_config
from mirror_assets.config.setting_values import OnDropColumn
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.format import SliceKind
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline import plan_changes
from mirror_assets.pipeline.next_action import may_rebuild
from mirror_assets.pipeline.plan import TablePlan, plan_key, plan_table
from mirror_assets.pipeline.plan_changes import BaseState, dropped_columns
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets.source.breaks import Break, BreakKind
from mirror_assets.source.commits import Commit
from mirror_assets.source.errors import COLUMN_UNFIT
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import EVERYTHING, Range, parse_range
from mirror_assets.source.source_files import SourceFiles
from mirror_assets.zones import LocalStore
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.pipeline.paper import COLUMNS, FEED, TABLE, Paper
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    file_action,
    metadata_action,
    schema_string,
)

_DAY = 86_400.0
_SCHEMA = schema_string(column("id"), column("name", "string"))


def _paper(root: Path, settings: str = "") -> Paper:
    """Five commits, one a day from 1970-01-02 on."""
    paper = Paper(root, settings)
    paper.create(_DAY)
    for version in range(1, 5):
        paper.commit(version, (version + 1) * _DAY)
    return paper


def _keys(plan: TablePlan) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in plan.slices]


def _stop(plan: TablePlan) -> tuple[BreakKind, int] | None:
    return (plan.stop.kind, plan.stop.version) if plan.stop else None


def _requested(first: str | None = None, last: str | None = None, *, clip: bool = False) -> Range:
    return parse_range(first, last, clip=clip)


@pytest.mark.parametrize(
    ("covered", "requested", "slices"),
    [
        (0, _requested(last="2"), [(1, 2)]),
        (0, _requested("0", "1970-01-04"), [(1, 2)]),
        (0, _requested("1"), [(1, 4)]),
        (0, _requested("1", "3"), [(1, 3)]),
        (0, _requested(last="9", clip=True), [(1, 4)]),
        (0, _requested("9", clip=True), []),
        (3, _requested("1", "2"), []),
        (3, _requested("1", "4"), [(4, 4)]),
    ],
)
def test_slices_end_where_the_range_does_and_covered_versions_are_skipped(
    tmp_path: Path, covered: int, requested: Range, slices: list[tuple[int, int]]
) -> None:
    paper = _paper(tmp_path)
    paper.cover(covered)
    plan = plan_table(paper.context, requested=requested)
    assert (_keys(plan), plan.stop) == (slices, None)


def test_a_range_has_boundaries_leaves_no_gap_and_ends_in_the_table(tmp_path: Path) -> None:
    paper = _paper(tmp_path)
    paper.cover(0)
    assert _keys(plan_table(paper.context, frozenset({1}), _requested(last="2"))) == [(1, 1), (2, 2)]
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="--from 2 would leave out .*, from version 1 on"):
        plan_table(paper.context, requested=_requested("2", "3"))
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="--clip"):
        plan_table(paper.context, requested=_requested(last="9"))


def test_a_first_load_is_taken_at_the_end_of_the_range(tmp_path: Path) -> None:
    (planned,) = plan_table(_paper(tmp_path).context, requested=_requested(last="2")).slices
    assert (planned.is_snapshot, planned.last) == (True, 2)


@pytest.mark.parametrize("start", ["snapshot", "{version: 2}"])
def test_a_first_load_of_an_empty_range_is_nothing(tmp_path: Path, start: str) -> None:
    assert plan_table(_paper(tmp_path, f"start: {start}").context, requested=_requested("9", clip=True)).slices == ()


def test_a_first_load_before_the_feed_was_on_is_refused(tmp_path: Path) -> None:
    paper = Paper(tmp_path)
    paper.create(_DAY, delta__enableChangeDataFeed="false")
    paper.commit(1, 2 * _DAY, metadata_action(_SCHEMA, **FEED))
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="feed was off at version 0"):
        plan_table(paper.context, requested=_requested(last="0"))
    assert _keys(plan_table(paper.context)) == [(0, 1)]


@pytest.mark.parametrize(
    ("start", "slices"),
    [
        ("latest", [(0, 4)]),
        ("{version: 3}", [(0, 2), (3, 4)]),
        ("{version: 5}", [(0, 4)]),
        ("{version: 0}", [(0, 4)]),
        ("{timestamp: 1970-01-04}", [(0, 1), (2, 4)]),
        ("{timestamp: 1970-01-03 23:00:00 -01:00}", [(0, 1), (2, 4)]),
        ("{timestamp: '1970-01-04 00:00:00.001'}", [(0, 2), (3, 4)]),
        ("{timestamp: 1970-01-01}", [(0, 4)]),
    ],
)
def test_a_start_covers_what_lies_before_it_with_a_slice_of_no_rows(
    tmp_path: Path, start: str, slices: list[tuple[int, int]]
) -> None:
    plan = plan_table(_paper(tmp_path, f"start: {start}").context)
    assert _keys(plan) == slices
    assert not any(one.is_snapshot for one in plan.slices)
    first = plan.slices[0]
    everything = start in ("{version: 0}", "{timestamp: 1970-01-01}")
    assert (first.is_start, first.rows > 0, first.parts) == (not everything, everything, 1)
    assert plan.slices[-1].last == plan.state.version


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("{version: 6}", "its newest commit is version 4"),
        ("{timestamp: 1970-01-06 00:00:01}", "version 4, was made before"),
        ("{version: 0}\n    changes: files", "compares versions, and 0 is the first"),
    ],
)
def test_a_start_that_can_not_be_read_is_refused(tmp_path: Path, start: str, why: str) -> None:
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match=why):
        plan_table(_paper(tmp_path, f"start: {start}").context)


@pytest.mark.parametrize(
    ("start", "first"),
    [("{version: 2}", 3), ("{timestamp: 1970-01-04}", 3), ("{version: 0}", 1), ("{timestamp: 1970-01-02}", 1)],
)
def test_a_start_that_is_gone_from_history_is_refused_and_not_rebuilt(tmp_path: Path, start: str, first: int) -> None:
    paper = _paper(tmp_path, f"start: {start}")
    DeltaTable(paper.lake, version=first).create_checkpoint()
    for version in range(first):
        commit_file(paper.lake, version).unlink()
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match=f"its log begins at version {first}"):
        plan_table(paper.context)
    assert not may_rebuild(paper.context)
    assert not paper.zone.exists()
    readable = Paper(tmp_path, f"start: {{version: {first}}}").context
    assert _keys(plan_table(readable)) == [(0, first - 1), (first, 4)]


@pytest.mark.parametrize(("changes", "readable"), [("feed", 3), ("files", 4)])
@pytest.mark.parametrize("start", ["{version: 0}", "{version: 2}"])
def test_the_advised_start_is_one_that_works(tmp_path: Path, start: str, changes: str, readable: int) -> None:
    """Commit 2 is in the log, but the version can't be reconstructed. Comparing versions needs the one before also."""
    paper = _paper(tmp_path, f"changes: {changes}\n    start: {start}")
    DeltaTable(paper.lake, version=3).create_checkpoint()
    for version in range(2):
        commit_file(paper.lake, version).unlink()
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match=rf"set `start: {{version: {readable}}}`, the earliest"):
        plan_table(paper.context)
    advised = Paper(tmp_path, f"changes: {changes}\n    start: {{version: {readable}}}")
    assert _keys(plan_table(advised.context)) == [(0, readable - 1), (readable, 4)]


def test_a_start_where_the_feed_was_off_is_refused(tmp_path: Path) -> None:
    paper = Paper(tmp_path, "start: {version: 1}")
    paper.create(_DAY, delta__enableChangeDataFeed="false")
    paper.commit(1, 2 * _DAY)
    with raises(SettingError, ErrorCode.FEED_DISABLED, match="enableChangeDataFeed = true"):
        plan_table(paper.context)
    paper.commit(2, 3 * _DAY, metadata_action(_SCHEMA, **FEED))
    paper.commit(3, 4 * _DAY)
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="feed was off at version 1"):
        plan_table(paper.context)
    assert _keys(plan_table(Paper(tmp_path, "start: {version: 2}").context)) == [(0, 1), (2, 3)]


def test_a_start_counts_with_a_range(tmp_path: Path) -> None:
    paper = _paper(tmp_path, "start: {version: 2}")
    assert _keys(plan_table(paper.context, requested=_requested("1", "3"))) == [(0, 1), (2, 3)]
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="begins with version 2"):
        plan_table(paper.context, requested=_requested(last="0"))
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="from version 2 on"):
        plan_table(paper.context, requested=_requested("3"))


def test_a_start_before_the_table_was_replaced_ends_there(tmp_path: Path) -> None:
    """By delta-rs: the replacement has another id, and nothing landed that it could be compared with."""
    schema = Schema([Field("id", PrimitiveType("long")), Field("name", PrimitiveType("string"))])
    for _ in range(2):
        DeltaTable.create(tmp_path / "lake", schema, mode="overwrite", configuration=FEED)
        write_deltalake(tmp_path / "lake", pa.table({"id": [1], "name": ["a"]}), mode="append")
    plan = plan_table(Paper(tmp_path, "start: {version: 0}").context)
    assert _keys(plan) == [(0, 1)]
    assert _stop(plan) == (BreakKind.TABLE_REPLACED, 2)


def _replaced(root: Path) -> Paper:
    """Another table from version 2 on, and another one again with version 4."""
    paper = Paper(root, "start: {version: 2}")
    paper.create(_DAY)
    paper.commit(1, 2 * _DAY)
    paper.commit(2, 3 * _DAY, metadata_action(_SCHEMA, "table-2", **FEED))
    paper.commit(3, 4 * _DAY)
    paper.commit(4, 5 * _DAY, metadata_action(_SCHEMA, "table-3", **FEED))
    return paper


def test_a_start_at_a_replaced_table_lands_that_one_up_to_the_next(tmp_path: Path) -> None:
    paper = _replaced(tmp_path)
    plan = plan_table(paper.context)
    assert _keys(plan) == [(0, 1), (2, 3)]
    assert _stop(plan) == (BreakKind.TABLE_REPLACED, 4)
    landed = paper.context.log.state(2)
    cover(LocalStore(paper.zone), TABLE, 1, landed.table_id, landed.schema_string, COLUMNS, SliceKind.APPENDS)
    assert _keys(plan_table(paper.context)) == [(2, 3)]


def test_a_pending_start_in_a_recreated_table_is_a_break(tmp_path: Path) -> None:
    """Nothing has landed, but the commits behind it are another table's from the first on."""
    paper = _replaced(tmp_path)
    cover(LocalStore(paper.zone), TABLE, 1, "table-0", _SCHEMA, COLUMNS, SliceKind.CHANGES)
    plan = plan_table(paper.context)
    assert plan.slices == ()
    assert _stop(plan) == (BreakKind.TABLE_REPLACED, 2)


@pytest.mark.parametrize("start", ["latest", "{version: 3}", "{version: 0}"])
def test_slices_are_planned_again_by_their_keys(tmp_path: Path, start: str) -> None:
    paper = _paper(tmp_path, f"start: {start}")
    first = plan_table(paper.context).slices[0]
    assert plan_key(paper.context, slice_key(first), None, paper.context.log.state()) == first
    paper.commit(5, 6 * _DAY)
    assert plan_key(paper.context, slice_key(first), None, paper.context.log.state()).last == first.last


def test_a_start_slice_that_was_planned_for_another_start_is_refused(tmp_path: Path) -> None:
    first = plan_table(_paper(tmp_path, "start: latest").context).slices[0]
    later = Paper(tmp_path, "start: {version: 3}").context
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="up to version 4 was planned for another start"):
        plan_key(later, slice_key(first), None, later.log.state())


def test_who_has_chosen_no_snapshot_is_not_given_one_before_anything_has_landed(tmp_path: Path) -> None:
    paper = _paper(tmp_path, "start: latest")
    assert not may_rebuild(paper.context)
    paper.cover(4)
    assert may_rebuild(paper.context)
    assert not may_rebuild(paper.context, _requested(last="4"))
    assert not may_rebuild(_paper(tmp_path / "held", "on_break: hold").context, EVERYTHING)


@pytest.mark.parametrize("own", ["latest", "{version: 3}", "{timestamp: 1970-01-04 12:00:00}", "snapshot"])
def test_a_tables_start_is_not_merged_with_the_defaults(own: str) -> None:
    text = (
        "landing_zone: {path: l}\ndefaults: {keys: [id], start: {version: 7}}\n"
        f"tables: {{a: {{source: s, start: {own}}}, b: {{source: t}}}}"
    )
    config = parse_config(text.encode(), Path("/etc/mirror.yaml"), {})
    alone = parse_config(text.replace(", start: {version: 7}", "").encode(), Path("/etc/mirror.yaml"), {})
    assert config.table("a").start == alone.table("a").start
    assert str(config.table("b").start) == "version 7"


def test_a_feed_with_changes_that_the_table_never_had_is_not_read(tmp_path: Path) -> None:
    """Change files alone, by hand or by a writer's mistake: the mirror would not be its source any more."""
    paper = _paper(tmp_path)
    paper.cover(4)
    cdc = file_action("cdc", "c.parquet", data=False)
    paper.commit(5, 6 * _DAY, cdc, file_action("add", "5.parquet", data=False), operation="OPTIMIZE")
    paper.commit(6, 7 * _DAY, cdc, operation="Manual Update")
    paper.commit(7, 8 * _DAY, cdc, file_action("add", "7.parquet"))
    plan = plan_table(paper.context)
    assert plan.stop is None
    slices = [(planned.first, planned.last, planned.parts, planned.compared is None) for planned in plan.slices]
    assert slices == [(5, 6, 1, False), (7, 7, 1, True)]


def test_a_column_that_can_not_land_is_reported_with_its_table_and_may_be_excluded(tmp_path: Path) -> None:
    schema = schema_string(column("id"), column("nothing", "void"))
    paper = Paper(tmp_path, "start: {version: 0}")
    paper.commit(0, _DAY, PROTOCOL, metadata_action(schema, **FEED))
    with raises_row(COLUMN_UNFIT, match=r"^shop\.orders: column `nothing` has type void.*`columns`"):
        plan_table(paper.context)
    paper.commit(1, 2 * _DAY)
    assert _keys(plan_table(Paper(tmp_path, "columns: [id]\n    start: {version: 0}").context)) == [(0, 1)]


def test_row_tracking_reads_data_files_also_of_commits_with_change_files(tmp_path: Path) -> None:
    paper = Paper(tmp_path, "changes: row_tracking")
    paper.create(_DAY, delta__enableRowTracking="true")
    paper.commit(1, 2 * _DAY, file_action("add", "a.parquet", size=300))
    paper.cover(1)
    sizes = {"remove": ("a.parquet", 300), "add": ("b.parquet", 310), "cdc": ("_change_data/c.parquet", 7)}
    files = [file_action(kind, path, size=size) for kind, (path, size) in sizes.items()]
    paper.commit(2, 3 * _DAY, *files, operation="UPDATE")
    hidden = [file_action(kind, "b.parquet", size=310, deleted=n) for kind, n in (("remove", 0), ("add", 2))]
    paper.commit(3, 4 * _DAY, *hidden, operation="DELETE")
    assert [planned.bytes for planned in plan_table(paper.context).slices] == [610 + 310]


_SOURCE = schema_string(*(column(name) for name in ("id", "a", "b")))


def _settings(*columns: str, on_drop: OnDropColumn = OnDropColumn.KEEP) -> TableSettings:
    name = TableName("shop", "orders")
    return TableSettings(name=name, source="/lake", keys=("id",), columns=columns or None, on_drop_column=on_drop)


def _before(*columns: str, dropped: tuple[str, ...] = ()) -> BaseState:
    return BaseState(4, _SOURCE, "table-1", dict.fromkeys(columns), dropped=frozenset(dropped))


@pytest.mark.parametrize(
    ("table", "landed", "dropped"),
    [
        (_settings(), ("id", "a", "b"), {"x"}),
        (_settings("a"), ("id", "a"), {"x"}),
        (_settings("a", "new"), ("id", "a"), {"x"}),
        (_settings("a"), ("id", "a", "b"), {"x", "b"}),
    ],
)
def test_a_column_that_is_removed_is_like_a_dropped_one(
    table: TableSettings, landed: tuple[str, ...], dropped: set[str]
) -> None:
    assert dropped_columns(table, _before(*landed, dropped=("x",))) == frozenset(dropped)


@pytest.mark.parametrize(
    ("table", "before"),
    [
        (_settings(), _before("id", "a")),
        (_settings(), _before("id", "a", dropped=("b",))),
        (_settings("a", on_drop=OnDropColumn.REBUILD), _before("id", "a", "b")),
    ],
)
def test_an_added_column_needs_a_rebuild_and_a_removed_one_if_the_settings_say_so(
    table: TableSettings, before: BaseState
) -> None:
    stop = dropped_columns(table, before)
    assert isinstance(stop, Break)
    assert (stop.version, stop.kind) == (5, BreakKind.COLUMNS_CHANGED)
    assert "`b`" in stop.message


@pytest.mark.parametrize("changes", ["feed", "files"])
def test_a_plan_is_the_same_whatever_number_of_commits_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: str
) -> None:
    """The feed is off for some commits, one has other partition columns, and one claims to change no data."""
    paper = _paper(tmp_path, f"changes: {changes}\n    slices: {{max_commits: 3}}")
    paper.cover(1)
    off = metadata_action(_SCHEMA, **{"delta.enableChangeDataFeed": "false"})
    paper.commit(5, 6 * _DAY, off)
    paper.commit(6, 7 * _DAY)
    paper.commit(7, 8 * _DAY, metadata_action(_SCHEMA, **FEED))
    paper.commit(8, 9 * _DAY)
    paper.commit(9, 10 * _DAY, file_action("add", "9.parquet", data=False))
    paper.commit(10, 11 * _DAY, file_action("remove", "3.parquet"), file_action("add", "10.parquet"))
    paper.commit(11, 12 * _DAY)
    plans = []
    for size in (1, 2, 3, 256):
        monkeypatch.setattr(plan_changes, "_MOST_COMMITS", size)
        plans.append(plan_table(paper.context))
        assert plan_table(paper.context, at_most=2).slices == plans[-1].slices[:2]
    assert all(plan.slices == plans[0].slices for plan in plans)
    by_files = [(one.first, one.last) for one in plans[0].slices if one.compared]
    assert _keys(plans[0])[-1][1] == 11
    if changes == "feed":
        assert by_files == [(5, 6), (9, 9)], plans[0].slices


@pytest.mark.parametrize("size", [1, 3, 6, 256])
def test_an_added_column_is_known_by_the_metadata_that_the_plan_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Of a cleaned log, no state before a checkpoint can be read; version 3 has the metadata before version 8."""

    def mapped(*more: str) -> Action:
        named = {"id": "long", "name": "string"} | dict.fromkeys(more, "string")
        columns = (column(name, kind, mapped=(n, f"col-{n}")) for n, (name, kind) in enumerate(named.items(), 1))
        mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(named))}
        return metadata_action(schema_string(*columns), **FEED, **mapping)

    paper = Paper(tmp_path)
    paper.commit(0, 0, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, mapped())
    changed = {3: mapped(), 8: mapped("note")}
    for version in range(1, 12):
        paper.commit(version, version, *([changed[version]] if version in changed else []))
    paper.cover(1)
    DeltaTable(str(paper.lake), version=10).create_checkpoint()
    for version in (0, 1):
        commit_file(paper.lake, version).unlink()
    monkeypatch.setattr(plan_changes, "_MOST_COMMITS", size)
    plan = plan_table(paper.context)
    assert (plan.stop, _keys(plan)[-1][1]) == (None, 11)


def test_few_commits_are_read_first_however_few_files_are_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = _paper(tmp_path, "changes: files\n    slices: {max_commits: 1}")
    files = [f"{number}.parquet" for number in range(100)]
    for version in range(5, 25):
        kind = "add" if version % 2 else "remove"
        paper.commit(version, (version + 1) * _DAY, *(file_action(kind, name) for name in files))
    paper.cover(4)
    read = list[int]()
    plain = DeltaLog.commits

    def counted(log: DeltaLog, first: int, last: int, **others: Any) -> tuple[Commit, ...]:  # noqa: ANN401 passed on
        read.append(last - first + 1)
        return plain(log, first, last, **others)

    monkeypatch.setattr(DeltaLog, "commits", counted)
    monkeypatch.setattr(plan_changes, "_FILES_AT_ONCE", 1_000)
    assert _keys(plan_table(paper.context, at_most=1)) == [(5, 5)]
    assert read == [4]


def test_the_rows_after_the_first_slices_are_estimated(tmp_path: Path) -> None:
    paper = _paper(tmp_path, "slices: {max_commits: 1}")
    assert plan_table(paper.context, at_most=1).later_rows(1) == 0, "of a snapshot, commits follow in another plan"
    paper.cover(0)
    assert plan_table(paper.context, at_most=1).later_rows(1) == 30
    assert plan_table(paper.context, at_most=3).later_rows(3) == 10
    assert plan_table(paper.context, at_most=5).later_rows(5) == 0


def test_a_plan_of_the_next_slice_reads_few_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = _paper(tmp_path, "slices: {max_commits: 2}")
    for version in range(5, 60):
        paper.commit(version, (version + 1) * _DAY)
    paper.cover(0)
    read = list[int]()
    plain = SourceFiles.commit

    def counted(files: SourceFiles, version: int) -> bytes | None:
        read.append(version)
        return plain(files, version)

    monkeypatch.setattr(SourceFiles, "commit", counted)
    monkeypatch.setattr(plan_changes, "_FILES_AT_ONCE", 120)  # of a table with 60 files: two commits, then more
    assert _keys(plan_table(paper.context, at_most=1)) == [(1, 2)]
    assert set(read) <= {0, *range(1, 11), 59}
