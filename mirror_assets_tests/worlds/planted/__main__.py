"""Plant seventeen faults under a real daemon with the usual settings, and print which messages arrived, and when.

It takes about two hours: the checks run every five minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from mirror_assets_tests.worlds.kills.__main__ import print_line
from mirror_assets_tests.worlds.planted.faults import HELD, NEVER_REBUILT, OF_ALL, OF_TABLES, TABLES, Fault
from mirror_assets_tests.worlds.planted.site import Site, site
from mirror_assets_tests.worlds.planted.watch import Watch

_FIRST_LOAD_SECONDS = 600.0
# After the clock has jumped: the checks run once.
_HALF_A_DAY_SECONDS = 420.0


def _first_load(place: Site) -> float:
    """Wait until all tables have landed, and the checks have run; return the seconds. Raises TimeoutError."""
    began = time.monotonic()
    while time.monotonic() - began < _FIRST_LOAD_SECONDS:
        found = {key: value for key, value in place.metrics().items() if key[0] == "mirror_covered_version"}
        if sum(version >= 0 for version in found.values()) == len(place.tables):
            return time.monotonic() - began
        time.sleep(0.5)
    message = f"not all tables have landed within {_FIRST_LOAD_SECONDS:.0f} s; see the logs in {place.processes.home}"
    raise TimeoutError(message)


def plant_of_tables(watch: Watch, faults: list[Fault]) -> None:
    """Plant all at once; repair all when all are reported."""
    planted = [watch.plant(fault) for fault in faults]
    print_line(f"planted: {', '.join(fault.name for fault in faults)}")
    watch.until_begun(planted)
    for found in planted:
        print_line(found.line)
    for found in planted:
        watch.repair(found)
    watch.until_ended(planted)
    for found in planted:
        print_line(found.line)


def plant_of_all(watch: Watch, fault: Fault, down_seconds: float | None) -> None:
    """Plant the fault alone; `down_seconds` replaces the time for which it has the receiver down."""
    watch.site.hook.is_down = fault.down_seconds > 0
    found = watch.plant(fault)
    print_line(f"planted: {fault.name}")
    if fault.down_seconds:
        watch.stay(fault.down_seconds if down_seconds is None else down_seconds)
    watch.site.hook.is_down = False
    watch.until_begun([found])
    watch.stay(fault.lasts)
    for _ in range(fault.half_days):
        watch.site.advance_clock()
        watch.stay(_HALF_A_DAY_SECONDS)
    watch.repair(found)
    watch.until_ended([found])
    print_line(found.line)


def main() -> int:
    """Exit code 0 when each fault was reported once, its end once, and nothing else was reported."""
    parser = argparse.ArgumentParser(prog="python -m mirror_assets_tests.worlds.planted", description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of faults (default: all)")
    parser.add_argument("--folder", type=Path, help="a new folder, which is kept (default: one that is not)")
    parser.add_argument("--down-seconds", type=float, help="how long the receiver is down (default: ten minutes)")
    options = parser.parse_args()
    chosen = [fault for fault in OF_TABLES if not options.only or fault.name in options.only]
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="mirror-assets-planted-")
        folder = options.folder or Path(stack.enter_context(temporary))
        place = stack.enter_context(site(folder.resolve(), TABLES, HELD))
        watch = Watch(place)
        print_line(f"first load: {_first_load(place):.0f} s")
        if chosen:
            plant_of_tables(watch, chosen)
        for fault in OF_ALL:
            if not options.only or fault.name in options.only:
                plant_of_all(watch, fault, options.down_seconds)
        watch.stay(60.0)
        print_line("| fault | seconds until reported | until its end | messages | the first |\n|---|---|---|---|---|")
        for found in watch.faults:
            print_line(found.line)
        for message in watch.others:
            print_line(f"unexplained: {message.event} {message}")
        epochs = {table: place.epoch(table) for table in NEVER_REBUILT}
        print_line(f"epochs: {epochs}")
    is_well = all(found.is_once and found.ended for found in watch.faults) and set(epochs.values()) == {1}
    return 0 if is_well and not watch.others else 1


if __name__ == "__main__":
    sys.exit(main())
