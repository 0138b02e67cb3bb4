"""A range of commits on the command line: `--from`, `--to` and `--clip`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from mirror_assets.source.ranges import Range, parse_point, parse_range


@dataclass(frozen=True)
class Asked:
    """The range as it was written; every point has been found to be one."""

    first: str | None = None
    last: str | None = None
    clip: bool = False

    @property
    def range(self) -> Range:
        """The range that it names."""
        return parse_range(self.first, self.last, clip=self.clip)


def add_range(command: argparse.ArgumentParser, default: str) -> None:
    """Give the command its range; `default` says which one it takes without."""
    when = "a version, or yyyy-MM-dd[ HH:mm:ss[.SSS]][ zone], UTC without a zone; inclusive"
    command.add_argument("--from", dest="first", type=_point, metavar="POINT", help=f"{when} (default: {default})")
    command.add_argument("--to", dest="last", type=_point, metavar="POINT", help="the same")
    command.add_argument("--clip", action="store_true", help="take what is there of a range beyond the newest commit")


def asked_of(options: argparse.Namespace) -> Asked:
    """The range of a command line."""
    return Asked(options.first, options.last, options.clip)


def _point(text: str) -> str:
    try:
        parse_point(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
