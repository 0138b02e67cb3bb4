"""Features of a table change between the commits of one slice, in each way of finding changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.errors import MirrorError
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landed_rows import ALL, Chosen, Rows, landed_rows, require_equal, source_rows
from mirror_assets_tests.smoke import smoke_first

_FEED, _TRACKED, _VECTORS = (
    f"delta.enable{feature} = true" for feature in ("ChangeDataFeed", "RowTracking", "DeletionVectors")
)
_PLAIN = "delta.enableDeletionVectors = false"
_ENABLE = f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_VECTORS})"
_DROP = "ALTER TABLE {t} DROP FEATURE deletionVectors"
_INSERT, _DELETE = "INSERT INTO {t} VALUES (7777, 'x', 1)", "DELETE FROM {t} WHERE id = 3"
_UPDATE = "UPDATE {t} SET amount = 6 WHERE id = 1"
_BY_NAME = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
_WIDEN = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"


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
    *_in_each_way(
        "a second vector on a file, then purged",
        _DELETE,
        "DELETE FROM {t} WHERE id = 4",
        "REORG TABLE {t} APPLY (PURGE)",
        before=("DELETE FROM {t} WHERE id = 5",),
        properties=_VECTORS,
    ),
    *_in_each_way(
        "column mapping enabled between updates", _UPDATE, _BY_NAME, "UPDATE {t} SET amount = 7 WHERE id IN (1, 2)"
    ),
    *_in_each_way("vectors and column mapping enabled at once", _BY_NAME, _ENABLE, _DELETE, _UPDATE),
    *_in_each_way(
        "row tracking enabled between updates",
        _UPDATE,
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_TRACKED})",
        "UPDATE {t} SET amount = 7 WHERE id IN (1, 2)",
    ),
    *_in_each_way(
        "a column widened between updates",
        _UPDATE,
        _WIDEN,
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "UPDATE {t} SET amount = 7 WHERE id IN (1, 2)",
        _INSERT,
    ),
    *_in_each_way(
        "clustered between updates", _UPDATE, "ALTER TABLE {t} CLUSTER BY (id)", "OPTIMIZE {t} FULL", _DELETE
    ),
    *_in_each_way(
        "the feed disabled and enabled between updates",
        _UPDATE,
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)",
        "UPDATE {t} SET amount = 7 WHERE id IN (1, 2)",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED})",
        _DELETE,
    ),
)


def _ids(keys: str) -> str | None:
    """The column that the row id has in the mirror of a table without keys."""
    return "_row_id" if keys == "[]" else None


def _require_equal(lab: Lab, chosen: Chosen = ALL, keys: str = "[id]") -> None:
    """What has landed is the source at its tip."""
    wanted = source_rows(lab.spark, Path(lab.uri), chosen=chosen, ids=_ids(keys))
    require_equal(wanted, landed_rows(lab.folder, _columns(wanted)))


def _columns(rows: Rows) -> set[str]:
    """Names of the columns in which a row has a value: a mirror keeps the columns that were dropped."""
    return {name for values in rows for name, _ in values}


@pytest.mark.parametrize("change", smoke_first(CHANGES, 12), ids=str)
def test_a_feature_may_change_within_a_slice(spark: SparkSession, tmp_path: Path, change: Change) -> None:
    lab = Lab(spark, tmp_path)
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


def test_a_table_made_again_with_the_same_version_is_loaded_again(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure("changes: files", "slices: {max_rows: 5}")
    _write_by_rust(lab.uri, 0)
    _write_by_rust(lab.uri, 5)
    lab.mirror()
    shutil.rmtree(Path(lab.uri, "_delta_log"))
    _write_by_rust(lab.uri, 100)
    _write_by_rust(lab.uri, 105)
    lab.mirror()
    _require_equal(lab)
    assert ("id", 0) not in {value for values in landed_rows(lab.folder) for value in values}


def _write_by_rust(uri: str, first: int) -> None:
    ids = range(first, first + 5)
    amounts = pa.array([float(id_) for id_ in ids], pa.float64())
    names = pa.array([f"n{id_}" for id_ in ids], pa.string())
    rows = pa.table({"id": pa.array(ids, pa.int32()), "name": names, "amount": amounts})
    write_deltalake(uri, rows, mode="append")


def test_a_condition_on_a_member_that_older_versions_lack_keeps_the_right_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab, where = Lab(spark, tmp_path), "info.a IS NULL OR info.a > 0"
    lab.configure(f"changes: files\n    where: {where}", "slices: {max_commits: 100}")
    lab.create()
    lab.sql("ALTER TABLE {t} ADD COLUMNS (info STRUCT<a: INT>)")
    lab.mirror()
    lab.sql(*(f"UPDATE {{t}} SET info = named_struct('a', {a}) WHERE id = {id_}" for id_, a in ((3, -1), (4, 1))))
    lab.mirror()
    _require_equal(lab, Chosen(where))


def test_char_that_delta_rs_writes_without_blanks_is_padded_as_by_delta(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure("changes: files", "slices: {max_commits: 100}")
    lab.sql(
        "CREATE TABLE {t} (id INT, name CHAR(5), amount DOUBLE) USING delta",
        "INSERT INTO {t} VALUES (1, 'ab', 1), (2, 'cd', 2)",
    )
    write_deltalake(lab.uri, pa.table({"id": pa.array([3], pa.int32()), "name": ["x"], "amount": [3.0]}), mode="append")
    lab.mirror()
    _require_equal(lab)
    lab.sql("UPDATE {t} SET amount = 9 WHERE id IN (2, 3)")
    lab.mirror()
    _require_equal(lab)


def test_a_key_that_two_rows_have_is_refused_or_reconcile_is_right_about_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second row is in a file of its own: only a slice that reads both files can see it."""
    lab = Lab(spark, tmp_path)
    lab.configure("changes: files", "slices: {max_commits: 100}")
    lab.create()
    lab.mirror()
    lab.sql("INSERT INTO {t} VALUES (5, 'again', 1)")
    try:
        lab.mirror()
    except MirrorError as refused:
        assert "id" in str(refused)  # noqa: PT017 both are right
    else:
        is_right = source_rows(spark, Path(lab.uri)) == landed_rows(lab.folder)
        assert lab.is_equal is is_right


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
def test_a_condition_follows_no_column_that_only_took_the_name(
    spark: SparkSession, tmp_path: Path, column: str, where: str
) -> None:
    lab = Lab(spark, tmp_path)
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


@pytest.mark.parametrize(
    "sql", ["cast('09:30:00' as timestamp)", "timestamp '09:30:00'", "date_trunc('day', cast('09:00' as timestamp))"]
)
def test_an_expression_that_depends_on_today_is_refused(spark: SparkSession, tmp_path: Path, sql: str) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure(f"columns: {{at: {{sql: {json.dumps(sql)}, type: timestamp}}}}")
    lab.create()
    with pytest.raises(MirrorError, match=r"\bat\b"):
        lab.mirror()


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


def _late_feed(lab: Lab) -> None:
    lab.sql(
        "CREATE TABLE {t} (id INT, name STRING) USING delta",
        "INSERT INTO {t} VALUES (1, 'a')",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED})",
        "UPDATE {t} SET name = 'z'",
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


@pytest.mark.parametrize("make", [_column_mapping, _late_feed, _cleaned, _partitioned_with_a_late_feed, _clone])
def test_a_table_with_a_history_is_loaded_and_followed(
    spark: SparkSession, tmp_path: Path, make: Callable[[Lab], None]
) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure("changes: feed", "slices: {max_commits: 100}")
    make(lab)
    lab.mirror()
    _require_equal(lab)
    lab.sql("DELETE FROM {t} WHERE id = 3", "UPDATE {t} SET id = id + 1000 WHERE id = 1")
    lab.mirror()
    _require_equal(lab)


def test_the_start_that_the_message_of_a_cleaned_log_advises_works(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
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


def test_rows_without_keys_are_followed_by_their_ids_until_row_tracking_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure("changes: row_tracking", "slices: {max_commits: 100}", "[]")
    lab.sql(
        "CREATE TABLE {t} (name STRING, v INT) USING delta",
        "INSERT INTO {t} VALUES ('a', 1), ('b', 2), ('a', 1)",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_TRACKED})",
    )
    lab.mirror()
    lab.sql("UPDATE {t} SET v = 9 WHERE name = 'b'")
    lab.mirror()
    _require_equal(lab, keys="[]")
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableRowTracking = false)", "UPDATE {t} SET v = 8 WHERE name = 'b'"
    )
    with pytest.raises(MirrorError, match="enableRowTracking"):
        lab.mirror()
