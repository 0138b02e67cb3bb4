"""A victim notes what it asks, and dies where it was told to."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mirror_assets_tests.worlds.kills.points import ON_DISK, Point, Side, at_request, named
from mirror_assets_tests.worlds.kills.process import inherited

# What a publisher asks of the disk, as far as a point can lie in it.
_DEEDS = """
import sys
from pathlib import Path
from mirror_assets.zones import LocalStore
from mirror_assets_tests.worlds.kills.points import named
from mirror_assets_tests.worlds.kills.victim import watch_store

watch_store(Path(sys.argv[1]), named(sys.argv[3]))
store = LocalStore(Path(sys.argv[2]))
etags = [store.create(f"_scratchPad/1/parts/part-{n}.parquet", b"part") for n in (0, 1, 2)]
store.create("shop/orders/_mirror.json", b"manifest")
for n, etag in enumerate(etags):
    store.rename(f"_scratchPad/1/parts/part-{n}.parquet", f"shop/orders/0{n}.parquet", etag)
store.create("_scratchPad/1/slice.json", b"record")
store.delete_tree("_scratchPad/1")
"""


def die(folder: Path, point: Point) -> tuple[set[str], list[str]]:
    trace, zone = folder / "trace", folder / "zone"
    command = [sys.executable, "-c", _DEEDS, str(trace), str(zone), point.name]
    ended = subprocess.run(command, env=inherited(), start_new_session=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    return {path.name for path in zone.rglob("*") if path.is_file()}, trace.read_text().splitlines()


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("manifest not swapped", {"part-0.parquet", "part-1.parquet", "part-2.parquet"}),
        ("manifest swapped", {"part-0.parquet", "part-1.parquet", "part-2.parquet", "_mirror.json"}),
        ("first rename done", {"00.parquet", "part-1.parquet", "part-2.parquet", "_mirror.json"}),
        ("between renames", {"00.parquet", "01.parquet", "part-2.parquet", "_mirror.json"}),
        ("last rename done, not yet seen to be", {"00.parquet", "01.parquet", "02.parquet", "_mirror.json"}),
        ("nothing collected", {"00.parquet", "01.parquet", "02.parquet", "_mirror.json", "slice.json"}),
        ("collected, nothing committed", {"00.parquet", "01.parquet", "02.parquet", "_mirror.json"}),
    ],
)
def test_a_victim_dies_at_its_point(name: str, left: set[str], tmp_path: Path) -> None:
    assert die(tmp_path, named(name))[0] == left


def test_a_victim_dies_at_any_request_and_its_trace_ends_there(tmp_path: Path) -> None:
    left, trace = die(tmp_path, at_request(5, Side.BEFORE))
    assert left == {"part-0.parquet", "part-1.parquet", "part-2.parquet", "_mirror.json"}
    assert trace[-1] == "rename shop/orders/00.parquet"
    assert len(trace) == 5


def test_every_point_can_be_named() -> None:
    for point in (*ON_DISK, at_request(7, Side.LATE)):
        assert named(point.name) == point
