"""`mirror-assets run` that notes what it asks of the local store, and kills itself at a point.

Started as `python -m mirror_assets_tests.worlds.kills.victim TRACE [--at POINT] [--without-redo] -- run --config FILE`.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from mirror_assets.cli import main as mirror_assets
from mirror_assets.landing import recover
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import Steps
from mirror_assets.zones import FileInfo, LocalStore
from mirror_assets_tests.worlds.kills.points import Point, Side, Write, named

_REQUESTS = {
    "create": Write.PUT,
    "replace": Write.PUT,
    "rename": Write.RENAME,
    "delete_tree": Write.DELETE,
    **dict.fromkeys(("head", "list", "read", "open", "folder_identity", "fsync"), Write.NOTHING),
}
_TO_SPARK = "spark_path"
_LOOK_AGAIN = 0.002

Method = Callable[..., object]


def main(arguments: list[str]) -> int:
    """Run the command line behind `--` under these conditions; its exit code."""
    own, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    parser = argparse.ArgumentParser(prog="victim")
    parser.add_argument("trace", type=Path)
    parser.add_argument("--at", type=named)
    parser.add_argument("--without-redo", action="store_true")
    options = parser.parse_args(own)
    if os.getpgrp() != os.getpid():
        parser.error("it kills its process group, so it has to lead one: start it with setsid")
    if options.without_redo:
        recover.redo = _no_redo  # publish has its own name for it, and lands what it commits
    watch_store(options.trace, options.at)
    return mirror_assets(command)


def _no_redo(table: TableName, manifest: Manifest) -> Steps[None]:  # noqa: ARG001 the signature of redo
    """Leave the files that a killed publisher had committed where they are."""
    yield from ()


class Doom:
    """Tells whether a request is the one that the point means."""

    def __init__(self, point: Point | None) -> None:
        self._point, self._met = point, 0

    def due(self, write: Write, path: str, source: Path) -> Point | None:
        """The point, if it is this request; `source` is what a rename takes away."""
        point = self._point
        if point is None or not point.fits(write, path):
            return None
        if point.left is not None and _parts_beside(source) != point.left:
            return None
        self._met += 1
        return point if self._met == point.nth else None


def watch_store(trace: Path, point: Point | None) -> None:
    """Let each request to any LocalStore of this process be noted, and be the last one where its time has come."""
    descriptor, doom = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND), Doom(point)
    for name, write in _REQUESTS.items():
        method = _doomed(write, getattr(LocalStore, name), doom)
        setattr(LocalStore, name, _noted(name, method, descriptor))
    if point is not None and point.write is Write.SPARK:
        setattr(LocalStore, _TO_SPARK, _ends_when_used(getattr(LocalStore, _TO_SPARK), point))


def _noted(name: str, method: Method, descriptor: int) -> Method:
    @wraps(method)
    def call(store: LocalStore, *arguments: object) -> object:
        os.write(descriptor, f"{name} {_path(name, arguments)}\n".encode())
        return method(store, *arguments)

    return call


def _doomed(write: Write, method: Method, doom: Doom) -> Method:
    @wraps(method)
    def call(store: LocalStore, *arguments: object) -> object:
        first = _path("", arguments)
        point = doom.due(write, _path(method.__name__, arguments), Path(store.root, first))
        if point and point.side is Side.BEFORE:
            _die()
        if point and point.side is Side.HALF:
            next(found for found in Path(store.root, first).rglob("*") if found.is_file()).unlink()
            _die()
        result = method(store, *arguments)
        if point:
            _die()
        return result

    return call


def _ends_when_used(spark_path: Method, point: Point) -> Method:
    """Die as soon as Spark has begun a file where it was told to write."""

    @wraps(spark_path)
    def call(store: LocalStore, path: str) -> object:
        folder = store.local_path(path)
        threading.Thread(target=_die_when_seen, args=(folder, point.path), daemon=True).start()
        return spark_path(store, path)

    return call


def _path(name: str, arguments: tuple[object, ...]) -> str:
    """What a request is about: of a rename, the target; of what a listing gave, its path."""
    found = arguments[1 if name == "rename" else 0]
    return found.path if isinstance(found, FileInfo) else str(found)


def _parts_beside(part: Path) -> int | None:
    """How many parts are beside this one; None if it has left already."""
    there = [path.name for path in part.parent.glob("part-*.parquet")]
    return len(there) - 1 if part.name in there else None


def _die_when_seen(folder: Path, pattern: str) -> None:
    while not any(fnmatch.fnmatchcase(str(path), pattern) for path in folder.rglob("*.parquet")):
        time.sleep(_LOOK_AGAIN)
    _die()


def _die() -> None:
    os.killpg(0, signal.SIGKILL)
    time.sleep(60)  # nothing may happen until the signal is there


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
