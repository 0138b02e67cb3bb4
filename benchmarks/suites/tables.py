"""Many tables with a small change each, in one run on a warm session."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.bench import Bench
from benchmarks.result import Case, Goal, Outcome
from benchmarks.suites.small import change, make_small
from mirror_assets.cli.execute import mirror
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config

_HEAD = "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\ntables:\n"
_ROWS = 1_000


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

    def land(self) -> None:
        """One run over all of them, as `mirror-assets run` does it. Raises RuntimeError if a table fails."""
        reports = mirror(self._config)
        failed = [report.error for report in reports if report.error]
        if failed or len(reports) != len(self._uris):
            raise RuntimeError(failed[:1])


def run(bench: Bench) -> Outcome:
    """Measure runs over few and many tables."""
    cases = []
    for tables in bench.size((5, 10), (10, 30, 100)):
        lake = Lake(bench.spark, bench.folder / f"{tables}", tables)
        costs = []
        for turn in range(bench.rounds):
            lake.change(turn)
            costs.append(bench.meter.measured(lake.land))
        cases.append(Case(f"{tables} tables, a commit of 100 feed rows in each", {"run": tuple(costs)}, "run", tables))
    largest = cases[-1]
    goal = Goal(f"a table, of {largest.size}", largest.seconds("run") / largest.size, 0.5, "s")
    return Outcome("many tables", cases, [goal])
