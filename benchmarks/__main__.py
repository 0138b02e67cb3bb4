"""`make bench`: every suite, or those that are named; figures, goals, a JSON file and pictures.

Suites build their own tables. What is compared runs in turns in one process, so that only ratios need to be believed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.plots import growth
from benchmarks.result import Outcome, write_results
from benchmarks.suites import (
    age,
    alone,
    by_way,
    catch_up,
    changes,
    choosing,
    comparing,
    dagster,
    direct_lake,
    growing,
    limits,
    onelake,
    planning,
    replicating,
    small,
    tables,
)
from mirror_assets.encode.session import open_session, spark_settings

_SUITES: Mapping[str, Callable[[Bench], Outcome]] = {
    "changes": changes.run,
    "choosing": choosing.run,
    "small": small.run,
    "tables": tables.run,
    "plan": planning.run,
    "catch-up": catch_up.run,
    "by-way": by_way.run,
    "comparing": comparing.run,
    "replicator": replicating.run,
    "onelake": onelake.run,
    "direct-lake": direct_lake.run,
    "growing": growing.run,
    "alone": alone.run,
    "age": age.run,
    "dagster": dagster.run,
    "limits": limits.run,
}
# Vectored reads are in none of Hadoop's counters.
_SETTINGS = {"spark.driver.memory": "6g", "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}
_PLOTS = {"growing": "rows of the feed", "catching up": "commits", "many tables": "tables", "dagster": "tables"}


def main() -> None:
    """Run the suites, print and keep what they found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(_SUITES)} (default: all)")
    parser.add_argument("--size", choices=("small", "full"), default="small", help="how large (default: small)")
    parser.add_argument("--out", type=Path, default=Path(".bench"), help="folder of results (default: .bench)")
    options = parser.parse_args()
    unknown = set(options.suites) - _SUITES.keys()
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(_SUITES)}")
    outcomes = [_measured(name, full=options.size == "full") for name in options.suites or _SUITES]
    options.out.mkdir(parents=True, exist_ok=True)
    write_results(outcomes, options.out / f"{options.size}.json")
    for outcome in outcomes:
        _draw(outcome, options.out)
    goals = [goal for outcome in outcomes for goal in outcome.goals]
    print(f"== goals: {sum(goal.is_met for goal in goals)} of {len(goals)} met ==", *goals, sep="\n")


def _measured(name: str, *, full: bool) -> Outcome:
    """What one suite finds, printed at once; its tables are gone afterwards."""
    spark = open_session(spark_settings(_SETTINGS))
    with tempfile.TemporaryDirectory(prefix="mirror-bench-") as place:
        outcome = _SUITES[name](Bench(spark, Path(place), full))
    print(outcome, flush=True)
    return outcome


def _draw(outcome: Outcome, folder: Path) -> None:
    """Pictures of cases that differ in size."""
    axis = _PLOTS.get(outcome.suite)
    sized = [case for case in outcome.cases if case.size]
    for ways in {tuple(case.ways) for case in sized}:
        alike = [case for case in sized if tuple(case.ways) == ways]
        if axis and len(alike) > 1:
            name = f"{outcome.suite}, {ways[0]}".replace(" ", "-").replace(",", "")
            growth(alike, axis, f"Time against {axis}", folder / f"{name}.png")


if __name__ == "__main__":
    main()
