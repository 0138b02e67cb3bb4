"""Features of a table change between the commits of one slice; histories change all features, in any order."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.errors import MirrorError
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landed_rows import ALL, Chosen, Rows, landed_rows, require_equal, source_rows

_FEED, _TRACKED, _VECTORS = (
    f"delta.enable{feature} = true" for feature in ("ChangeDataFeed", "RowTracking", "DeletionVectors")
)
_PLAIN = "delta.enableDeletionVectors = false"
_ENABLE = f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_VECTORS})"
_DROP = "ALTER TABLE {t} DROP FEATURE deletionVectors"
_INSERT, _DELETE = "INSERT INTO {t} VALUES (7777, 'x', 1)", "DELETE FROM {t} WHERE id = 3"
_UPDATE = "UPDATE {t} SET amount = 6 WHERE id = 1"


@dataclass(frozen=True)
class Change:
    """A table of `files` files, statements before its first load, and those of the slice after it.

    With `lost`, the change files of the slice are deleted before it is read.
    """

    name: str
    way: str
    properties: str
    statements: tuple[str, ...]
    before: tuple[str, ...] = ()
    files: int = 1
    lost: bool = False
    keys: str = "[id]"

    def __str__(self) -> str:
        return f"{self.name}-{self.way}"


def _in_each_way(
    name: str, *statements: str, before: tuple[str, ...] = (), properties: str = _PLAIN
) -> tuple[Change, ...]:
    return tuple(
        Change(name, way, f"{properties}, {needed}", statements, before, keys="[]" if way == "row_tracking" else "[id]")
        for way, needed in (("feed", _FEED), ("files", _TRACKED), ("row_tracking", _TRACKED))
    )


CHANGES = (
    *_in_each_way("vectors enabled and used", _INSERT, _ENABLE, _DELETE),
    Change("vectors enabled and used", "row_tracking", f"{_PLAIN}, {_TRACKED}", (_ENABLE, _DELETE)),
    Change(
        "a change file is lost, then vectors are used",
        "feed",
        _FEED,
        (_UPDATE, _ENABLE, "DELETE FROM {t} WHERE id IN (3, 4)"),
        lost=True,
    ),
    Change(
        "a change file is lost, then vectors are used in another file",
        "feed",
        _FEED,
        (_UPDATE, _ENABLE, "DELETE FROM {t} WHERE id = 8"),
        files=2,
        lost=True,
    ),
    Change(
        "the feed is disabled, then vectors are used",
        "feed",
        _FEED,
        ("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)", _INSERT, _ENABLE, _DELETE),
    ),
    Change("vectors enabled and used in one of many files", "files", _PLAIN, (_INSERT, _ENABLE, _DELETE), files=10),
    *_in_each_way("vectors used, then their feature is dropped", _DELETE, _DROP, properties=_VECTORS),
    *_in_each_way(
        "restored to before a vector, then the feature is dropped",
        "RESTORE TABLE {t} TO VERSION AS OF 1",
        _DROP,
        before=(_DELETE,),
        properties=_VECTORS,
    ),
)


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Lab:
    """No table yet."""
    return Lab(spark, tmp_path)


def _ids(keys: str) -> str | None:
    """The column that the row id has in the mirror of a table without keys."""
    return "_row_id" if keys == "[]" else None


def _require_equal(lab: Lab, chosen: Chosen = ALL, keys: str = "[id]") -> None:
    wanted = source_rows(lab.spark, Path(lab.uri), chosen=chosen, ids=_ids(keys))
    require_equal(wanted, landed_rows(lab.folder, _columns(wanted)))


def _columns(rows: Rows) -> set[str]:
    """Names of the columns in which a row has a value: a mirror keeps the columns that were dropped."""
    return {name for values in rows for name, _ in values}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_feature_may_change_within_a_slice(lab: Lab, change: Change) -> None:
    lab.configure(f"changes: {change.way}", "slices: {max_commits: 100}", change.keys)
    lab.sql(
        f"CREATE TABLE {{t}} (id INT, name STRING, amount DOUBLE) USING delta TBLPROPERTIES ({change.properties})",
        f"INSERT INTO {{t}} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(0, 10, 1, {change.files})",
        *change.before,
    )
    lab.mirror()
    _require_equal(lab, keys=change.keys)
    lab.sql(*change.statements)
    if change.lost:
        for file in Path(lab.uri, "_change_data").glob("*.parquet"):
            file.unlink()
    lab.mirror()
    _require_equal(lab, keys=change.keys)


def test_a_condition_on_a_member_that_older_versions_lack_keeps_the_right_rows(lab: Lab) -> None:
    where = "info.a IS NULL OR info.a > 0"
    lab.configure(f"changes: files\n    where: {where}", "slices: {max_commits: 100}")
    lab.create()
    lab.sql("ALTER TABLE {t} ADD COLUMNS (info STRUCT<a: INT>)")
    lab.mirror()
    lab.sql(*(f"UPDATE {{t}} SET info = named_struct('a', {a}) WHERE id = {id_}" for id_, a in ((3, -1), (4, 1))))
    lab.mirror()
    _require_equal(lab, Chosen(where))


@pytest.mark.parametrize(
    ("column", "where"),
    [
        ("fa2", "fa2 = 'x'"),
        ("2fa", "2fa = 'x'"),
        ("it's", "`it's` = 'x'"),
        ("state", "state = 'x' -- id's and name's"),
        ("état", "`état` = 'x'"),
    ],
)
def test_a_condition_follows_no_column_that_only_took_the_name(lab: Lab, column: str, where: str) -> None:
    lab.configure(f"where: {json.dumps(where)}\n    columns: [name]", "slices: {max_commits: 100}")
    lab.sql(
        f"CREATE TABLE {{t}} (id INT, name STRING, `{column}` STRING) USING delta "
        f"TBLPROPERTIES ({_FEED}, delta.columnMapping.mode = 'name')",
        "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), IF(id < 5, 'x', 'y') FROM range(10)",
    )
    lab.mirror()
    lab.sql(
        f"ALTER TABLE {{t}} RENAME COLUMN `{column}` TO old",
        f"ALTER TABLE {{t}} ADD COLUMNS (`{column}` STRING)",
        "UPDATE {t} SET name = 'q' WHERE id = 1",
    )
    lab.mirror()
    assert landed_rows(lab.folder).total() == 0


# Tables with a history of their own


def _column_mapping(lab: Lab) -> None:
    lab.sql(
        "CREATE TABLE {t} (id INT, name STRING) USING delta "
        f"TBLPROPERTIES ({_FEED}, 'delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
        "UPDATE {t} SET name = 'c' WHERE id = 1",
        "DELETE FROM {t} WHERE id = 2",
        "ALTER TABLE {t} ADD COLUMNS (note STRING)",
        "INSERT INTO {t} VALUES (3, 'd', 'n')",
    )


def _cleaned(lab: Lab) -> None:
    """Version 6 has a checkpoint; the commits before 5 are deleted."""
    lab.sql(
        f"CREATE TABLE {{t}} (id INT, name STRING) USING delta TBLPROPERTIES ({_FEED}, delta.checkpointInterval = 3)",
        *(f"INSERT INTO {{t}} VALUES ({id_}, 'a')" for id_ in range(8)),
    )
    for version in range(5):
        Path(lab.uri, "_delta_log", f"{version:020d}.json").unlink()


def _partitioned_with_a_late_feed(lab: Lab) -> None:
    lab.sql(
        "CREATE TABLE {t} (id BIGINT, part INT) USING delta PARTITIONED BY (part)",
        "INSERT INTO {t} SELECT id, CAST(id % 5 AS INT) FROM range(100)",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED})",
        "INSERT INTO {t} SELECT id + 100, CAST(id % 5 AS INT) FROM range(50)",
        "DELETE FROM {t} WHERE id < 10",
        "INSERT INTO {t} VALUES (99999, 1)",
    )


def _clone(lab: Lab) -> None:
    base = Lab(lab.spark, lab.root / "base")
    _column_mapping(base)
    lab.sql(f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{base.uri}`", "INSERT INTO {t} VALUES (50, 'clone', 'x')")


@pytest.mark.parametrize("make", [_cleaned, _partitioned_with_a_late_feed, _clone])
def test_a_table_with_a_history_is_loaded_and_followed(lab: Lab, make: Callable[[Lab], None]) -> None:
    lab.configure("changes: feed", "slices: {max_commits: 100}")
    make(lab)
    lab.mirror()
    _require_equal(lab)
    lab.sql("DELETE FROM {t} WHERE id = 3", "UPDATE {t} SET id = id + 1000 WHERE id = 1")
    lab.mirror()
    _require_equal(lab)


def test_the_start_that_the_message_of_a_cleaned_log_advises_works(lab: Lab) -> None:
    lab.configure("start: {version: 2}", "slices: {max_commits: 100}")
    _cleaned(lab)
    with pytest.raises(MirrorError) as refused:
        lab.mirror()
    advised = next((f"start: {start}" for start in ("snapshot", "latest") if start in refused.value.next_step), None)
    if advised is None:
        versions = [
            int(word) for word in refused.value.next_step.replace(",", " ").replace(".", " ").split() if word.isdigit()
        ]
        assert versions, refused.value.next_step
        advised = f"start: {{version: {versions[0]}}}"
    lab.configure(advised, "slices: {max_commits: 100}")
    lab.mirror()
