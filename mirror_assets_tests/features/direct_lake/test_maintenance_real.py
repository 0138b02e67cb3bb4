"""Plans run on real tables: what is rewritten, where, and what is still readable."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.features.direct_lake.consumers import Requirement
from mirror_assets.features.direct_lake.framing import FramingEffect, framing_effect
from mirror_assets.features.direct_lake.maintenance_plan import (
    MaintenanceStep,
    StepKind,
    partition_predicate,
    rewrite_steps,
    vacuum_steps,
)
from mirror_assets.features.direct_lake.vacuum import plan_vacuum
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import Snapshot
from mirror_assets.spark_names import table_at

# How many files each commit's partition gets: one per commit in which it has rows. The larger, the more rows in it.
_COMMITS = {"it's \\ a": 10, "b": 3, None: 8, "d": 1}

_VECTORS: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return _made(tmp_path / "t")


def _made(path: Path, properties: dict[str, str | None] | None = None) -> Path:
    """22 files of sizes of all kinds in four partitions, one of them NULL, one with a name that must be escaped."""
    for commit in range(max(_COMMITS.values())):
        parts = [part for part, commits in _COMMITS.items() if commit < commits]
        rows = [(part, number) for part in parts for number in range(50 + 200 * commit)]
        data = pa.table({"part": [part for part, _ in rows], "id": pa.array([n for _, n in rows], pa.int64())})
        write_deltalake(path, data, mode="append", partition_by=["part"], configuration=None if commit else properties)
    return path


def _snapshot(path: Path) -> Snapshot:
    return DeltaLog(str(path)).snapshot()


def _planned(snapshot: Snapshot, *, optimize: bool = True, max_files: int | None = None) -> list[MaintenanceStep]:
    """Return the steps that rewrite files, without those that are omitted."""
    steps = rewrite_steps(snapshot, table_at(snapshot.uri), optimize=optimize, max_files=max_files)
    return [step for step in steps if step.statement]


def _run(spark: SparkSession, steps: Iterable[MaintenanceStep]) -> None:
    for step in steps:
        spark.sql(step.statement)


def _rows_and_files(step: MaintenanceStep) -> tuple[int, int | None]:
    """Return the expected number of files, and of rows that Direct Lake then loads."""
    assert step.effect is not None
    return step.effect.files_after, step.effect.rows_to_load


def _done(effect: FramingEffect) -> tuple[int, int | None]:
    """Return both as measured."""
    return effect.total.files, effect.reloaded.rows


def _per_partition(snapshot: Snapshot) -> Counter[str | None]:
    return Counter(file.partition["part"] for file in snapshot.files)


@pytest.mark.parametrize(
    ("max_files", "chosen"), [(None, {"it's \\ a", None}), (10, {"it's \\ a", None}), (5, {"it's \\ a", "b", None})]
)
def test_optimize_rewrites_the_partitions_of_the_plan(
    spark: SparkSession, table: Path, max_files: int | None, chosen: set[str | None]
) -> None:
    before = _snapshot(table)
    (step,) = _planned(before, max_files=max_files)
    _run(spark, [step])
    after = _snapshot(table)
    files, now = _per_partition(before), _per_partition(after)
    assert {part for part in files if files[part] != now[part]} == chosen
    assert _done(framing_effect(before, after)) == _rows_and_files(step)


def test_reorg_purges_the_partitions_of_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    """Of the first partition half of the rows are hidden, of the second few."""
    table = _made(tmp_path / "t", _VECTORS)
    name = table_at(str(table))
    spark.sql(f"DELETE FROM {name} WHERE (part LIKE 'it%' AND id % 2 = 0) OR (part = 'b' AND id = 40)")
    before = _snapshot(table)
    (step,) = _planned(before, optimize=False)
    assert step.statement == f"REORG TABLE {name} WHERE `part` = 'it\\'s \\\\ a' APPLY (PURGE)"
    _run(spark, [step])
    after = _snapshot(table)
    assert _done(framing_effect(before, after)) == _rows_and_files(step)
    assert {file.partition["part"] for file in after.files if file.vector} == {"b"}


def test_optimize_purges_what_it_rewrites_and_reorg_the_rest(spark: SparkSession, tmp_path: Path) -> None:
    table = _made(tmp_path / "t", _VECTORS)
    spark.sql(f"DELETE FROM {table_at(str(table))} WHERE id >= 40")
    before = _snapshot(table)
    steps = _planned(before)
    assert [step.kind for step in steps] == [StepKind.OPTIMIZE, StepKind.REORG]
    for step in steps:
        spark.sql(step.statement)
        now = _snapshot(table)
        assert framing_effect(before, now).reloaded.rows == _rows_and_files(step)[1]
        before = now
    assert not any(file.vector for file in before.files)


def test_a_whole_plan_runs_and_leaves_frames_readable(spark: SparkSession, tmp_path: Path) -> None:
    """Two days on, the table's own property would let VACUUM delete what a model has framed."""
    table = _made(tmp_path / "t", {"delta.deletedFileRetentionDuration": "interval 25 hours"})
    name, framed = table_at(str(table)), DeltaLog(str(table)).newest()
    rows = sum(file.rows or 0 for file in _snapshot(table).files)
    spark.sql(f"DELETE FROM {name} WHERE part = 'b' AND id < 100")
    log, before = DeltaLog(str(table)), _snapshot(table)
    guard = plan_vacuum(log, time.time() + 2 * 86_400, [Requirement("model", framed)])
    assert len(guard.threatened) == 3
    steps = [*_planned(before), *vacuum_steps(before, name, guard, rewritten=True)]
    assert [step.kind for step in steps] == [StepKind.OPTIMIZE, StepKind.RETENTION, StepKind.VACUUM]
    _run(spark, steps)
    moment = datetime.fromtimestamp(log.time_ms(framed) / 1000, timezone.utc).isoformat(timespec="milliseconds")
    for point in (f"VERSION AS OF {framed}", f"TIMESTAMP AS OF '{moment}'"):
        assert spark.sql(f"SELECT * FROM {name} {point}").count() == rows
    assert plan_vacuum(DeltaLog(str(table)), time.time() + 2 * 86_400, [Requirement("model", framed)]).is_safe
    assert len(_snapshot(table).files) < len(before.files)


def test_a_clustered_table_is_optimised_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    """And its hidden rows, as long as they are of one cube, by nothing else."""
    path = tmp_path / "t"
    name = table_at(str(path))
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT) USING delta CLUSTER BY (id) "
        "TBLPROPERTIES (delta.enableDeletionVectors = true)"
    )
    for _ in range(3):
        spark.sql(f"INSERT INTO {name} SELECT * FROM range(0, 500, 1, 3)")
    before = _snapshot(path)
    (step,) = _planned(before)
    assert step.statement == f"OPTIMIZE {name}"
    _run(spark, [step])
    assert _done(framing_effect(before, _snapshot(path))) == _rows_and_files(step)

    spark.sql(f"DELETE FROM {name} WHERE id % 2 = 0")
    hidden = _snapshot(path)
    assert not _planned(hidden)
    spark.sql(f"REORG TABLE {name} APPLY (PURGE)")
    assert _snapshot(path).files == hidden.files


def test_delta_ignores_a_condition_on_a_column_with_a_dot(spark: SparkSession, tmp_path: Path) -> None:
    for number in (1, 1, 2, 2):
        data = pa.table({"a.b": [number], "id": [0]})
        write_deltalake(tmp_path / "t", data, mode="append", partition_by=["a.b"])
    spark.sql(f"OPTIMIZE {table_at(str(tmp_path / 't'))} WHERE `a.b` = 1")
    assert len(_snapshot(tmp_path / "t").files) == 2, "if there are three, Delta has learned it"


_KEYS = {
    "s": pa.array(["it's \\ a", "b", None]),
    "f": pa.array([1.1, float("nan"), None], pa.float32()),
    "d": pa.array([date(2024, 1, 2), date(1969, 12, 31), None]),
    "t": pa.array([datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)] * 2 + [None], pa.timestamp("us", "UTC")),
    "b": pa.array([True, False, None]),
    "m": pa.array([Decimal("1.50"), Decimal("-2.00"), None], pa.decimal128(5, 2)),
}


def test_conditions_hold_for_their_partitions_alone(spark: SparkSession, tmp_path: Path) -> None:
    """By values of all kinds, each partition by itself and two together."""
    write_deltalake(tmp_path / "t", pa.table(_KEYS | {"id": [0, 1, 2]}), partition_by=list(_KEYS))
    snapshot = _snapshot(tmp_path / "t")
    keys = [tuple(file.partition[name] for name in _KEYS) for file in snapshot.files]
    name, rows = table_at(snapshot.uri), []
    for chosen in (*([key] for key in keys), keys[:2]):
        condition = partition_predicate(snapshot.metadata, chosen)
        rows.append(spark.sql(f"SELECT id FROM {name} WHERE {condition}").count())
    spark.sql(f"OPTIMIZE {name} WHERE {condition}")
    assert rows == [1, 1, 1, 2]
