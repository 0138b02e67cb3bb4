"""Whom the guard asks before VACUUM takes a file of the source: frames, the mirror and the history."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.direct_lake.consumers import (
    MirrorNeeds,
    Requirement,
    exported_frames,
    frame_at,
    source_consumers,
)
from mirror_assets.features.direct_lake.vacuum import VacuumPlan, plan_vacuum
from mirror_assets.features.history.history_log import APPLICATION, HistoryCommit
from mirror_assets.features.history.with_dagster.opening import history_uri
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.errors import raises
from mirror_assets_tests.pipeline.paper import TABLE, Paper
from mirror_assets_tests.source.handmade import Action, commit_file, write_commit

_DAY = 86_400.0


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """Four versions of which the mirror has covered the second."""
    made = Paper(tmp_path)
    made.create(time.time() - 9 * _DAY)
    for version in (1, 2, 3):
        made.commit(version, time.time() - (9 - version) * _DAY)
    made.cover(1)
    return made


def _guard(paper: Paper, settings: str = "") -> VacuumPlan:
    config, table = _configured(paper, settings)
    log = DeltaLog(str(paper.lake))
    return plan_vacuum(log, time.time(), *source_consumers(config, table, log, paper.context.manifest()))


def _configured(paper: Paper, settings: str) -> tuple[Config, TableSettings]:
    config = replace(paper, settings=settings).config
    return config, config.table(TABLE)


def test_the_mirror_needs_what_it_has_not_covered(paper: Paper) -> None:
    assert _guard(paper).oldest_needed == 2
    assert _guard(paper, "direct_lake: {frames: [1]}").oldest_needed == 1


def test_a_mirror_that_has_yet_to_begin_needs_its_start(tmp_path: Path) -> None:
    paper, began = Paper(tmp_path), time.time() - 9 * _DAY
    for version in range(4):
        paper.create(began) if version == 0 else paper.commit(version, began + version * _DAY)
    second = datetime.fromtimestamp(began + _DAY + 1, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    starts = ("{version: 1}", "{version: 0}", f'{{timestamp: "{second}"}}', '{timestamp: "1999-12-31"}', "latest")
    assert [_guard(paper, f"start: {start}").oldest_needed for start in starts] == [1, 0, 2, 0, None]
    assert _guard(paper, "start: {version: 9}").oldest_needed is None


def test_of_a_source_with_fewer_commits_than_are_covered_nothing_is_needed(paper: Paper) -> None:
    for version in (3, 2, 1):
        next(paper.lake.glob(f"_delta_log/*{version}.json")).unlink()
    assert _guard(paper).oldest_needed is None


def test_a_history_that_stands_behind_a_gap_leaves_the_mirror_its_files(paper: Paper) -> None:
    """It goes on behind the gap when it is told to, and the mirror, which is further, at once."""
    _keep(paper, 0)
    DeltaTable(paper.lake, version=2).create_checkpoint()
    commit_file(paper.lake, 1).unlink()
    for version in (2, 3):
        (paper.lake / f"{version}.parquet").unlink()
    plan = _guard(paper, "history: slices")
    assert [(file.path, file.needed_by[0].version) for file in plan.lost] == [("2.parquet", 2), ("3.parquet", 3)]
    assert [need.version for need in plan.gone] == [1]


def test_a_history_of_another_table_leaves_the_mirror_its_files(paper: Paper) -> None:
    _keep(paper, 100)
    assert _guard(paper, "history: slices").oldest_needed == 2


def _keep(paper: Paper, last: int) -> None:
    """Say in a history's log that it has kept everything up to the version."""
    kept = HistoryCommit(1, "table-1", 0, last, "a")
    info: Action = {"commitInfo": {"userMetadata": kept.text}}
    write_commit(Path(history_uri(paper.config, TABLE)), 0, [info, {"txn": {"appId": APPLICATION, "version": 1}}])


def test_frames_that_can_not_be_are_refused(paper: Paper) -> None:
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="its newest version is 3"):
        _guard(paper, "direct_lake: {frames: [4]}")
    unreadable = r"answer\.csv has no readable frames of a model: it can't be read"
    with raises(SettingError, ErrorCode.CONFIG_INVALID, match=unreadable):
        _guard(paper, "direct_lake: {exports: [answer.csv]}")


Rows = list[dict[str, object]]

_ROOT = "https://onelake.dfs.fabric.microsoft.com/w/i/Tables/orders"
_TABLES: Rows = [
    {"[ID]": 7, "[TableName]": "orders", "[RootLocation]": f"{_ROOT}/", "[CurrentVersion]": 3, "[FallbackReason]": 0},
    {"[ID]": 8, "[TableName]": "new", "[RootLocation]": "", "[CurrentVersion]": None, "[FallbackReason]": 1},
]
_FRAME = Requirement("model table orders", 3)


def _answer(rows: Rows) -> str:
    """As executeQueries gives it: blanks are left out."""
    told = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return json.dumps({"results": [{"tables": [{"rows": told}]}], "informationProtectionLabel": {}})


def _csv(rows: Rows, delimiter: str = ",", mark: str = "") -> str:
    names = list({name: None for row in rows for name in row})
    lines = [[*names], *([str(row.get(name, "") or "") for name in names] for row in rows)]
    return mark + "\r\n".join(delimiter.join(line) for line in lines) + "\r\n"


@pytest.mark.parametrize(
    "write",
    [
        _answer,
        json.dumps,
        lambda rows: json.dumps({"rows": rows}),
        lambda rows: json.dumps([{name.strip("[]"): value for name, value in row.items()} for row in rows]),
        _csv,
        lambda rows: _csv(rows, ";", "\ufeff"),
        lambda rows: _csv(rows, "\t"),
        lambda rows: _csv([{f"Query1{name}": value for name, value in row.items()} for row in rows]),
    ],
    ids=["executeQueries", "JSON", "JSON rows", "JSON bare", "CSV", "CSV semicolon", "CSV tab", "CSV table"],
)
def test_exports_of_all_kinds_say_the_same(write: Callable[[Rows], str]) -> None:
    assert exported_frames({"tables": write(_TABLES)}, "orders") == (_FRAME,)
    assert exported_frames({"tables": write(_TABLES)}, "new") == ()


def test_the_name_of_an_exported_table_is_found_in_any_case() -> None:
    shouted: Rows = [{**row, "[TableName]": str(row["[TableName]"]).upper()} for row in _TABLES]
    assert [frame.version for frame in exported_frames({"tables": _answer(shouted)}, "orders")] == [_FRAME.version]


@pytest.mark.parametrize("name", ["orders", "Orders", "shop.orders"])
def test_each_of_several_exports_has_the_table_by_its_name_or_alone(name: str) -> None:
    alone: Rows = [{"[TableName]": "Purchases", "[CurrentVersion]": 5}]
    found = exported_frames({"several": _answer(_TABLES), "one": _answer(alone)}, name)
    assert found == (_FRAME, Requirement("model table Purchases", 5))


@pytest.mark.parametrize(
    ("exports", "why"),
    [
        ({"t": "  "}, "it is empty"),
        ({"t": "{]"}, "it is not JSON"),
        ({"t": '{"error": {"code": "DatasetExecuteQueriesError"}}'}, "it is an error: .*DatasetExecuteQueriesError"),
        ({"t": '{"results": [{"error": {"code": "x"}}]}'}, "it is an error"),
        ({"t": '{"value": 3}'}, "there are no rows in it"),
        ({"t": "[1, 2]"}, "there are no rows in it"),
        ({"t": _answer([])}, r"columns are not those of the query \(none\)"),
        ({"t": "[ID],[Name]\n1,orders\n"}, r"columns are not those of the query \(ID, Name\)"),
        ({"t": "[ID],[TableName],[CurrentVersion]\n1,orders\n"}, "line 2 has 2 values, not 3"),
        ({"t": '[ID],[TableName],[CurrentVersion]\n1,"orders,2\n'}, "is not CSV"),
        ({"t": "[ID],[TableName],[]\n1,orders,2\n"}, r"'\[\]' is not the name of a column"),
        ({"t": "[ID],[TableName],[CurrentVersion]\n1,orders,two\n"}, "'two' is not a version"),
        ({"t": _answer(_TABLES)}, "it has no table sales, only new, orders"),
        ({"t": _answer(_TABLES[:1]), "u": _answer(_TABLES)}, "^u has .* no table sales"),
        ({"t": "[ID],[TableName],[CurrentVersion]\n"}, "it has no table sales, only none at all"),
    ],
)
def test_what_is_no_export_is_said(exports: dict[str, str], why: str) -> None:
    with raises(SettingError, ErrorCode.CONFIG_INVALID, match=why) as caught:
        exported_frames(exports, "sales")
    assert "INFO.DELTATABLEMETADATASTORAGES()" in caught.value.next_step


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Three commits of one file each; the last replaces the others."""
    rows = [pa.table({"id": [number], "p": ["a b"]}) for number in range(3)]
    write_deltalake(tmp_path, rows[0], partition_by=["p"])
    write_deltalake(tmp_path, rows[1], mode="append")
    write_deltalake(tmp_path, rows[2], mode="overwrite")
    return DeltaLog(str(tmp_path))


def test_a_frame_at_a_version_or_a_time(log: DeltaLog) -> None:
    assert frame_at(log, "1") == Requirement("frame", 1)
    assert frame_at(log, "2100-01-01") == Requirement("frame", 2)
    second = log.time_ms(1)
    moment = f"{pa.scalar(second, pa.timestamp('ms')).as_py():%Y-%m-%d %H:%M:%S}.{second % 1000:03d}"
    assert frame_at(log, moment) == Requirement("frame", 1)
    for point, why in {"3": "its newest version is 2", "1999-01-01": "its log begins", "soon": "expected a v"}.items():
        with raises(SettingError, ErrorCode.VERSION_REFUSED, match=why):
            frame_at(log, point)


def test_a_frame_or_mirror_after_the_newest_version_is_refused(log: DeltaLog) -> None:
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="frame v3"):
        plan_vacuum(log, 0, [Requirement("frame", 3)])
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="mirror v4"):
        plan_vacuum(log, 0, mirror=MirrorNeeds(4))


def test_needed_versions_that_left_the_log_are_gone_and_vacuum_is_not_safe(log: DeltaLog) -> None:
    DeltaTable(log.uri).create_checkpoint()
    for version in (0, 1):
        commit_file(Path(log.uri), version).unlink()
    plan = plan_vacuum(DeltaLog(log.uri), 0, [Requirement("frame", 0)], MirrorNeeds(0))
    assert plan.gone == (Requirement("frame", 0), Requirement("mirror", 1))
    assert (plan.oldest_needed, plan.resume_until, plan.statement) == (0, None, None)
    assert (plan.unknown_frames, plan.is_safe) == ((Requirement("frame", 0),), False)
    assert plan_vacuum(DeltaLog(log.uri), 0, mirror=MirrorNeeds(0)).is_safe, "the mirror starts again"
