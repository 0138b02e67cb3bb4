"""Kill `mirror-assets run` at random moments, run it to the end, compare: `make kills KILLS=20`."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random

from mirror_assets_tests.worlds.kills.series import Series, Where
from mirror_assets_tests.worlds.onelake import LoopbackOneLake


def main() -> int:
    """Exit code 0 when everything has landed exactly once and the mirror equals its source."""
    parser = argparse.ArgumentParser(prog="python -m mirror_assets_tests.worlds.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--where", type=Where, default=Where.DISK, help="disk, upload or direct (default: disk)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="of all that is random")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mirror-assets-kills-")))
        server = None if options.where is Where.DISK else stack.enter_context(LoopbackOneLake(folder / "onelake"))
        print_line(f"{options.kills} kills on {options.where}, seed {options.seed}")
        place = stack.enter_context(options.where.opened(folder / "series", server))
        series = Series(place, Random(options.seed), print_line)
        series.kill_at_random(options.kills)
        verdict = series.finish()
    return 1 if verdict.problems else 0


def print_line(line: str) -> None:
    print(line, flush=True)  # noqa: T201 a program for people


if __name__ == "__main__":
    sys.exit(main())
