"""Frames by version, by time, and by the exported answers of a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.direct_lake.model_frames import Frame, exported_frames, frame_at
from mirror_assets.features.direct_lake.vacuum import MirrorNeeds, Requirement, plan_vacuum
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.errors import raises
from mirror_assets_tests.source.handmade import commit_file

Rows = list[dict[str, object]]

_ROOT = "https://onelake.dfs.fabric.microsoft.com/w/i/Tables/orders"
_TABLES: Rows = [
    {"[ID]": 7, "[TableName]": "orders", "[RootLocation]": f"{_ROOT}/", "[CurrentVersion]": 3, "[FallbackReason]": 0},
    {"[ID]": 8, "[TableName]": "new", "[RootLocation]": "", "[CurrentVersion]": None, "[FallbackReason]": 1},
]
_FRAME = Frame("model table orders", 3)


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


def test_one_table_needs_no_name() -> None:
    assert exported_frames({"t": _answer(_TABLES[:1])}) == (_FRAME,)


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
        ({"t": _answer(_TABLES)}, "it has 2 tables to choose from: new, orders"),
    ],
)
def test_what_is_no_export_is_said(exports: dict[str, str], why: str) -> None:
    with raises(SettingError, ErrorCode.CONFIG_INVALID, match=why) as caught:
        exported_frames(exports)
    assert "INFO.DELTATABLEMETADATASTORAGES()" in caught.value.next_step


def test_a_table_that_is_not_in_the_export() -> None:
    with raises(SettingError, ErrorCode.CONFIG_INVALID, match="it has no table sales, only new, orders"):
        exported_frames({"t": _answer(_TABLES)}, "sales")


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Three commits of one file each; the last replaces the others."""
    rows = [pa.table({"id": [number], "p": ["a b"]}) for number in range(3)]
    write_deltalake(tmp_path, rows[0], partition_by=["p"])
    write_deltalake(tmp_path, rows[1], mode="append")
    write_deltalake(tmp_path, rows[2], mode="overwrite")
    return DeltaLog(str(tmp_path))


def test_a_frame_at_a_version_or_a_time(log: DeltaLog) -> None:
    assert frame_at(log, "1") == Frame("frame", 1)
    assert frame_at(log, "2100-01-01") == Frame("frame", 2)
    second = log.time_ms(1)
    moment = f"{pa.scalar(second, pa.timestamp('ms')).as_py():%Y-%m-%d %H:%M:%S}.{second % 1000:03d}"
    assert frame_at(log, moment) == Frame("frame", 1)
    for point, why in {"3": "its newest version is 2", "1999-01-01": "its log begins", "soon": "expected a v"}.items():
        with raises(SettingError, ErrorCode.VERSION_REFUSED, match=why):
            frame_at(log, point)


def test_a_frame_or_mirror_after_the_newest_version_is_refused(log: DeltaLog) -> None:
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="frame v3"):
        plan_vacuum(log, 0, [Frame("frame", 3)])
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="mirror v4"):
        plan_vacuum(log, 0, mirror=MirrorNeeds(4))


def _forget_commits(log: DeltaLog) -> None:
    """As the log's cleanup does, behind a checkpoint of the newest version."""
    DeltaTable(log.uri).create_checkpoint()
    for version in (0, 1):
        commit_file(Path(log.uri), version).unlink()


def test_needed_versions_that_left_the_log_are_gone_and_vacuum_is_not_safe(log: DeltaLog) -> None:
    _forget_commits(log)
    plan = plan_vacuum(DeltaLog(log.uri), 0, [Frame("frame", 0)], MirrorNeeds(0))
    assert plan.gone == (Requirement("frame", 0), Requirement("mirror", 1))
    assert (plan.oldest_needed, plan.resume_until, plan.statement) == (0, None, None)
    assert (plan.unknown_frames, plan.is_safe) == ((Requirement("frame", 0),), False)


def test_a_mirror_whose_next_commit_left_the_log_needs_no_version(log: DeltaLog) -> None:
    _forget_commits(log)
    assert plan_vacuum(DeltaLog(log.uri), 0, mirror=MirrorNeeds(0)).is_safe
