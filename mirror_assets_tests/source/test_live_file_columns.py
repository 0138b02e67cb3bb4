from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.source import log_checkpoint
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.parsing import live_file
from mirror_assets.source.scan_builder import VersionPart, scan_version
from mirror_assets_tests.source.columns import assert_same_files
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    column,
    file_action,
    metadata_action,
    schema_string,
    write_commit,
)


def test_paths_are_those_by_which_actions_name_the_files(tmp_path: Path) -> None:
    """Encoded, absolute and with other segments, in a checkpoint and in commits after it."""
    names = ["p=a%20b/1.parquet", "./2.parquet", "x//3.parquet", f"{tmp_path}/4.parquet", "5.parquet"]
    metadata = metadata_action(schema_string(column("id")))
    write_commit(tmp_path, 0, [PROTOCOL, metadata, *(file_action("add", name, records=None) for name in names)])
    write_commit(tmp_path, 1, [file_action("add", "6.parquet"), file_action("remove", "5.parquet")])
    log = DeltaLog(str(tmp_path))
    for version in (0, 1):
        assert_same_files(log, log.reopened().snapshot(version))
    DeltaTable(tmp_path, version=0).create_checkpoint()
    for version in (0, 1):
        assert_same_files(log, log.reopened().snapshot(version))


def test_a_version_without_files_has_no_columns_of_them(tmp_path: Path) -> None:
    write_commit(tmp_path, 0, [PROTOCOL, metadata_action(schema_string(column("id")))])
    assert len(DeltaLog(str(tmp_path)).live_file_columns(0)) == 0


def test_only_the_files_of_a_chunk_become_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": range(40), "p": range(40)})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, rows.slice(0, 1), mode="append")
    made = list[LiveFile]()

    def counted(*action: object) -> LiveFile:
        made.append(live_file(*action))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(log_checkpoint, "live_file", counted)
    scan = scan_version(DeltaLog(str(tmp_path)), 1, VersionPart(10, 15, 41))
    assert (len(scan.files), len(made)) == (5, 5)
