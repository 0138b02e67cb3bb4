"""Where a search over schedules begins: snapshots that are loaded in chunks."""

from __future__ import annotations

from mirror_assets.landing.format import Chunk, SliceRecord
from mirror_assets.landing.publish import publish
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import next_position, read_manifest
from mirror_assets.landing.steps import Steps
from mirror_assets_tests.landing.cases import history, publisher
from mirror_assets_tests.landing.minds import Start
from mirror_assets_tests.landing.schedules import Case
from mirror_assets_tests.landing.staging import CHECKS, TABLE, hex_id, land, position_of, stage_chunk, staging
from mirror_assets_tests.landing.zones import History
from mirror_assets_tests.zones.memory import MemoryStore

# The second and the third file of the source, as chunks of their own and as one.
_HISTORIES: tuple[History, ...] = (((7, 10), (7, 20), (7, 30)), ((7, 10), (7, 20), (7, 31)))


def in_chunks(zone: MemoryStore, publishers: int = 2) -> Case:
    """Some attempts at a first load of two chunks; each has staged both of its own."""
    loads = [_both(zone, attempt) for attempt in "abc"[:publishers]]
    return Case(zone, tuple(publisher(*load) for load in loads), (history(*loads[0]),))


def gone_on_with(zone: MemoryStore) -> Case:
    """Two runs go on with a load, each with the next chunk; the limits of one are larger. The first of three landed."""
    land(zone, stage_chunk(zone, position_of(zone), 1, 3))
    return Case(zone, (load("a", files=1), load("b", files=2)), _HISTORIES)


def cut_again(zone: MemoryStore) -> Case:
    """One has staged what is left as two chunks, another, with larger limits, as one."""
    landed = stage_chunk(zone, position_of(zone), 1, 3)
    land(zone, landed)
    position = position_of(zone)
    second = stage_chunk(zone, position, 2, 3, "a")
    third = stage_chunk(zone, position.behind(second), 3, 3, "b")
    both = stage_chunk(zone, position, 3, 2, "c")
    histories = (history(landed, second, third), history(landed, both))
    return Case(zone, (publisher(second, third), publisher(both)), histories)


def load(name: str, files: int) -> Start:
    """Plans the next chunk, stages it on what has landed by then, and publishes it, as `process_slice` does."""

    def start(epoch: int) -> Steps[None]:
        current = yield from recover(TABLE)
        if current is None or current.manifest.loading is None:
            return
        end = min(current.manifest.loading.chunk.end + files, 3)
        number = current.manifest.loading.chunk.number + 1
        chunk = Chunk(number=number, of=number + 3 - end, first=current.manifest.loading.chunk.end, end=end)
        record = yield from _staged_late(chunk, f"{name}{epoch}")
        yield from publish(TABLE, record, CHECKS)

    return start


def _staged_late(chunk: Chunk, attempt: str) -> Steps[SliceRecord]:
    """The chunk as it was planned, on what has landed meanwhile: whoever else landed it, nothing may land twice."""
    current = yield from read_manifest(TABLE)
    position = next_position(current.manifest if current else None, epoch=1, incarnation=hex_id("another epoch"))
    return (yield from staging(position, 7, chunk.end - chunk.first, attempt, chunk))


def _both(zone: MemoryStore, attempt: str) -> tuple[SliceRecord, SliceRecord]:
    position = next_position(None, epoch=1, incarnation=hex_id(f"epoch of {attempt}"))
    first = stage_chunk(zone, position, 1, 2, attempt)
    return first, stage_chunk(zone, position.behind(first), 2, 2, attempt)
