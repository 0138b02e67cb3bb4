"""Many tables with a small change each, in one run on a warm session."""

from __future__ import annotations

import shutil
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.bench import Bench
from benchmarks.meter import Cost
from benchmarks.result import Case, Outcome
from benchmarks.suites.small import change, make_small
from mirror_assets.cli.execute import mirror
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets_tests.delta_reader import read_changes

_HEAD = "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\ntables:\n"
_ROWS = 1_000
_LOOP, _RUN = "plain loop in one session", "run"


class Lake:
    """Some small tables, mirrored by one configuration."""

    def __init__(self, spark: SparkSession, folder: Path, tables: int) -> None:
        """Make the tables, and land them once; the session is the one that Dagster's resource will find running."""
        folder.mkdir()
        self._spark, self._uris = spark, [make_small(folder / f"t{table}", _ROWS) for table in range(tables)]
        lines = (f"  bench.t{table}: {{source: {uri}, keys: [id]}}\n" for table, uri in enumerate(self._uris))
        (folder / "mirror.yaml").write_text(_HEAD + "".join(lines), encoding="utf-8")
        self._config: Config = load_config(folder / "mirror.yaml")
        self.land()

    def change(self, turn: int) -> None:
        """A commit in each table."""
        for uri in self._uris:
            change(uri, turn % (_ROWS // 100))

    def dump(self) -> None:
        """Dump the feed of each table's newest commit, one table after the other."""
        for uri in self._uris:
            version, target = DeltaTable(uri).version(), Path(f"{uri}-dump")
            read_changes(self._spark, uri, version, version).write.parquet(str(target))
            shutil.rmtree(target)

    def land(self) -> None:
        """One run over all of them, as `mirror-assets run` does it. Raises RuntimeError if a table fails."""
        reports = mirror(self._config)
        failed = [report.error for report in reports if report.error]
        if failed or len(reports) != len(self._uris):
            raise RuntimeError(failed[:1])


def run(bench: Bench) -> Outcome:
    """Measure runs over few and many tables, in turns with a loop that dumps the same feeds."""
    cases = []
    for tables in bench.size((5, 10), (10, 30, 100)):
        lake = Lake(bench.spark, bench.folder / f"{tables}", tables)
        costs: dict[str, list[Cost]] = {_LOOP: [], _RUN: []}
        for turn in range(1 + bench.rounds):
            lake.change(turn)
            costs[_LOOP].append(bench.meter.measured(lake.dump))
            costs[_RUN].append(bench.meter.measured(lake.land))
        # The first turn warms the loop's queries.
        ways = {way: tuple(taken[1:]) for way, taken in costs.items()}
        cases.append(Case(f"{tables} tables, a commit of 100 feed rows in each", ways, _LOOP, tables))
    return Outcome("many tables", cases)
