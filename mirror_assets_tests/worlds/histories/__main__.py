"""Wide histories: `python -m mirror_assets_tests.worlds.histories --histories 50 --seed 1`; a seed repeats one."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from mirror_assets.encode.session import open_session, spark_settings
from mirror_assets_tests import quick_jvm
from mirror_assets_tests.worlds.histories.setup import Way
from mirror_assets_tests.worlds.histories.wide import Outcome, WideHistory


def main() -> int:
    """Exit code 0 when no mirror differs from its source."""
    parser = argparse.ArgumentParser(prog="python -m mirror_assets_tests.worlds.histories", description=__doc__)
    parser.add_argument("--histories", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10_000), help="of the first; others count on")
    parser.add_argument("--steps", type=int, default=12, help="bursts of commits in each (default: 12)")
    names = [way.name.lower() for way in Way]
    parser.add_argument("--ways", nargs="+", choices=names, default=names, help="ways of finding changes, in turn")
    parser.add_argument("--statements", action="store_true", help="print the statements of each history")
    options = parser.parse_args()
    ways = [Way[name.upper()] for name in options.ways]
    folder = Path(tempfile.mkdtemp(prefix="mirror-assets-histories-"))
    outcomes = []
    try:
        spark = open_session(spark_settings(quick_jvm.SMALL_DATA | _session(folder)))
        for number in range(options.histories):
            seed = options.seed + number
            history = WideHistory(spark, folder / str(number), seed, ways[number % len(ways)])
            outcomes.append(history.run(options.steps))
            _print(str(outcomes[-1]))
            if outcomes[-1].failure:
                _print(outcomes[-1].failure)
            if outcomes[-1].failure or options.statements:
                _print("\n".join(outcomes[-1].steps))
            shutil.rmtree(folder / str(number))
            forget_snapshots(spark)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _summarize(outcomes)
    return int(any(outcome.failure for outcome in outcomes))


def _session(folder: Path) -> dict[str, str]:
    return {
        "spark.master": "local[2]",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Xmn1g {quick_jvm.OPTIONS}",
    }


def forget_snapshots(spark: SparkSession) -> None:
    """Free the memory of the tables that Delta has read; between two histories only."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def _summarize(outcomes: list[Outcome]) -> None:
    for way in Way:
        of_way = [outcome for outcome in outcomes if outcome.way is way]
        if of_way:
            _print(f"{way.value:<26} {_sums(of_way)}")
    _print(f"{'all':<26} {_sums(outcomes)}")


def _sums(outcomes: list[Outcome]) -> str:
    numbers: Counter[str] = Counter()
    for outcome in outcomes:
        numbers.update(outcome.figures())
    return "  ".join(f"{round(number):>5} {name}" for name, number in numbers.items())


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 a program for people


if __name__ == "__main__":
    sys.exit(main())
