"""`python -m mirror_assets_tests.worlds.onelake`: a OneLake to try things on."""

from __future__ import annotations

import argparse
from pathlib import Path

from mirror_assets_tests.worlds.onelake.by_hand import run, stopped_by_signals


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="onelake", description="A loopback OneLake on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="where to listen (default: any free port)")
    parser.add_argument("--folder", type=Path, default=Path(".onelake"), help="for ca.pem and env (default: .onelake)")
    options = parser.parse_args()
    run(options.folder, options.port, stopped_by_signals())


if __name__ == "__main__":
    main()
