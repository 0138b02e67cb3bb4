"""`python -m benchmarks.against CHECKOUT SUITE …`: the suites of this checkout and of another one, in turns.

Each turn runs them in two processes, and begins with the other checkout and with this one alternately. By default both
run this checkout's suites on each checkout's product; with `--own`, each checkout runs its own suites, and rows of one
name are compared: for a change that the suites of the other checkout can't call.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.curve import GrowthPoint
from benchmarks.result import Spread

_HERE = Path(__file__).parent.parent
# What comes from the other checkout unless it runs its own suites.
_PRODUCT = ("mirror_assets", "mirror_assets_tests")
_COST = ("seconds", "cpu_seconds")
_Measured = dict[tuple[str, str], float]
"""The median of each row's seconds and processor seconds, or the number of a point of growth."""


def main() -> None:
    """Run the turns, and print before, now and the ratios of the turns."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("checkout", type=Path, help="folder of the other checkout, which is `before`")
    parser.add_argument("suites", nargs="+", metavar="SUITE")
    parser.add_argument("--turns", type=int, default=3, help="how often each runs (default: 3)")
    parser.add_argument("--size", choices=("small", "full"), default="small", help="how large (default: small)")
    parser.add_argument("--own", action="store_true", help="each checkout runs its own suites")
    given = parser.parse_args()
    found: dict[str, list[_Measured]] = {"before": [], "now": []}
    with tempfile.TemporaryDirectory(prefix="mirror-against-") as folder:
        other = given.checkout.resolve() if given.own else _overlaid(Path(folder), given.checkout.resolve())
        checkouts = {"before": other, "now": _HERE}
        for turn in range(given.turns):
            for name in sorted(checkouts, reverse=turn % 2 == 1):
                print(f"turn {turn + 1}, {name} …", flush=True)
                found[name].append(
                    _measured(checkouts[name], given.suites, given.size, Path(folder) / f"{name}-{turn}")
                )
    print(*table(found["before"], found["now"]), sep="\n")


def _overlaid(folder: Path, checkout: Path) -> Path:
    """Return a folder with this checkout's suites and the other's product."""
    made = folder / "overlaid"
    made.mkdir()
    for name in _PRODUCT:
        (made / name).symlink_to(checkout / name)
    for path in _HERE.iterdir():
        if path.name not in _PRODUCT:
            (made / path.name).symlink_to(path)
    return made


def _measured(checkout: Path, suites: Sequence[str], size: str, out: Path) -> _Measured:
    """Run the suites in a process whose modules are of that checkout. Raises CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks", *suites, "--size", size, "--out", str(out)]
    subprocess.run(
        command, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)}, check=True, stdout=subprocess.DEVNULL
    )
    return dict(measured_in(json.loads((out / f"{size}.json").read_text(encoding="utf-8"))))


def measured_in(outcomes: Sequence[dict[str, list[dict[str, object]]]]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield the numbers of a file that `write_results` wrote, by row and measure."""
    for outcome in outcomes:
        for case in outcome["cases"]:
            ways = case["ways"]
            assert isinstance(ways, dict)  # noqa: S101 the costs by way
            for way, costs in ways.items():
                for measure in _COST:
                    yield (f"{case['name']}: {way}", measure), median(cost[measure] for cost in costs)
        for curve in outcome.get("curves", ()):
            points = curve["points"]
            assert isinstance(points, list)  # noqa: S101 the curve's points
            for point in (GrowthPoint(**one) for one in points):
                row = f"{curve['name']}: {point.size:,} {curve['axis']}"
                yield from (((row, measure), value) for measure, value in vars(point).items() if measure != "size")


def table(before: Sequence[_Measured], now: Sequence[_Measured]) -> Iterator[str]:
    """Yield a row for each number that both have: medians, ranges, and the ratios of the turns."""
    yield "| what | measure | before | now | now ÷ before |"
    yield "| --- | --- | --- | --- | --- |"
    turns = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for old, new in zip(before, now, strict=True):
        for key in old.keys() & new.keys():
            turns[key].append((old[key], new[key]))
    for row, measure in before[0]:
        pairs = turns[row, measure]
        if pairs and all(old for old, _ in pairs):
            sides = (Spread.of([pair[side] for pair in pairs]) for side in (0, 1))
            ratio = Spread.of([new / old for old, new in pairs])
            yield "| " + " | ".join(map(str, (row, measure, *sides, ratio))) + " |"


if __name__ == "__main__":
    main()
