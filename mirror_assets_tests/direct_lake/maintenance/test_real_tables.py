"""What a plan foretells is what Spark then does: files, rows to load, and what is still readable."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.direct_lake.framing import FramingEffect, framing_effect
from mirror_assets.direct_lake.maintenance.bins import FileSizes
from mirror_assets.direct_lake.maintenance.maintenance_plan import maintenance_plan
from mirror_assets.direct_lake.maintenance.plan_values import (
    Dialect,
    Effect,
    MaintenanceInput,
    MaintenancePlan,
    SafeRetention,
    Step,
    StepKind,
    Worth,
)
from mirror_assets.direct_lake.maintenance.writer_settings import spark_settings
from mirror_assets.direct_lake.sql import partition_predicate, table_at
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.values import Snapshot
from mirror_assets.direct_lake.vacuum.model_frames import Frame
from mirror_assets.direct_lake.vacuum.vacuum_plan import plan_vacuum

# How many files each commit's partition gets: one per commit in which it has rows. The larger, the more rows in it.
_COMMITS = {"it's \\ a": 10, "b": 3, None: 8, "d": 1}

_VECTORS: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, which forgets what a plan has set."""
    yield spark
    for name in ("minFileSize", "maxFileSize", "maxDeletedRowsRatio"):
        spark.conf.unset(f"spark.databricks.delta.optimize.{name}")
    for name in ("parquet.block.row.count.limit", "parquet.block.size"):
        spark.conf.unset(name)


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
    return TableLog(str(path)).snapshot()


def _run(session: SparkSession, plan: MaintenancePlan) -> None:
    for statement in (*plan.settings, *(step.statement for step in plan.steps)):
        session.sql(statement)


def _did(effect: FramingEffect, before: Snapshot) -> Effect:
    """What was done, as a plan would have foretold it."""
    return Effect(
        files_before=len(before.files),
        files_after=effect.total.files,
        bytes_before=sum(file.bytes for file in before.files),
        bytes_after=effect.total.bytes,
        rows_to_load=effect.reloaded.rows,
        bytes_to_load=effect.reloaded.bytes,
    )


def _foretold(step: Step) -> Effect:
    assert step.effect is not None
    return step.effect


def _numbers(effect: Effect) -> tuple[int, int, int | None]:
    """What is exact; bytes are not."""
    return effect.files_before, effect.files_after, effect.rows_to_load


def _per_partition(snapshot: Snapshot) -> Counter[str | None]:
    return Counter(file.partition["part"] for file in snapshot.files)


@pytest.mark.parametrize(
    ("sizes", "worth", "chosen"),
    [
        (FileSizes(), Worth(), {"it's \\ a", None}),
        (FileSizes(min_bytes=9_000, max_bytes=20_000), Worth(saved_share=0.6), {None}),
        (
            FileSizes(min_bytes=10_000, max_bytes=10_000),
            Worth(min_files=2, saved_share=0),
            {"it's \\ a", "b", None},
        ),
    ],
)
def test_optimize_does_what_is_foretold(
    session: SparkSession, table: Path, sizes: FileSizes, worth: Worth, chosen: set[str | None]
) -> None:
    before = _snapshot(table)
    plan = maintenance_plan(before, MaintenanceInput(sizes=sizes, worth=worth))
    (step,) = plan.steps
    _run(session, plan)
    after = _snapshot(table)
    done = _did(framing_effect(before, after), before)
    assert _numbers(done) == _numbers(_foretold(step))
    assert done.bytes_after < _foretold(step).bytes_after  # of such small files, most is footer
    files, now = _per_partition(before), _per_partition(after)
    assert {part for part in files if files[part] != now[part]} == chosen


def test_purging_hidden_rows_does_what_is_foretold(session: SparkSession, tmp_path: Path) -> None:
    """Of the first partition half of the rows are hidden, of the second few; a bin holds two or three of the files."""
    table = _made(tmp_path / "t", _VECTORS)
    name = table_at(str(table))
    session.sql(f"DELETE FROM {name} WHERE (part LIKE 'it%' AND id % 2 = 0) OR (part = 'b' AND id = 40)")
    before = _snapshot(table)
    wanted = MaintenanceInput(sizes=FileSizes(max_bytes=16_000), worth=Worth(min_files=99))
    plan = maintenance_plan(before, wanted)
    (step,) = plan.steps
    assert step.statement == f"REORG TABLE {name} WHERE `part` = 'it\\'s \\\\ a' APPLY (PURGE)"
    _run(session, plan)
    after = _snapshot(table)
    assert _numbers(_did(framing_effect(before, after), before)) == _numbers(_foretold(step))
    assert {file.partition["part"] for file in after.files if file.vector} == {"b"}


def test_optimize_purges_what_it_rewrites_and_reorg_the_rest(session: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE takes large files for their hidden rows; one that fills a bin alone is left to REORG."""
    table = _made(tmp_path / "t", _VECTORS)
    name = table_at(str(table))
    session.sql(f"DELETE FROM {name} WHERE id >= 400")
    before = _snapshot(table)
    plan = maintenance_plan(
        before,
        MaintenanceInput(sizes=FileSizes(min_bytes=2_000, max_bytes=13_000), worth=Worth(min_files=2, saved_share=0.2)),
    )
    assert [step.kind for step in plan.steps] == [StepKind.OPTIMIZE, StepKind.REORG]
    for statement in plan.settings:
        session.sql(statement)
    for step in plan.steps:
        session.sql(step.statement)
        now = _snapshot(table)
        assert _numbers(_did(framing_effect(before, now), before)) == _numbers(_foretold(step))
        before = now
    assert not any(file.vector for file in before.files)


def test_a_whole_plan_runs_and_leaves_frames_readable(session: SparkSession, tmp_path: Path) -> None:
    """Two days on, the table's own property would let VACUUM delete what a model has framed."""
    table = _made(tmp_path / "t", {"delta.deletedFileRetentionDuration": "interval 25 hours"})
    name, framed = table_at(str(table)), TableLog(str(table)).newest()
    rows = sum(file.rows or 0 for file in _snapshot(table).files)
    session.sql(f"DELETE FROM {name} WHERE part = 'b' AND id < 100")
    log, before = TableLog(str(table)), _snapshot(table)
    guard = plan_vacuum(log, time.time() + 2 * 86_400, [Frame("model", framed)])
    assert len(guard.threatened) == 3
    plan = maintenance_plan(before, MaintenanceInput(retention=SafeRetention.of(guard)))
    assert [step.kind for step in plan.steps] == [StepKind.OPTIMIZE, StepKind.RETENTION, StepKind.VACUUM]
    _run(session, plan)
    moment = datetime.fromtimestamp(log.time_ms(framed) / 1000, timezone.utc).isoformat(timespec="milliseconds")
    for point in (f"VERSION AS OF {framed}", f"TIMESTAMP AS OF '{moment}'"):
        assert session.sql(f"SELECT * FROM {name} {point}").count() == rows
    assert plan_vacuum(TableLog(str(table)), time.time() + 2 * 86_400, [Frame("model", framed)]).is_safe
    assert len(_snapshot(table).files) < len(before.files)


def test_a_clustered_table_is_optimised_as_a_whole(session: SparkSession, tmp_path: Path) -> None:
    """And its hidden rows, as long as they are of one cube, by nothing else."""
    path = tmp_path / "t"
    name = table_at(str(path))
    session.sql(
        f"CREATE TABLE {name} (id BIGINT) USING delta CLUSTER BY (id) "
        "TBLPROPERTIES (delta.enableDeletionVectors = true)"
    )
    for _ in range(3):
        session.sql(f"INSERT INTO {name} SELECT * FROM range(0, 500, 1, 3)")
    before = _snapshot(path)
    plan = maintenance_plan(before, MaintenanceInput())
    (step,) = plan.steps
    assert step.statement == f"OPTIMIZE {name}"
    _run(session, plan)
    assert _numbers(_did(framing_effect(before, _snapshot(path)), before)) == _numbers(_foretold(step))

    session.sql(f"DELETE FROM {name} WHERE id % 2 = 0")
    hidden = _snapshot(path)
    assert not maintenance_plan(hidden, MaintenanceInput()).steps
    session.sql(f"REORG TABLE {name} APPLY (PURGE)")
    assert _snapshot(path).files == hidden.files


def test_delta_heeds_no_condition_on_a_column_with_a_dot(session: SparkSession, tmp_path: Path) -> None:
    for numbers in ([1, 1, 2], [1, 1, 2, 2]):
        for number in numbers:
            data = pa.table({"a.b": [number], "id": [0]})
            write_deltalake(tmp_path / str(len(numbers)), data, mode="append", partition_by=["a.b"])
    some, every = (_snapshot(tmp_path / name) for name in "34")
    wanted = MaintenanceInput(worth=Worth(min_files=2))
    assert maintenance_plan(some, wanted).steps
    assert maintenance_plan(every, wanted).steps
    few = maintenance_plan(every, MaintenanceInput(worth=Worth(min_files=99, max_files=3)))
    assert [left_out.why for left_out in few.left_out if left_out.kind is StepKind.OPTIMIZE] == [
        "not worth it in all partitions, and Delta heeds no condition on `a.b`, for its dot"
    ]
    session.sql(f"OPTIMIZE {table_at(every.uri)} WHERE `a.b` = 1")
    assert len(_snapshot(Path(every.uri)).files) == 2, "if there are three, Delta has learned it"


_KEYS = {
    "s": pa.array(["it's \\ a", "b", None]),
    "f": pa.array([1.1, float("nan"), None], pa.float32()),
    "d": pa.array([date(2024, 1, 2), date(1969, 12, 31), None]),
    "t": pa.array([datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)] * 2 + [None], pa.timestamp("us", "UTC")),
    "b": pa.array([True, False, None]),
    "m": pa.array([Decimal("1.50"), Decimal("-2.00"), None], pa.decimal128(5, 2)),
}


def test_conditions_hold_for_their_partitions_alone(session: SparkSession, tmp_path: Path) -> None:
    """By values of all kinds, each partition by itself and two together."""
    write_deltalake(tmp_path / "t", pa.table(_KEYS | {"id": [0, 1, 2]}), partition_by=list(_KEYS))
    snapshot = _snapshot(tmp_path / "t")
    keys = [tuple(file.partition[name] for name in _KEYS) for file in snapshot.files]
    name, rows = table_at(snapshot.uri), []
    for chosen in (*([key] for key in keys), keys[:2]):
        condition = partition_predicate(snapshot.metadata, chosen)
        rows.append(session.sql(f"SELECT id FROM {name} WHERE {condition}").count())
    session.sql(f"OPTIMIZE {name} WHERE {condition}")
    assert rows == [1, 1, 1, 2]


def test_row_groups_have_as_many_rows_as_is_set(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for setting in spark_settings("t", FileSizes(), Dialect.DELTA, row_group_rows=1_000)[:2]:
        session.sql(setting.statement)
    session.range(0, 3_500, 1, 1).write.format("delta").save(str(path))
    (file,) = path.glob("*.parquet")
    footer = pq.read_metadata(file)
    assert [footer.row_group(group).num_rows for group in range(footer.num_row_groups)] == [1000, 1000, 1000, 500]
