"""Partitions that commits touch, of tables whose log is whole, and of those whose isn't."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mirror_assets.direct_lake.row_questions import Partition, Touched, partition_of, partitions_touched
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets_tests.delta.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    file_action,
    info,
    metadata_action,
    schema_string,
    write_commit,
)


def _rows(*partitions: int) -> pa.Table:
    return pa.table({"id": range(len(partitions)), "p": list(partitions)})


def _months(path: Path) -> TableLog:
    write_deltalake(path, _rows(1, 1, 2, 2, 3, 3), partition_by=["p"])
    write_deltalake(path, _rows(3), mode="append")
    table = DeltaTable(path)
    table.delete("p = 1 and id = 0")
    table.update(predicate="p = 2", updates={"p": "3"})
    table.optimize.compact()
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    return TableLog(str(path))


def _live(*months: int) -> set[Partition]:
    return {partition_of({"p": str(month)}) for month in months}


def _fields(action: object) -> Action:
    assert isinstance(action, dict)
    return action


def _told(touched: tuple[Touched, ...]) -> list[tuple[str, list[str]]]:
    return [(one.operation, sorted(str(dict(partition)["p"]) for partition in one.partitions)) for one in touched]


def test_every_commit_tells_where_it_wrote_and_removed(tmp_path: Path) -> None:
    log = _months(tmp_path)
    told = _told(partitions_touched(log, log.commits(0, log.newest())))
    assert told[:5] == [
        ("WRITE", ["1", "2", "3"]),
        ("WRITE", ["3"]),
        ("DELETE", ["1"]),
        ("UPDATE", ["2", "3"]),
        ("OPTIMIZE", ["3"]),
    ]
    assert told[5][1] == []


def test_files_from_before_the_commits_are_looked_up(tmp_path: Path) -> None:
    log = _months(tmp_path)
    (delete,) = partitions_touched(log, log.commits(2, 2))
    assert (_told((delete,)), delete.unknown) == ([("DELETE", ["1"])], 0)
    assert delete.answer(_live(1, 2, 3)).found == "DELETE touches 1 of 3 partitions"


def test_partitions_that_are_gone_are_none_of_those_that_are_there(tmp_path: Path) -> None:
    log = _months(tmp_path)
    (update,) = partitions_touched(log, log.commits(3, 3))
    assert update.answer(_live(1, 3)).found == "UPDATE touches 1 of 2 partitions, and 1 that is gone now"
    assert update.answer(_live(1)).found == "UPDATE touches 0 of 1 partitions, and 2 that are gone now"


def test_a_partition_is_the_same_however_its_writer_orders_the_columns(tmp_path: Path) -> None:
    adds = [file_action("add", f"{number}.parquet") for number in range(2)]
    partitions = ({"p": "1", "q": "2"}, {"q": "2", "p": "1"})
    for add, values in zip(adds, partitions, strict=True):
        add["add"] = {**_fields(add["add"]), "partitionValues": values}
    schema = schema_string(column("id"), column("p"), column("q"))
    write_commit(tmp_path, 0, [info(), PROTOCOL, metadata_action(schema), *adds])
    (touched,) = partitions_touched(log := TableLog(str(tmp_path)), log.commits(0, 0))
    assert touched.partitions == (partition_of({"q": "2", "p": "1"}),)


def test_what_the_log_tells_no_more_is_counted(tmp_path: Path) -> None:
    write_deltalake(tmp_path, _rows(1, 2), partition_by=["p"])
    table = DeltaTable(tmp_path)
    table.delete("p = 2")
    table.create_checkpoint()
    commit_file(tmp_path, 0).unlink()
    log = TableLog(str(tmp_path))
    (touched,) = partitions_touched(log, log.commits(1, 1))
    assert (touched.partitions, touched.unknown) == ((), 1)
    assert (
        touched.answer(_live(1)).found
        == "DELETE touches 0 of 1 partitions, and 1 files whose partition the log tells no more"
    )


def test_a_table_without_partitions_has_one(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    log = TableLog(str(tmp_path))
    (touched,) = partitions_touched(log, log.commits(0, 0))
    assert touched.partitions == ((),)
