"""Tables as other writers leave them, and bugs of writers from public reports: each as a story in two parts.

A story makes the table and yields; then it changes the table. A mirror has the rows of Delta's reader on Spark.
"""

from __future__ import annotations

import copy
import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from mirror_assets_tests.handmade_table import FEED, HandmadeTable, Protocol, commit_info, features, hidden, remove
from mirror_assets_tests.source.handmade import column

Story = Callable[[Path], Iterator[None]]
Action = dict[str, Any]
BOTH = ("feed", "files")
_ID, _NAME = column("id"), column("name", "string")
_SECOND, _DAY = 1_000_000, 86_400_000_000
# A day in the year 12100, and one before the year 1.
_FAR, _EARLY = 3_700_000, -800_000


@dataclass(frozen=True)
class Foreign:
    """A story, and the settings of its mirror."""

    story: Story
    ways: tuple[str, ...] = BOTH
    keys: str = "[id]"
    where: str | None = None

    def __str__(self) -> str:
        return self.story.__name__.strip("_").replace("_", " ")


@dataclass(frozen=True)
class Refused:
    """A story that can't be mirrored. The message has `names`, and none of the `never` texts."""

    story: Story
    names: str
    ways: tuple[str, ...] = ("feed",)
    keys: str = "[id]"
    never: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.story.__name__.strip("_").replace("_", " ")


def _named(**names: str) -> list[Action]:
    """Rows: `_1="a"` is the name of id 1."""
    return [{"id": int(id_[1:]), "name": name} for id_, name in names.items()]


def _plain(path: Path, protocol: Protocol | None = None) -> HandmadeTable:
    return HandmadeTable(path, _ID, _NAME, protocol=protocol)


def _begun(path: Path, **names: str) -> tuple[HandmadeTable, Action]:
    table = _plain(path)
    file = table.add(*_named(**names))
    table.commit(commit_info(), file)
    return table, file


# Change files and metrics that contradict the files


def _update_without_its_old_row(path: Path) -> Iterator[None]:
    table, old = _begun(path, _1="a", _2="b", _3="c")
    yield
    new = table.add(*_named(_1="a", _2="b", _3="C"))
    changed = table.change_file({"id": 3, "name": "C", "_change_type": "update_postimage"})
    table.commit(commit_info("UPDATE"), remove(old), new, changed)


def _deleted_row_twice_in_the_change_file(path: Path) -> Iterator[None]:
    table, old = _begun(path, _1="a", _2="b", _3="c")
    yield
    new = table.add(*_named(_1="a", _2="b"))
    deleted = {"id": 3, "name": "c", "_change_type": "delete"}
    metrics = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "1"}
    table.commit(commit_info("MERGE", metrics), remove(old), new, table.change_file(deleted, deleted))


def _deleted_row_missing_in_the_change_file(path: Path) -> Iterator[None]:
    table, old = _begun(path, _1="a", _2="b", _3="c")
    yield
    new = table.add(*_named(_1="a"))
    deleted = table.change_file({"id": 3, "name": "c", "_change_type": "delete"})
    table.commit(commit_info("DELETE", {"numDeletedRows": "2", "numCopiedRows": "1"}), remove(old), new, deleted)


# Removes without optional fields


def _by_country(path: Path) -> tuple[HandmadeTable, Action]:
    table = HandmadeTable(path, _ID, column("country", "string"), _NAME, partitioned_by=["country"])
    old = _of_country(table, "usa", _1="a", _2="b")
    table.commit(commit_info(), old, _of_country(table, "fra", _3="c"))
    return table, old


def _of_country(table: HandmadeTable, country: str, **names: str) -> Action:
    file = f"country={country}/part-{uuid.uuid4()}.parquet"
    return table.add(*_named(**names), partition={"country": country}, name=file)


def _partition_overwritten_without_partition_values(path: Path) -> Iterator[None]:
    table, old = _by_country(path)
    yield
    bare = remove(old, "partitionValues", "extendedFileMetadata")
    table.commit(commit_info(), bare, _of_country(table, "usa", _1="A", _4="d"))


# Files that are named twice


def _files_removed_and_added_twice_in_a_commit(path: Path) -> Iterator[None]:
    table, old = _begun(path, _1="a", _2="b")
    yield
    new = table.add(*_named(_1="a", _2="B"))
    table.commit(commit_info(), remove(old), remove(old), new, new)


def _file_added_while_it_is_live(path: Path) -> Iterator[None]:
    table, old = _begun(path, _1="a", _2="b")
    yield
    table.commit(commit_info(), old, table.add(*_named(_3="c")))


def _file_removed_and_added_again(path: Path) -> Iterator[None]:
    table, old = _begun(path, _1="a", _2="b")
    other = table.add(*_named(_3="c"))
    table.commit(commit_info(), other)
    yield
    table.commit(commit_info("DELETE"), remove(old))
    table.commit(commit_info("RESTORE"), old, remove(other))


def _files_added_and_removed_in_a_commit(path: Path) -> Iterator[None]:
    table, old = _begun(path, _1="a")
    table.commit(commit_info(), table.add(*_named(_2="b")))
    yield
    new = table.add(*_named(_3="c"))
    table.commit(commit_info(), old, remove(old), new, remove(new), table.add(*_named(_4="d")))


def _respelled(action: Action, path: str) -> Action:
    return {"remove": remove(action)["remove"] | {"path": path}}


def _removes_in_spellings_that_name_no_file(path: Path) -> Iterator[None]:
    table = _plain(path)
    encoded, relative, late = (table.add(*_named(**names)) for names in ({"_1": "a"}, {"_2": "b"}, {"_3": "c"}))
    table.commit(commit_info(), encoded, relative)
    yield
    table.commit(
        commit_info("DELETE"),
        _respelled(encoded, encoded["add"]["path"].replace("-", "%2D")),
        _respelled(relative, (path / relative["add"]["path"]).as_uri()),
        late,
    )


def _files_with_absolute_and_encoded_paths(path: Path) -> Iterator[None]:
    table = _plain(path)
    odd, absolute = table.add(*_named(_1="a"), name="a b ü.parquet"), table.add(*_named(_2="b"))
    absolute["add"]["path"] = (path / absolute["add"]["path"]).as_uri()
    table.commit(commit_info(), odd, absolute, table.add(*_named(_3="c")))
    yield
    table.commit(commit_info("DELETE"), remove(odd), remove(absolute))


# Values as other writers store them


def _char_without_padding(path: Path) -> Iterator[None]:
    fixed = [
        column(name, "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": kind})
        for name, kind in (("code", "char(5)"), ("kind", "char(3)"))
    ]
    table = HandmadeTable(path, *fixed, _NAME)
    first, padded = {"code": "ab", "kind": "x", "name": "one"}, {"code": "cd   ", "kind": "y  ", "name": "two"}
    old = table.add(first, padded)
    table.commit(commit_info(), old)
    yield
    late = table.add({"code": "ef", "kind": "z", "name": "three"})
    table.commit(commit_info(), late)
    changed = table.change_file(
        {**first, "_change_type": "update_preimage"}, {**first, "name": "ONE", "_change_type": "update_postimage"}
    )
    table.commit(commit_info("UPDATE"), remove(old), table.add({**first, "name": "ONE"}, padded), changed)
    table.commit(commit_info("DELETE"), remove(late))


def _years_that_python_does_not_have(path: Path) -> Iterator[None]:
    table = HandmadeTable(path, column("day", "date"), column("at", "timestamp"), _NAME)
    days = {"far": _FAR, "early": _EARLY, "epoch": 0, "before the Gregorian calendar": -141_428}
    table.commit(
        commit_info(), table.add(*({"day": day, "at": day * _DAY, "name": name} for name, day in days.items()))
    )
    yield
    table.commit(commit_info(), table.add({"day": _FAR + 1, "at": 0, "name": "further"}))


def _timestamp_partition_without_a_zone(path: Path) -> Iterator[None]:
    """Such a value is in the zone of the reader's session, which is UTC for a mirror."""
    table = HandmadeTable(path, _ID, column("at", "timestamp"), column("p", "timestamp"), partitioned_by=["p"])
    at = 1_705_352_400 * _SECOND
    plain = table.add(
        {"id": 1, "at": at}, partition={"p": "2024-01-15 16:00:00"}, name="p=2024-01-15 16%3A00%3A00/a.parquet"
    )
    in_utc = table.add({"id": 2, "at": at}, partition={"p": "2024-01-15T21:00:00.000000Z"}, name="q/a.parquet")
    table.commit(commit_info(), plain, in_utc)
    yield
    table.commit(
        commit_info(), table.add({"id": 3, "at": at}, partition={"p": "2024-07-15 16:00:00"}, name="r/a.parquet")
    )


def _files_with_odd_names(path: Path) -> Iterator[None]:
    """Also two files of one name in two folders."""
    table, _ = _begun(path, _1="a")
    names = ("a b", "ü", "a[1]", "{x}", "a*b?", "100%", "50%20", "#1", "a,b+c", "one/same", "other/same")
    first, later = names[:6], names[6:]
    table.commit(
        commit_info(),
        *(table.add({"id": 10 + at, "name": name}, name=f"{name}.parquet") for at, name in enumerate(first)),
    )
    yield
    table.commit(
        commit_info(),
        *(table.add({"id": 20 + at, "name": name}, name=f"{name}.parquet") for at, name in enumerate(later)),
    )


def _timestamps_of_int96(path: Path) -> Iterator[None]:
    table = HandmadeTable(path, _ID, column("at", "timestamp"))

    def add(id_: int) -> Action:
        return table.add({"id": id_, "at": id_ * _SECOND}, use_deprecated_int96_timestamps=True)

    table.commit(commit_info(), add(1))
    yield
    table.commit(commit_info(), add(2))


def _rows_hidden_by_vectors_in_the_log(path: Path) -> Iterator[None]:
    """The file of the second load is hidden twice; the vectors of both are in the log itself."""
    table = _plain(path, features("deletionVectors"))
    old = table.add(*_named(_1="a", _2="b", _3="c", _4="d"))
    table.commit(commit_info(), hidden(old, 0))
    yield
    first, second = hidden(old, 0), hidden(old, 0, 2)
    gone = remove(first)
    gone["remove"]["deletionVector"] = first["add"]["deletionVector"]
    table.commit(commit_info("DELETE"), gone, second)
    table.commit(commit_info(), hidden(table.add(*_named(_5="e", _6="f")), 1))


def _file_of_ids(table: HandmadeTable, id_: int) -> Action:
    """The add action of a file that lacks all other columns."""
    columns, table.columns = table.columns, (_ID,)
    file = table.add({"id": id_})
    table.columns = columns
    return file


def _file_without_a_column(path: Path) -> Iterator[None]:
    table, _ = _begun(path, _1="a")
    yield
    table.commit(commit_info(), _file_of_ids(table, 2))


def _file_without_a_column_that_has_no_nulls(path: Path) -> Iterator[None]:
    table = HandmadeTable(path, _ID, column("name", "string", nullable=False))
    table.commit(commit_info(), table.add(*_named(_1="a")))
    yield
    table.commit(commit_info(), _file_of_ids(table, 2))


def _file_without_a_column_that_had_a_default(path: Path, default: str = "'was'") -> Iterator[None]:
    note = column("note", "string", metadata={"CURRENT_DEFAULT": "'now'", "EXISTS_DEFAULT": default})
    table = HandmadeTable(path, _ID, note)
    table.commit(commit_info(), _file_of_ids(table, 1))
    yield
    table.commit(commit_info(), _file_of_ids(table, 2))
    table.commit(commit_info(), table.add({"id": 3, "note": "x"}))


def _file_without_a_column_whose_default_is_computed(path: Path) -> Iterator[None]:
    return _file_without_a_column_that_had_a_default(path, "concat('a', current_user())")


def _file_without_a_field_that_has_no_nulls(path: Path) -> Iterator[None]:
    fields = [
        {"name": name, "type": "long", "nullable": nullable, "metadata": {}}
        for name, nullable in (("a", False), ("b", True))
    ]
    table = HandmadeTable(path, _ID, column("info", {"type": "struct", "fields": fields}))
    both, one = (pa.struct([(name, pa.int64()) for name in names]) for names in ("ab", "b"))
    table.commit(commit_info(), table.add({"id": 1, "info": {"a": 1, "b": 1}}, {"id": 2}, types={"info": both}))
    yield
    table.commit(commit_info(), table.add({"id": 3, "info": {"b": 1}}, types={"info": one}))


# Free text in commits and statistics


def _odd_commits(path: Path) -> Iterator[None]:
    """Some writers spell out the actions that a line does not have."""
    table, _ = _begun(path, _1="a")
    yield
    nulls = commit_info(None, operationMetrics=None, tags=None, timestamp=None)
    table.commit(nulls, table.add(*_named(_2="b")))
    table.commit(table.add(*_named(_3="c")))
    odd = {"filesAdded": {"avg": 1.5}, "numBatches": 3, "x": None, "y": -1, "z": 1.5, "w": True, "v": [1]}
    table.commit(commit_info("OPTIMIZE", odd), table.add(*_named(_4="d")))
    table.write(f'{{"commitInfo":null}}\r\n{json.dumps(table.add(*_named(_6="f")))}\r\n\r\n'.encode())
    spelled_out: Action = dict.fromkeys(("add", "remove", "cdc", "metaData", "protocol", "commitInfo", "txn"))
    lines = (json.dumps({**spelled_out, **action}) for action in (commit_info(), table.add(*_named(_7="g"))))
    table.write("".join(f"{line}\n" for line in lines).encode())
    file = table.add(*_named(_8="h"))
    file["add"] |= {"newField": {"of": [1]}, "tags": {"a": None}, "path": f"file://{path}/{file['add']['path']}"}
    table.commit(commit_info(), {"futureAction": {"path": "x"}}, file)
    no_metrics = dict.fromkeys(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0")
    table.commit(commit_info("MERGE", no_metrics | {"numOutputRows": "1"}), table.add(*_named(_9="i")))
    table.columns = (*table.columns, column("more", "string"))
    bare = {"commitInfo": {"operation": None}}
    table.commit(bare, table.metadata(), table.add({"id": 5, "name": "e", "more": "x"}))


def _columns_replaced_by_an_unnamed_operation(path: Path) -> Iterator[None]:
    table, old = _begun(path, _1="a")
    yield
    table.columns = (_ID, column("other", "string"))
    table.commit(commit_info(None), table.metadata(), remove(old), table.add({"id": 1, "other": "x"}))


def _statistics_of_other_types(path: Path) -> Iterator[None]:
    table, _ = _begun(path, _1="a")
    yield
    texts = ('{"numRecords":1,"minValues":{"id":2', '{"numRecords":"1"}', '{"numRecords":1.0}', "null")
    for id_, text in enumerate(texts, start=2):
        table.commit(commit_info(), table.add({"id": id_, "name": f"n{id_}"}, stats=text))
    table.commit(commit_info(), table.add(*_named(_6="f"), stats='{"numRecords":1,"maxValues":{"id":Infinity}}'))


def _statistics_with_wrong_limits(path: Path) -> Iterator[None]:
    """A published workaround writes 0 in the place of infinity."""
    table = HandmadeTable(path, _ID, column("amount", "double"))

    def add(id_: int, amount: float) -> Action:
        limits = {"minValues": {"id": id_, "amount": 0}, "maxValues": {"id": id_ + 1, "amount": 0}}
        counts = {"numRecords": 2, "nullCount": {"id": 0, "amount": 0}}
        return table.add({"id": id_, "amount": amount}, {"id": id_ + 1, "amount": float("inf")}, stats=counts | limits)

    table.commit(commit_info(), add(1, 500.0))
    yield
    table.commit(commit_info(), add(3, 700.0))


# Features and names


def _names_swapped_by_renames(path: Path) -> Iterator[None]:
    """What is `a` in the files is column `b`."""
    mapped = (
        column("id", mapped=(1, "id")),
        column("b", "string", mapped=(2, "a")),
        column("a", "string", mapped=(3, "b")),
    )
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
    table = HandmadeTable(
        path, *mapped, configuration=FEED | mapping, protocol={"minReaderVersion": 2, "minWriterVersion": 5}
    )

    def commit(id_: int, other: str) -> None:
        rows = ({"id": id_, "b": "keep", "a": other}, {"id": id_ + 1, "b": other, "a": "keep"})
        low, high = sorted(("keep", other))
        stats = {"minValues": {"id": id_, "a": low, "b": low}, "maxValues": {"id": id_ + 1, "a": high, "b": high}}
        table.commit(
            commit_info(), table.add(*rows, stats={"numRecords": 2, "nullCount": {"id": 0, "a": 0, "b": 0}} | stats)
        )

    commit(1, "zzz")
    yield
    commit(3, "yyy")


def _commits_of_a_coordinator(path: Path) -> Iterator[None]:
    """A writer's feature, and yet the newest commits are only with the coordinator, or in `_commits`."""
    coordinated = {
        "delta.enableInCommitTimestamps": "true",
        "delta.coordinatedCommits.commitCoordinator-preview": "dynamodb",
        "delta.coordinatedCommits.commitCoordinatorConf-preview": '{"dynamoDBTableName":"t"}',
        "delta.coordinatedCommits.tableConf-preview": '{"tableId":"x"}',
    }
    writers = ("coordinatedCommits-preview", "inCommitTimestamp")
    table = HandmadeTable(
        path, _ID, _NAME, configuration=FEED | coordinated, protocol=features("vacuumProtocolCheck", writers=writers)
    )
    table.commit(_timed(commit_info()), table.add(*_named(_1="a")))
    yield
    unfilled = path / "_delta_log" / "_commits" / f"{1:020d}.{uuid.uuid4()}.json"
    unfilled.parent.mkdir()
    unfilled.write_text(
        "".join(f"{json.dumps(action)}\n" for action in (_timed(commit_info()), table.add(*_named(_2="b"))))
    )


def _timed(action: Action) -> Action:
    timed = copy.deepcopy(action)
    return {"commitInfo": {"inCommitTimestamp": timed["commitInfo"]["timestamp"], **timed["commitInfo"]}}


def _rows_whose_old_file_has_no_ids(path: Path) -> Iterator[None]:
    """The table says that its rows have ids; a writer that suspended row tracking left them out."""
    tracked = {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"}
    table = HandmadeTable(
        path, _ID, _NAME, configuration=tracked, protocol=features(writers=["rowTracking", "domainMetadata"])
    )
    old = table.add(*_named(_1="a", _2="b"))
    table.commit(commit_info(), old)
    yield
    new = table.add(*_named(_1="A", _2="b"))
    new["add"] |= {"baseRowId": 0, "defaultRowCommitVersion": 1}
    table.commit(commit_info("UPDATE"), remove(old), new)


def _collation_that_spark_lacks(path: Path) -> Iterator[None]:
    """Delta's reader fails on it also."""
    table = HandmadeTable(path, _ID, column("name", "string", metadata={"__COLLATIONS": {"name": "other.LOUD"}}))
    table.commit(commit_info(), table.add(*_named(_1="a")))
    yield


def _timestamps_of_nanoseconds(path: Path) -> Iterator[None]:
    table = HandmadeTable(path, _ID, column("at", "timestamp"))
    types = {"at": pa.timestamp("ns", tz="UTC")}
    table.commit(
        commit_info(),
        table.add({"id": 1, "at": dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.timezone.utc)}, types=types),
    )
    yield
    table.commit(
        commit_info(), table.add({"id": 2, "at": dt.datetime(2025, 1, 1, tzinfo=dt.timezone.utc)}, types=types)
    )


def _key_twice_in_a_year_that_python_does_not_have(path: Path) -> Iterator[None]:
    table = HandmadeTable(path, column("day", "date"), _NAME)
    table.commit(commit_info(), table.add({"day": 0, "name": "epoch"}))
    yield
    table.commit(commit_info(), table.add({"day": _FAR, "name": "one"}, {"day": _FAR, "name": "two"}))


def _key_of_null_beside_personal_values(path: Path) -> Iterator[None]:
    table = HandmadeTable(path, _ID, _NAME, column("day", "date"))
    table.commit(commit_info(), table.add({"id": 1, "name": "a", "day": 0}))
    yield
    table.commit(commit_info(), table.add({"id": None, "name": "Ada Lovelace", "day": _FAR}))


def _change_file_without_partition_values(path: Path) -> Iterator[None]:
    table, old = _by_country(path)
    yield
    changes = table.change_file(
        {"id": 1, "name": "a", "_change_type": "update_preimage"},
        {"id": 1, "name": "A", "_change_type": "update_postimage"},
    )
    table.commit(commit_info("UPDATE"), remove(old), _of_country(table, "usa", _1="A", _2="b"), changes)


MIRRORED = (
    Foreign(_change_file_without_partition_values),
    Foreign(_update_without_its_old_row),
    Foreign(_deleted_row_twice_in_the_change_file),
    Foreign(_deleted_row_missing_in_the_change_file),
    Foreign(_partition_overwritten_without_partition_values),
    Foreign(_partition_overwritten_without_partition_values, ways=("feed",), keys="[id, country]"),
    Foreign(_files_removed_and_added_twice_in_a_commit),
    Foreign(_file_added_while_it_is_live, ways=(*BOTH, "append_only")),
    Foreign(_file_removed_and_added_again),
    Foreign(_files_added_and_removed_in_a_commit),
    Foreign(_removes_in_spellings_that_name_no_file),
    Foreign(_files_with_absolute_and_encoded_paths),
    Foreign(_char_without_padding, keys="[code]"),
    Foreign(_years_that_python_does_not_have, keys="[day]"),
    Foreign(_files_with_odd_names),
    Foreign(_timestamps_of_int96),
    Foreign(_rows_hidden_by_vectors_in_the_log),
    Foreign(_file_without_a_column),
    Foreign(_file_without_a_column_that_had_a_default),
    Foreign(_timestamp_partition_without_a_zone),
    Foreign(_odd_commits, ways=(*BOTH, "append_only")),
    Foreign(_columns_replaced_by_an_unnamed_operation),
    Foreign(_statistics_of_other_types),
    Foreign(_statistics_with_wrong_limits, where="amount > 100"),
    Foreign(_names_swapped_by_renames, where="a = 'keep'"),
    Foreign(_rows_whose_old_file_has_no_ids, ways=("row_tracking",)),
)

REFUSED = (
    Refused(_commits_of_a_coordinator, "coordinatedCommits"),
    Refused(_file_without_a_column_that_has_no_nulls, r"\bname\b", BOTH),
    Refused(_file_without_a_column_whose_default_is_computed, r"current_user.*`note`", BOTH),
    Refused(_file_without_a_field_that_has_no_nulls, "NOT NULL field of column `info`", BOTH),
    Refused(_collation_that_spark_lacks, "other"),
    Refused(_timestamps_of_nanoseconds, r"NANOS|\.parquet", BOTH),
    Refused(_key_twice_in_a_year_that_python_does_not_have, r"\bday\b", BOTH, keys="[day]"),
    Refused(_key_of_null_beside_personal_values, r"NULL", BOTH, never=("Ada Lovelace", "12100")),
)
