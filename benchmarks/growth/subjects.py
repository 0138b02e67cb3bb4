"""What is measured at five sizes: how the table of one size is made, and the work whose cost may grow.

The work is one of stable entry points: those of the pipeline, or a command.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.growth.clusters import Cluster
from benchmarks.many import ManyTables
from benchmarks.source import load_table, make_source
from benchmarks.synthetic_log import Log, many_files
from mirror_assets.cli.main import main as command
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.next_action import next_action
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.verify.staged import StagedSlice
from mirror_assets.verify.uniqueness import inspect_keys

Prepare = Callable[[Bench, Path, int], None]
Work = Callable[[SparkSession | None, Path], Callable[[], object]]
_KEYS = "keys: [id]"
# Of one commit, each of which replaces all files: half are adds, half removes.
_FILES_A_COMMIT = 500
# On clusters of several sizes.
_ROWS_FOR_CLUSTERS, _CHANGED_FOR_CLUSTERS = 6_000_000, 500_000


@dataclass(frozen=True)
class Subject:
    """A row of the table of growth. With `one_table`, each size works on the same data.

    `prepare` makes the data in a folder; `work` returns what is measured, in a new process.
    """

    name: str
    title: str
    axis: str
    small: tuple[int, ...]
    full: tuple[int, ...]
    cluster: Cluster
    prepare: Prepare
    work: Work
    one_table: bool = False


def _doubled(first: int) -> tuple[int, ...]:
    return tuple(first * 2**power for power in range(5))


def _staged_load(bench: Bench, folder: Path, rows: int) -> None:
    # Keys in no order, such as UUIDs: those that ascend need no sort.
    load_table(bench.spark, str(folder / "table"), rows, vectors=False, key="xxhash64(id)")
    BenchTable(bench.spark, folder / "zone", str(folder / "table"), _KEYS).stage()


def _checks(spark: SparkSession | None, folder: Path) -> Callable[[], object]:
    """All checks of the slice that is staged there."""
    context = _table(spark, folder, folder / "zone", _KEYS).context()
    plan = plan_table(context)
    return partial(run_checks, context, stage_slice(context, next(iter(plan.slices)), plan.position))


def _keys_by_spark(spark: SparkSession | None, folder: Path) -> Callable[[], object]:
    """The check of keys as Spark makes it for more than a hundred million rows."""
    assert spark is not None  # noqa: S101 it has a cluster
    context = _table(spark, folder, folder / "zone", _KEYS).context()
    plan = plan_table(context)
    record = stage_slice(context, next(iter(plan.slices)), plan.position)
    staged = StagedSlice(context.store, record, context.store)
    return lambda: inspect_keys(staged, lambda: 1, lambda: spark, most_rows_here=0)


def _half_updated(bench: Bench, folder: Path, rows: int) -> None:
    load_table(bench.spark, str(folder / "table"), 2 * rows, vectors=False)
    bench.spark.sql(f"UPDATE delta.`{folder / 'table'}` SET delay = delay + 1 WHERE id % 2 = 1")


def _land_by_files(spark: SparkSession | None, folder: Path) -> Callable[[], object]:
    return _table(spark, folder, _new(folder), f"{_KEYS}, changes: files, start: {{version: 1}}").land


def _changes(bench: Bench, folder: Path, rows: int) -> None:
    BenchTable(bench.spark, folder / "zone", make_source(bench.spark, folder, rows), _KEYS).begin(0)


def _land_changes(spark: SparkSession | None, folder: Path) -> Callable[[], object]:
    assert spark is not None  # noqa: S101 it has a cluster
    begun = BenchTable(spark, folder / "zone", str(folder / "flights"), _KEYS)
    return begun.copied(_new(folder)).land


def _backlog(_: Bench, folder: Path, actions: int) -> None:
    Log(folder / "table", actions // (2 * _FILES_A_COMMIT), _FILES_A_COMMIT)


def _commits(_: Bench, folder: Path, commits: int) -> None:
    Log(folder / "table", commits, linked=True)


def _next_action(spark: SparkSession | None, folder: Path) -> Callable[[], object]:
    """The plan up to the first slice, as a run makes it before it works."""
    settings = f"{_KEYS}, changes: files, start: {{version: 1}}, slices: {{max_commits: 10}}"
    table = _table(spark, folder, _new(folder), settings)
    return lambda: next_action(table.context(), lambda *_: frozenset(), time.time())


def _stage(spark: SparkSession | None, folder: Path) -> Callable[[], object]:
    return _table(spark, folder, _new(folder), f"{_KEYS}, changes: files").stage


def _report(_: SparkSession | None, folder: Path) -> Callable[[], object]:
    return lambda: _run_command("direct-lake", "report", str(folder / "table"), "--cache", str(_new(folder)))


def _history(_: SparkSession | None, folder: Path) -> Callable[[], object]:
    config = folder / "mirror.yaml"
    settings = f"source: {folder / 'table'}, keys: [id], history: slices"
    config.write_text(f"landing_zone: {{path: ./landing}}\ntables:\n  bench.log: {{{settings}}}\n", encoding="utf-8")
    return lambda: _run_command("history", "--dry-run", "--config", str(config))


def _many(_: Bench, folder: Path, tables: int) -> None:
    ManyTables.make(folder / "many", tables)


def _run(_: SparkSession | None, folder: Path) -> Callable[[], object]:
    return lambda: _run_command("run", "--config", str(ManyTables.open(folder / "many").config))


def _run_command(*arguments: str) -> None:
    """Run it in this process. Raises RuntimeError if it fails."""
    if code := command(arguments):
        message = f"mirror-assets {' '.join(arguments)}: exit code {code}"
        raise RuntimeError(message)


def _table(spark: SparkSession | None, folder: Path, zone: Path, settings: str) -> BenchTable:
    return BenchTable(spark, zone, str(folder / "table"), settings)


def _new(folder: Path) -> Path:
    return folder / f"zone-{uuid.uuid4().hex[:8]}"


_ALL = (
    Subject(
        "slice", "A slice of changes: encode, check and publish", "feed rows",
        _doubled(25_000), _doubled(250_000), Cluster.TWO_EXECUTORS, _changes, _land_changes,
    ),
    Subject(
        "uniqueness", "The checks of a first load, keys in no order", "rows",
        _doubled(50_000), _doubled(1_000_000), Cluster.TWO_EXECUTORS, _staged_load, _checks,
    ),
    Subject(
        "files", "A slice read by files, half of all rows changed", "changed rows",
        _doubled(25_000), _doubled(125_000), Cluster.TWO_EXECUTORS, _half_updated, _land_by_files,
    ),
    Subject(
        "backlog", "The plan of a backlog, read by files", "file actions",
        _doubled(10_000), (62_500, 250_000, 1_000_000, 4_000_000, 10_000_000), Cluster.NONE, _backlog, _next_action,
    ),
    Subject(
        "load", "The plan and scan of a first load, a deletion vector for each file", "files",
        _doubled(100), _doubled(2_500), Cluster.TWO_EXECUTORS,
        lambda bench, folder, files: many_files(bench.spark, folder / "table", files, vectors=True), _stage,
    ),
    Subject(
        "direct-lake", "The report for Direct Lake", "files",
        _doubled(250), _doubled(2_500), Cluster.NONE,
        lambda bench, folder, files: many_files(bench.spark, folder / "table", files, vectors=False), _report,
    ),
    Subject(
        "history", "The plan of a history", "commits",
        _doubled(250), _doubled(2_500), Cluster.NONE,
        _commits, _history,
    ),
    Subject(
        "threads", "A run over many tables", "tables",
        _doubled(2), _doubled(16), Cluster.NONE, _many, _run,
    ),
    Subject(
        "tasks", "A slice read by files, on one executor", "cores of the executor",
        _doubled(1), _doubled(1), Cluster.CORES,
        lambda bench, folder, _: _half_updated(bench, folder, _CHANGED_FOR_CLUSTERS), _land_by_files, one_table=True,
    ),
    Subject(
        "executors", "The keys of a first load by Spark, on a standalone cluster", "workers of one core",
        (1, 2), (1, 2, 4), Cluster.WORKERS,
        lambda bench, folder, _: _staged_load(bench, folder, _ROWS_FOR_CLUSTERS), _keys_by_spark, one_table=True,
    ),
)  # fmt: skip
SUBJECTS = {subject.name: subject for subject in _ALL}
