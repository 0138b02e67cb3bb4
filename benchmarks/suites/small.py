"""A commit of a hundred rows, from the moment it is there until it has landed, on a session that is warm."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.recorded_store import RecordedStore, Step, depth
from benchmarks.result import Case, Goal, Outcome
from mirror_assets.landing.publish import publish
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.project import stand_in
from mirror_assets.pipeline.run import mirror_table
from mirror_assets.pipeline.stage import stage_attempt
from mirror_assets_tests.delta_reader import read_changes

FEED = {"delta.enableChangeDataFeed": "true"}
_ROWS, _CHANGED = 100_000, 50
_WARMING = 3
_DUMP, _LAND = "raw dump", "encode, check and publish"
_Result = TypeVar("_Result")


def make_small(folder: Path, rows: int = _ROWS) -> str:
    """The URI of a table of so many rows, with a feed."""
    ids = list(range(rows))
    uri = str(folder)
    values = {"id": ids, "name": [f"name {id_}" for id_ in ids], "amount": [id_ / 2 for id_ in ids]}
    write_deltalake(uri, pa.table(values), configuration=FEED)
    return uri


def change(uri: str, turn: int) -> None:
    """Commit an update of fifty rows, which is a hundred rows of the feed."""
    first = turn * _CHANGED
    DeltaTable(uri).update({"amount": "amount + 1"}, predicate=f"id >= {first} AND id < {first + _CHANGED}")


def run(bench: Bench) -> Outcome:
    """Measure commits one after the other, whole, in turns with a raw dump of each, and step by step."""
    table = BenchTable(bench.spark, bench.folder / "zone", make_small(bench.folder / "orders"), "keys: [id]")
    context = table.context()
    table.land(context=context)
    ways = {
        _DUMP: lambda _: _dump(table, bench.folder / "dump"),
        _LAND: lambda _: table.land(context=context),
    }
    commit = partial(change, table.uri)
    costs = interleaved(bench.meter, ways, bench.size(10, 30), _WARMING, prepare=commit)
    steps = _Steps()
    for turn in range(bench.size(5, 15)):
        change(table.uri, turn)
        steps.land(context)
    change(table.uri, 0)
    notes = [*steps.lines(), *_timeline(table, context)]
    case = Case("a commit of 100 feed rows", costs, _DUMP)
    goal = Goal("commit to landed, warm", case.seconds(_LAND), 0.25, "s")
    return Outcome("small slices", [case], [goal], notes)


def _dump(table: BenchTable, target: Path) -> None:
    version = DeltaTable(table.uri).version()
    read_changes(table.spark, table.uri, version, version).write.parquet(str(target))
    shutil.rmtree(target)


def _timeline(table: BenchTable, context: TableContext) -> list[str]:
    """Land the pending slice with a recorded landing zone; return what it waited for: steps, requests, Spark's jobs."""
    steps = list[Step]()
    store = RecordedStore(context.store)
    recorded = replace(context, store=store.as_store())
    known, began = {job.name for job in _jobs(table.spark)}, time.perf_counter()
    for event in mirror_table(recorded, stand_in(context.config, store.as_store()), lambda _: None, plan_again=False):
        if isinstance(event, ProcessedSlice):
            ended = time.perf_counter()
            starts = [ended - event.seconds, *(ended - event.seconds + sum(_first(event.steps, n)) for n in (1, 2, 3))]
            steps += [Step("plan", began, starts[0]), *map(Step, event.steps, starts, starts[1:])]
    jobs = [job for job in _jobs(table.spark) if job.name not in known]
    inner = [replace(one, name=f"    {one.name}") for one in (*store.requests, *jobs)]
    lines = [one.since(began) for one in sorted((*steps, *inner), key=lambda step: step.began)]
    waited = f"  {len(store.requests)} requests to the landing zone, {depth(store.requests)} of them one after another"
    return ["  one slice: start and duration of its steps, requests to the landing zone, and jobs", *lines, waited]


def _first(steps: Mapping[str, float], number: int) -> list[float]:
    return list(steps.values())[:number]


def _jobs(spark: SparkSession) -> list[Step]:
    """Return Spark's jobs that have ended, with their times."""
    context = spark._jsc.sc()  # noqa: SLF001 there is no public way
    context.listenerBus().waitUntilEmpty()
    listed, offset = context.statusStore().jobsList(None), time.perf_counter() - time.time()
    jobs = [listed.apply(index) for index in range(listed.size())]
    return [
        Step(
            f"Spark's job {job.jobId()}, stages: {job.numCompletedStages()}",
            job.submissionTime().get().getTime() / 1000 + offset,
            job.completionTime().get().getTime() / 1000 + offset,
        )
        for job in jobs
        if job.completionTime().isDefined()
    ]


@dataclass
class _Steps:
    """Seconds of each step of landing a slice, as `mirror_table` takes them."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def land(self, context: TableContext) -> None:
        """Land the one slice that is pending."""
        self._timed("recover", lambda: drive(recover(context.name), context.store))
        plan = self._timed("read the log, plan", lambda: plan_table(context))
        record = self._timed("encode, stage", lambda: stage_attempt(context, plan.slices[0], plan.position))
        checked, _ = self._timed("check", lambda: run_checks(context, record))
        self._timed("publish", lambda: drive(publish(context.name, checked, tuple(BLOCKING_CHECKS)), context.store))
        self._timed("look for more", lambda: plan_table(context))

    def lines(self) -> list[str]:
        """Medians."""
        return [f"  {name:20} {median(taken) * 1000:6.0f} ms" for name, taken in self.seconds.items()]

    def _timed(self, name: str, step: Callable[[], _Result]) -> _Result:
        began = time.perf_counter()
        result = step()
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        return result
