"""A victim notes what it asks, and dies where it was told to: a series would not show that it died elsewhere."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mirror_assets_tests.worlds.kills.points import ON_DISK, Side, at_request, named
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
_PARTS, _LANDED = (
    [{f"{prefix}{n}.parquet" for n in range(first, last)} for first, last in ranges]
    for prefix, ranges in (("part-", ((0, 3), (1, 3), (2, 3))), ("0", ((0, 1), (0, 2), (0, 3))))
)


@pytest.mark.parametrize(
    ("name", "left", "requests"),
    [
        ("before request 5", _PARTS[0] | {"_mirror.json"}, 5),
        ("manifest not swapped", _PARTS[0], 4),
        ("manifest swapped", _PARTS[0] | {"_mirror.json"}, 4),
        ("first rename done", _PARTS[1] | _LANDED[0] | {"_mirror.json"}, 5),
        ("between renames", _PARTS[2] | _LANDED[1] | {"_mirror.json"}, 6),
        ("last rename done, not yet seen to be", _LANDED[2] | {"_mirror.json"}, 7),
        ("nothing collected", _LANDED[2] | {"_mirror.json", "slice.json"}, 9),
        ("collected, nothing committed", _LANDED[2] | {"_mirror.json"}, 9),
    ],
)
def test_a_victim_dies_at_its_point_and_its_trace_ends_there(
    name: str, left: set[str], requests: int, tmp_path: Path
) -> None:
    trace, zone = tmp_path / "trace", tmp_path / "zone"
    command = [sys.executable, "-c", _DEEDS, str(trace), str(zone), name]
    ended = subprocess.run(command, env=inherited(), start_new_session=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert {path.name for path in zone.rglob("*") if path.is_file()} == left
    assert len(trace.read_text().splitlines()) == requests


def test_every_point_can_be_named() -> None:
    for point in (*ON_DISK, at_request(7, Side.LATE)):
        assert named(point.name) == point
