"""Real VACUUMs delete what was predicted, no file more or less, and take from readers what was said."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from mirror_assets.config.setting_values import Changes
from mirror_assets.features.direct_lake.consumers import MIRROR, MirrorNeeds, Requirement
from mirror_assets.features.direct_lake.vacuum import VacuumPlan, _Needs, plan_vacuum
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests import figures
from mirror_assets_tests.features.direct_lake.vacuums import Lake, small_tables
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.source.handmade import commit_file
from mirror_assets_tests.source.random_lakes import histories, moments

_WEEK_MS = 7 * 86_400_000
_DAY_MS = 86_400_000
_FEED: dict[str, str | None] = {"delta.enableChangeDataFeed": "true"}
_ROWS = "SELECT CAST(id AS INT) AS id, concat('a b:', id % 2) AS _p, CAST(id AS STRING) AS note FROM range({}, {})"
_SECOND = f"INSERT INTO {{t}} {_ROWS.format(10, 14)}"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with small_tables(spark, vacuum__logging__enabled="false"):
        yield spark


def _created(lake: Lake, partitioned: str = "", **properties: str) -> None:
    """A table of ten rows; in properties' names, two underlines stand for the dots."""
    named = ", ".join(f"'delta.{name.replace('__', '.')}' = '{value}'" for name, value in properties.items())
    lake.sql(f"CREATE TABLE {{t}} USING delta {partitioned} TBLPROPERTIES ({named}) AS {_ROWS.format(0, 10)}")


def _rust_rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table({"id": pa.array(ids, pa.int64()), "_p": [("a b", "c:d%", None)[i % 3] for i in ids]})


def _by_delta_rs(
    lake: Lake, partition_by: list[str] | None = None, configuration: dict[str, str | None] | None = None
) -> None:
    path = str(lake.path)
    write_deltalake(path, _rust_rows(0, 12), partition_by=partition_by, configuration=configuration)
    write_deltalake(path, _rust_rows(12, 20), mode="append")
    DeltaTable(path).update(predicate="id < 4", updates={"id": "id + 100"})
    DeltaTable(path).delete("id = 8")
    DeltaTable(path).optimize.compact()
    write_deltalake(path, _rust_rows(0, 3), mode="overwrite")


def _plain(lake: Lake) -> None:
    _by_delta_rs(lake)


def _partitioned_with_feed(lake: Lake) -> None:
    _by_delta_rs(lake, ["_p"], _FEED)
    (lake.path / "_tmp").mkdir()
    for name in ("_tmp/hidden.parquet", "orphan.parquet", ".hidden"):
        (lake.path / name).touch()


def _deletion_vectors_with_feed(lake: Lake) -> None:
    _created(lake, enableDeletionVectors="true", enableChangeDataFeed="true")
    lake.sql("DELETE FROM {t} WHERE id = 1", "DELETE FROM {t} WHERE id = 2", _SECOND, "OPTIMIZE {t}")


def _column_mapping(lake: Lake) -> None:
    """With v2 checkpoints, JSON on top, one of them in the middle."""
    _created(lake, "PARTITIONED BY (_p)", columnMapping__mode="name", checkpointPolicy="v2", checkpointInterval="3")
    lake.sql("DELETE FROM {t} WHERE id = 1", "ALTER TABLE {t} RENAME COLUMN _p TO part")
    lake.sql("DELETE FROM {t} WHERE id = 2", "ALTER TABLE {t} DROP COLUMN note", "REORG TABLE {t} APPLY (PURGE)")


def _v2_parquet_checkpoints(lake: Lake) -> None:
    _created(lake, checkpointPolicy="v2", enableDeletionVectors="true", checkpointInterval="2")
    with small_tables(lake.spark, checkpointV2__topLevelFileFormat="parquet"):
        lake.sql("DELETE FROM {t} WHERE id < 6", _SECOND, "DELETE FROM {t} WHERE id = 7", "OPTIMIZE {t}")


def _in_commit_timestamps(lake: Lake) -> None:
    """Row tracking, too; VACUUM's own commits come behind."""
    _created(lake, enableInCommitTimestamps="true", enableRowTracking="true")
    lake.sql("UPDATE {t} SET id = 100 WHERE id = 3", _SECOND, "OPTIMIZE {t}")
    for version in range(4):
        commit_file(lake.path, version).touch()  # the time of the file is no longer that of the commit


def _cleaned_log(lake: Lake) -> None:
    """A checkpoint, some months on, has dropped the tombstones, and Delta itself the commits before it."""
    _created(lake, "PARTITIONED BY (_p)", enableDeletionVectors="true")
    lake.sql("DELETE FROM {t} WHERE id = 1", "DELETE FROM {t} WHERE _p = 'a b:0'")
    lake.checkpoint(_now_ms() + 60 * _DAY_MS)
    assert not commit_file(lake.path, 0).exists()
    lake.sql("DELETE FROM {t} WHERE id < 6")


def _shallow_clone(lake: Lake) -> None:
    """Its files and vectors are another table's, named by absolute paths."""
    origin = Lake(lake.spark, lake.path.with_name("origin"))
    _created(origin, enableDeletionVectors="true")
    origin.sql("DELETE FROM {t} WHERE id = 1")
    lake.sql(f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{origin.path}`", "DELETE FROM {t} WHERE id = 2")
    lake.sql(_SECOND, "UPDATE {t} SET id = 100 WHERE id = 3", "OPTIMIZE {t}")


def _beyond_ascii(lake: Lake) -> None:
    """Spark's VACUUM takes even live files of this: it knows none by the path that delta-rs has written."""
    rows = _rust_rows(0, 12).rename_columns(["id", "größe"])
    write_deltalake(str(lake.path), rows, partition_by=["größe"])
    write_deltalake(str(lake.path), rows, mode="overwrite")


_CASES: dict[str, tuple[Callable[[Lake], None], Changes]] = {
    "plain": (_plain, Changes.APPEND_ONLY),
    "partitioned, change feed, orphans": (_partitioned_with_feed, Changes.FEED),
    "deletion vectors, change feed": (_deletion_vectors_with_feed, Changes.FEED),
    "column mapping, v2 JSON checkpoints": (_column_mapping, Changes.ROW_TRACKING),
    "v2 Parquet checkpoints, deletion vectors": (_v2_parquet_checkpoints, Changes.FEED),
    "in-commit timestamps, row tracking": (_in_commit_timestamps, Changes.ROW_TRACKING),
    "in-commit timestamps, files": (_in_commit_timestamps, Changes.FILES),
    "cleaned log, deletion vectors": (_cleaned_log, Changes.FEED),
    "shallow clone": (_shallow_clone, Changes.ROW_TRACKING),
    "a column's name beyond ASCII, by delta-rs": (_beyond_ascii, Changes.APPEND_ONLY),
}


@pytest.mark.parametrize("case", smoke_first([*_CASES], 3))
def test_vacuum_deletes_what_was_predicted(session: SparkSession, tmp_path: Path, case: str) -> None:
    make, reads = _CASES[case]
    lake = Lake(session, tmp_path / "table")
    make(lake)
    log = DeltaLog(str(lake.path))
    versions = log.versions()
    ends = (log.time_ms(versions[len(versions) // 2]), _now_ms() + 1)
    for end_ms in ends:
        now_ms = end_ms + _WEEK_MS
        before = _plan(lake, now_ms, reads)
        deleted = lake.vacuum(now_ms)
        after = _plan(lake, now_ms, reads)
        _compare(case, before, deleted, after)
    assert not after.deleted


def _compare(case: str, before: VacuumPlan, deleted: set[str], after: VacuumPlan) -> None:
    predicted = {file.path for file in before.deleted}
    lost = {file.path for file in after.lost} - {file.path for file in before.lost}
    figures.report("files that VACUUM deletes", "predicted", len(predicted), case)
    figures.report("files that VACUUM deletes", "deleted", len(deleted), case)
    figures.report("files that VACUUM deletes", "difference", len(predicted ^ deleted), case)
    figures.report("files that VACUUM deletes", "of them needed", len(lost), case)
    assert predicted == deleted
    assert {file.path for file in before.threatened} == lost
    assert before.is_safe == (not lost)


def _plan(lake: Lake, now_ms: int, reads: Changes) -> VacuumPlan:
    """With a frame of every version, and a mirror that has covered only the first."""
    log = DeltaLog(str(lake.path))
    frames = [Requirement("frame", version) for version in log.versions()]
    return plan_vacuum(log, now_ms / 1000, frames, MirrorNeeds(log.versions()[0], reads))


def _now_ms() -> int:
    return int(time.time() * 1000)


@pytest.mark.parametrize("hours", [1, 0.4])
def test_retain_counts_only_if_it_is_zero(session: SparkSession, tmp_path: Path, hours: float) -> None:
    lake = Lake(session, tmp_path / "table")
    _plain(lake)
    now_ms = _now_ms() + _WEEK_MS // 2
    plan = plan_vacuum(DeltaLog(str(lake.path)), now_ms / 1000, retain_hours=hours)
    deleted = lake.vacuum(now_ms, f"RETAIN {hours} HOURS")
    assert deleted == {file.path for file in plan.deleted}
    assert bool(deleted) == (hours < 1)
    assert plan.deleted_bytes == sum(file.bytes for file in plan.deleted)


def test_the_statement_keeps_what_is_needed(session: SparkSession, tmp_path: Path) -> None:
    lake = Lake(session, tmp_path / "table")
    _by_delta_rs(lake, configuration={"delta.enableExpiredLogCleanup": "false"})
    frames, now_ms = [Requirement("frame", 1)], _now_ms() + 40 * _DAY_MS
    plan = plan_vacuum(DeltaLog(str(lake.path)), now_ms / 1000, frames)
    assert plan.threatened
    assert plan.statement is not None
    assert "logRetentionDuration = 'interval 42 days'" in plan.statement
    assert "deletedFileRetentionDuration = 'interval 42 days'" in plan.statement
    session.sql(plan.statement)  # Spark would refuse to keep files for longer than the log, cleaned or not
    now_ms += _DAY_MS
    safe = plan_vacuum(DeltaLog(str(lake.path)), now_ms / 1000, frames)
    assert safe.is_safe
    assert safe.statement is None
    assert safe.retention_seconds >= plan.min_safe_retention_seconds + _DAY_MS / 1000
    assert lake.vacuum(now_ms) == {file.path for file in safe.deleted}
    assert DeltaTable(lake.path, version=1).to_pyarrow_table().num_rows == 20


def test_what_can_still_be_read_is_what_was_said(session: SparkSession, tmp_path: Path) -> None:
    """By delta-rs, which opens the files: every version, and the changes behind every version."""
    lake = Lake(session, tmp_path / "table")
    _by_delta_rs(lake, configuration=_FEED)
    path = str(lake.path)
    now_ms = DeltaLog(path).time_ms(3) + _WEEK_MS
    lake.vacuum(now_ms)
    log, now = DeltaLog(path), now_ms / 1000
    plans = {version: plan_vacuum(log, now, [Requirement("frame", version)]) for version in log.versions()}
    said = [version for version, plan in plans.items() if not plan.lost]
    assert said == [version for version in plans if _can(_read_version, path, version)]
    assert 0 < said[0] < log.newest()
    feeds = {covered: plan_vacuum(log, now, mirror=MirrorNeeds(covered)) for covered in range(log.newest())}
    said = [covered for covered, plan in feeds.items() if not plan.lost]
    assert said == [covered for covered in feeds if _can(_read_changes, path, covered + 1)]
    assert 0 < said[0] < log.newest()
    assert [plan.resume_until is None for plan in feeds.values()] == [
        any(need.version == covered + 1 for file in plan.lost for need in file.needed_by)
        for covered, plan in feeds.items()
    ]


def _read_version(path: str, version: int) -> None:
    DeltaTable(path, version=version).to_pyarrow_table()


def _read_changes(path: str, first: int) -> None:
    pa.table(DeltaTable(path).load_cdf(starting_version=first))


def _can(read: Callable[[str, int], None], path: str, version: int) -> bool:
    try:
        read(path, version)
    except (OSError, ValueError, pa.ArrowException, DeltaError):
        return False
    return True


_BY_SPARK = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=2, suppress_health_check=_BY_SPARK)
@given(data=st.data())
def test_vacuum_of_any_history_deletes_what_was_predicted(session: SparkSession, data: st.DataObject) -> None:
    _vacuum_any(session, data)


@pytest.mark.soak
@settings(max_examples=100, suppress_health_check=_BY_SPARK)
@given(data=st.data())
def test_vacuum_of_many_histories_deletes_what_was_predicted(session: SparkSession, data: st.DataObject) -> None:
    _vacuum_any(session, data)


def _vacuum_any(session: SparkSession, data: st.DataObject) -> None:
    """Without deletion vectors in the log itself: Spark's VACUUM fails on those (Delta 4.4)."""
    with tempfile.TemporaryDirectory() as folder:
        random = data.draw(histories(Path(folder).resolve() / "table"))
        lake = Lake(session, random.root)
        now_ms = data.draw(moments) + 1 + _WEEK_MS
        before = _random_plan(lake, now_ms)
        deleted = lake.vacuum(now_ms)
        _compare("random histories", before, deleted, _random_plan(lake, now_ms))


def _random_plan(lake: Lake, now_ms: int) -> VacuumPlan:
    log = DeltaLog(str(lake.path))
    frames = [Requirement("frame", version) for version in log.versions()]
    return plan_vacuum(log, now_ms / 1000, frames, MirrorNeeds(0))


@settings(max_examples=60)
@given(data=st.data())
def test_the_least_retention_is_safe_and_no_shorter_one(data: st.DataObject) -> None:
    """As long as the plan says that it is safe it is, and a moment later it is not."""
    with tempfile.TemporaryDirectory() as folder:
        lake = data.draw(histories(Path(folder).resolve() / "table", inline=True))
        log = DeltaLog(str(lake.root))
        frames, mirror = [Requirement("frame", version) for version in log.versions()], MirrorNeeds(0)
        now = (data.draw(moments) + _WEEK_MS) / 1000
        plan = plan_vacuum(log, now, frames, mirror)
        assert plan.is_safe == (plan.min_safe_retention_seconds <= plan.retention_seconds)
        if plan.safe_until is None:
            assert plan.is_safe
        else:
            assert plan_vacuum(log, plan.safe_until, frames, mirror).is_safe
            unsafe = plan_vacuum(log, plan.safe_until + 0.001, frames, mirror)
            assert unsafe.threatened
            assert {need for file in unsafe.threatened for need in file.needed_by} <= {
                *(Requirement("frame", version) for version in log.versions()),
                *(Requirement("mirror", version) for version in range(1, log.newest() + 1)),
                Requirement("table", log.newest()),
            }


def test_files_with_the_same_readers_share_one_set(tmp_path: Path) -> None:
    """So a needed file costs its path alone, whatever the number of its readers is."""
    write_deltalake(tmp_path, pa.table({"id": range(40), "part": range(40)}), partition_by=["part"])
    needs = _Needs(DeltaLog(str(tmp_path)))
    needs.add_frames([Requirement("frame", 0), Requirement("other", 0)])
    needs.add_mirror(MirrorNeeds(-1))
    readers = set(needs.files.values())
    assert readers == {frozenset([Requirement("frame", 0), Requirement("other", 0), Requirement(MIRROR, 0)])}
    assert (len(needs.files), len({id(one) for one in needs.files.values()})) == (40, 1)
