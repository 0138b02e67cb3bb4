"""Prints a table of the faults and what finds each: `python -m mirror_assets_tests.worlds.sabotage`."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from mirror_assets.encode.session import open_session, spark_settings
from mirror_assets_tests import quick_jvm
from mirror_assets_tests.worlds.sabotage.faults import FAULTS, NOBODY
from mirror_assets_tests.worlds.sabotage.trial import try_fault
from mirror_assets_tests.worlds.sabotage.worlds import Worlds


def main() -> int:
    """Exit code 0 when every fault is found by the check that is expected to find it."""
    parser = argparse.ArgumentParser(prog="python -m mirror_assets_tests.worlds.sabotage", description=__doc__)
    parser.add_argument("--only", default="", help="only faults that match this regular expression")
    parser.add_argument("--without-checks", action="store_true", help="let every slice land")
    parser.add_argument("--messages", action="store_true", help="add a column with the messages")
    options = parser.parse_args()
    unexpected = 0
    with tempfile.TemporaryDirectory(prefix="mirror-assets-sabotage-") as folder:
        settings = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": f"-Xmn1g {quick_jvm.OPTIONS}"}
        spark = open_session(spark_settings(quick_jvm.SMALL_DATA | settings))
        worlds = Worlds(spark, Path(folder))
        more = " message | s |" if options.messages else ""
        _print(f"| part | fault | world | found by | when |{more}")
        _print(f"| --- | --- | --- | --- | --- |{' --- | --- |' * bool(more)}")
        for number, fault in enumerate(FAULTS):
            if not re.search(options.only, str(fault)):
                continue
            lab, began = worlds.copy(fault.world, str(number)), time.monotonic()
            finding = try_fault(fault, lab, with_checks=not options.without_checks)
            is_expected = options.without_checks or finding.found_by == fault.found_by
            unexpected += finding.found_by == NOBODY or not is_expected
            found_by = finding.found_by if is_expected else f"**{finding.found_by}**"
            seconds = time.monotonic() - began
            more = f" {finding.message} | {seconds:.1f} |" if options.messages else ""
            _print(f"| {fault.part} | {fault.name} | {fault.world.value} | {found_by} | {finding.when} |{more}")
        spark.stop()
    return int(unexpected > 0)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 a program for people


if __name__ == "__main__":
    sys.exit(main())
