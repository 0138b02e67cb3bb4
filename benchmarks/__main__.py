"""`make bench`: every suite, or those that are named; one table per area, and what has left the stored ratios.

Suites build their own tables. What is compared runs in turns in one process, so that only ratios need to be believed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.growth.subjects import SUBJECTS
from benchmarks.plots import growth_picture, slice_picture
from benchmarks.result import Outcome, table, write_results
from benchmarks.stored import Machine, compared, store
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
    first_load,
    growing,
    growth,
    limits,
    onelake,
    planning,
    replicating,
    small,
    tables,
)

AREAS: Mapping[str, Mapping[str, Callable[[Bench], Outcome]]] = {
    "change slices": {
        "changes": changes.run,
        "choosing": choosing.run,
        "growing": growing.run,
        "by-way": by_way.run,
        "catch-up": catch_up.run,
    },
    "first loads": {"first-load": first_load.run},
    "small commits": {"small": small.run, "alone": alone.run},
    "many tables": {"tables": tables.run},
    "planning": {"plan": planning.run, "age": age.run},
    "comparing": {"comparing": comparing.run},
    "publishing": {"onelake": onelake.run, "replicator": replicating.run},
    "Direct Lake": {"direct-lake": direct_lake.run},
    "Dagster": {"dagster": dagster.run, "limits": limits.run},
    "growth": {f"growth-{name}": growth.run_of(name) for name in SUBJECTS},
}
SUITES = {name: run for suites in AREAS.values() for name, run in suites.items()}
_DOCS_PICTURES = Path(__file__).parent.parent / "docs" / "pictures"


@dataclass(frozen=True)
class _Options:
    """The command line."""

    suites: tuple[str, ...]
    size: str
    out: Path
    stores: bool


def main() -> None:
    """Run the suites, print and keep the results, and compare them with the stored ones or replace those."""
    options = _options()
    outcomes = dict[str, Outcome]()
    for area, suites in AREAS.items():
        chosen = [name for name in suites if name in options.suites]
        measured = {name: _measured(name, options) for name in chosen}
        if chosen:
            print(table(area, list(measured.values())), flush=True)
        outcomes |= measured
    options.out.mkdir(parents=True, exist_ok=True)
    write_results(list(outcomes.values()), options.out / f"{options.size}.json")
    for outcome in outcomes.values():
        _draw(outcome, _DOCS_PICTURES if options.stores else options.out)
    machine = Machine.here()
    print("== stored ratios ==")
    if options.stores:
        print(f"stored in {store(outcomes, machine, options.size).name}")
    else:
        print(*compared(outcomes, machine, options.size), sep="\n")


def _options() -> _Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = ", ".join((*AREAS, *SUITES))
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"a suite or an area of {known} (default: all)")
    parser.add_argument("--size", choices=("small", "full"), default="small", help="how large (default: small)")
    parser.add_argument("--out", type=Path, default=Path(".bench"), help="folder of results (default: .bench)")
    parser.add_argument("--store", action="store_true", help="replace the stored results of this machine")
    given = parser.parse_args()
    suites = list[str]()
    for name in given.suites or AREAS:
        suites += AREAS.get(name, [name])
    if unknown := set(suites) - SUITES.keys():
        parser.error(f"no suite {', '.join(sorted(unknown))}; choose from {known}")
    return _Options(tuple(suites), given.size, given.out, given.store)


def _measured(name: str, options: _Options) -> Outcome:
    """Return what one suite measures; its tables are deleted afterwards."""
    print(f"{name} …", flush=True)
    with tempfile.TemporaryDirectory(prefix="mirror-bench-") as place:
        return SUITES[name](Bench(Path(place), options.size == "full", options.stores))


def _draw(outcome: Outcome, folder: Path) -> None:
    """Draw a picture of each curve, and one of the slices of several sizes."""
    for curve in outcome.curves:
        growth_picture(curve, folder / f"{outcome.suite.replace(' ', '-')}.png")
    sized = [case for case in outcome.cases if case.size]
    if outcome.suite == "growing" and len(sized) > 1:
        slice_picture(sized, folder / "time-against-rows.png")


if __name__ == "__main__":
    main()
