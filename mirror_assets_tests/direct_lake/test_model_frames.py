"""Frames by version, by time, and by the exported answers of a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.direct_lake.errors import FramesUnreadable
from mirror_assets.direct_lake.model_frames import Frame, exported_frames, frame_at
from mirror_assets.direct_lake.vacuum import MirrorNeeds, Requirement, plan_vacuum
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.table_log import TableLog
from mirror_assets_tests.errors import raises
from mirror_assets_tests.source.handmade import commit_file

Rows = list[dict[str, object]]

_ROOT = "https://onelake.dfs.fabric.microsoft.com/w/i/Tables/orders"
_TABLES: Rows = [
    {"[ID]": 7, "[TableName]": "orders", "[RootLocation]": f"{_ROOT}/", "[CurrentVersion]": 3, "[FallbackReason]": 0},
    {"[ID]": 8, "[TableName]": "new", "[RootLocation]": "", "[CurrentVersion]": None, "[FallbackReason]": 1},
]
_FILES: Rows = [
    {"[DeltaTableMetadataStorageID]": 7, "[Location]": f"{_ROOT}/a.parquet", "[CreatedVersion]": 1},
    {
        "[DeltaTableMetadataStorageID]": 7,
        "[Location]": "p=1/b.parquet",
        "[CreatedVersion]": 2,
        "[DeletedVersion]": -1,
        "[DeletionVectorFileLocation]": "/deletion_vector_1.bin",
    },
    {
        "[DeltaTableMetadataStorageID]": 7,
        "[Location]": "dropped.parquet",
        "[CreatedVersion]": 1,
        "[DeletedVersion]": 3,
    },
    {"[DeltaTableMetadataStorageID]": 8, "[Location]": "other.parquet", "[CreatedVersion]": 1},
]
_ELSEWHERE: Rows = [{"[DeltaTableMetadataStorageID]": 7, "[Location]": "abfss://x/a.parquet"}]
_FRAME = Frame("model table orders", 3, ("a.parquet", "p=1/b.parquet", "deletion_vector_1.bin"))


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
    exports = {"tables": write(_TABLES), "files": write(_FILES)}
    assert exported_frames(exports, "orders") == (_FRAME,)
    assert exported_frames({"tables": write(_TABLES)}, "orders") == (Frame("model table orders", 3),)
    assert exported_frames(exports, "new") == ()


def test_one_table_needs_no_name() -> None:
    assert exported_frames({"t": _answer(_TABLES[:1])}) == (Frame("model table orders", 3),)


@pytest.mark.parametrize(
    ("exports", "why"),
    [
        ({"t": "  "}, "it is empty"),
        ({"t": "{]"}, "it is no JSON"),
        ({"t": '{"error": {"code": "DatasetExecuteQueriesError"}}'}, "it is an error: .*DatasetExecuteQueriesError"),
        ({"t": '{"results": [{"error": {"code": "x"}}]}'}, "it is an error"),
        ({"t": '{"value": 3}'}, "there are no rows in it"),
        ({"t": "[1, 2]"}, "there are no rows in it"),
        ({"t": _answer([])}, r"columns are those of neither query \(none\)"),
        ({"t": "[ID],[Name]\n1,orders\n"}, r"columns are those of neither query \(ID, Name\)"),
        ({"t": "[ID],[TableName],[CurrentVersion]\n1,orders\n"}, "line 2 has 2 values, not 3"),
        ({"t": '[ID],[TableName],[CurrentVersion]\n1,"orders,2\n'}, "is no CSV"),
        ({"t": "[ID],[TableName],[]\n1,orders,2\n"}, r"'\[\]' is no name of a column"),
        ({"t": "[ID],[TableName],[CurrentVersion]\n1,orders,two\n"}, "'two' is no version"),
        ({"t": _answer(_TABLES)}, "it has 2 tables to choose from: new, orders"),
        ({"t": _answer(_TABLES[:1]), "f": _answer(_ELSEWHERE)}, "abfss://x/a.parquet is not below the table's RootL"),
        ({"f": _answer(_FILES)}, r"the result of INFO.DELTATABLEMETADATASTORAGES\(\) is missing"),
    ],
)
def test_what_is_no_export_is_said(exports: dict[str, str], why: str) -> None:
    with pytest.raises(FramesUnreadable, match=why) as caught:
        exported_frames(exports)
    assert "INFO.PARQUETFILESTORAGES()" in caught.value.next_step


def test_a_table_that_is_not_in_the_export() -> None:
    with pytest.raises(FramesUnreadable, match="it has no table sales, only new, orders"):
        exported_frames({"t": _answer(_TABLES)}, "sales")


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """Three commits of one file each; the last replaces the others."""
    rows = [pa.table({"id": [number], "p": ["a b"]}) for number in range(3)]
    write_deltalake(tmp_path, rows[0], partition_by=["p"])
    write_deltalake(tmp_path, rows[1], mode="append")
    write_deltalake(tmp_path, rows[2], mode="overwrite")
    return TableLog(str(tmp_path))


def test_a_frame_at_a_version_or_a_time(log: TableLog) -> None:
    assert frame_at(log, "1") == Frame("frame", 1)
    assert frame_at(log, "2100-01-01") == Frame("frame", 2)
    second = log.time_ms(1)
    moment = f"{pa.scalar(second, pa.timestamp('ms')).as_py():%Y-%m-%d %H:%M:%S}.{second % 1000:03d}"
    assert frame_at(log, moment) == Frame("frame", 1)
    for point, why in {"3": "its newest version is 2", "1999-01-01": "its log begins", "soon": "expected a v"}.items():
        with raises(SettingError, ErrorCode.FRAME_REFUSED, match=why):
            frame_at(log, point)


def test_nobody_is_ahead_of_the_table(log: TableLog) -> None:
    with raises(SettingError, ErrorCode.FRAME_REFUSED, match="frame v3"):
        plan_vacuum(log, 0, [Frame("frame", 3)])
    with raises(SettingError, ErrorCode.FRAME_REFUSED, match="mirror v4"):
        plan_vacuum(log, 0, mirror=MirrorNeeds(4))


@pytest.mark.parametrize("spell", [str, quote], ids=["as stored", "as in the log"])
def test_files_that_a_model_names_count_however_they_are_spelled(log: TableLog, spell: Callable[[str], str]) -> None:
    """The version is gone from the log; what is left of its files is known to the model only."""
    first, _ = log.snapshot(1).files
    _forget_commits(log)
    frame = Frame("model table orders", 1, (spell(first.path), spell("gone.parquet")))
    plan = plan_vacuum(TableLog(log.uri), log.time_ms(2) / 1000 + 8 * 86_400, [frame])
    assert len(plan.deleted) == 2
    assert [(file.path, file.needed_by) for file in plan.threatened] == [(first.path, (Requirement(frame.reader, 1),))]
    assert [file.path for file in plan.lost] == ["gone.parquet"]
    assert plan.gone == ()


def test_an_answer_that_was_cut_off_endangers_nothing(log: TableLog) -> None:
    frame = Frame("model table orders", 1, ())
    plan = plan_vacuum(log, log.time_ms(2) / 1000 + 8 * 86_400, [frame])
    assert {file.path for file in plan.threatened} == {file.path for file in log.snapshot(1).files}


def _forget_commits(log: TableLog) -> None:
    """As the log's cleanup does, behind a checkpoint of the newest version."""
    DeltaTable(log.uri).create_checkpoint()
    for version in (0, 1):
        commit_file(Path(log.uri), version).unlink()


def test_what_the_log_no_longer_tells(log: TableLog) -> None:
    _forget_commits(log)
    plan = plan_vacuum(TableLog(log.uri), 0, [Frame("frame", 0)], MirrorNeeds(0))
    assert plan.gone == (Requirement("frame", 0), Requirement("mirror", 1))
    assert (plan.oldest_needed, plan.resume_until, plan.statement) == (0, None, None)
    assert (plan.unknown_frames, plan.is_safe) == ((Requirement("frame", 0),), False)


def test_a_mirror_that_begins_anew_needs_nothing(log: TableLog) -> None:
    _forget_commits(log)
    assert plan_vacuum(TableLog(log.uri), 0, mirror=MirrorNeeds(0)).is_safe


def test_an_answer_that_names_no_file_of_a_version_that_is_gone_tells_nothing(log: TableLog) -> None:
    _forget_commits(log)
    plan = plan_vacuum(TableLog(log.uri), 0, [Frame("model table orders", 1, ())])
    assert (plan.gone, plan.is_safe) == ((Requirement("model table orders", 1),), False)


def test_the_statement_for_later_names_a_property_even_when_nothing_can_expire(log: TableLog) -> None:
    """The only needed file is gone already: nothing is left to keep, but the next frame's files are."""
    snapshot = log.snapshot(2)
    (Path(log.uri) / snapshot.files[0].path).unlink()
    plan = plan_vacuum(log, log.time_ms(2) / 1000, [Frame("frame", 2)])
    assert (len(plan.lost), plan.statement) == (1, None)
    assert plan.keeping(snapshot.metadata).endswith(
        "SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 14 days')"
    )


def test_live_files_that_vacuum_would_take_are_needed_by_the_table(tmp_path: Path) -> None:
    """By a path that Spark's VACUUM doesn't know them by, as delta-rs writes it; no frame, no mirror."""
    write_deltalake(tmp_path, pa.table({"id": [1], "größe": ["a b"]}), partition_by=["größe"])
    log = TableLog(str(tmp_path))
    (live,) = log.snapshot().files
    plan = plan_vacuum(log, live.modified_ms / 1000 + 8 * 86_400)
    assert [(file.path, file.needed_by) for file in plan.threatened] == [(live.path, (Requirement("table", 0),))]
    assert not plan.is_safe
    DeltaTable(tmp_path).create_checkpoint()
    commit_file(tmp_path, 0).unlink()
    assert plan_vacuum(TableLog(str(tmp_path)), plan.now).threatened == plan.threatened
