"""Where a search over schedules begins: what has landed, who publishes what, and what must have landed in the end."""

from __future__ import annotations

from mirror_assets.errors import MirrorError
from mirror_assets.landing.errors import METADATA_DIFFERS
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import AttemptFolder
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import first_epoch
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import CommitPosition, next_position
from mirror_assets.landing.steps import Create, DeleteTree, Steps
from mirror_assets_tests.landing.minds import Start
from mirror_assets_tests.landing.schedules import Case
from mirror_assets_tests.landing.staging import (
    CHECKS,
    KEYS,
    TABLE,
    hex_id,
    land,
    part_bytes,
    part_content,
    position_of,
    receipt_for,
    stage,
    stage_repair,
    staging,
)
from mirror_assets_tests.landing.zones import History
from mirror_assets_tests.zones.memory import MemoryStore


def publisher(*records: SliceRecord, rebuild_epoch: int | None = None) -> Start:
    """Publishes these slices one after the other; a restart begins with the first again."""

    def start(_epoch: int) -> Steps[None]:
        for record in records:
            yield from publish(TABLE, record, CHECKS, rebuild_epoch)

    return start


def staged(position: CommitPosition, last: int, parts: int, attempt: str) -> Steps[SliceRecord]:
    """The record of the slice, staged as `stage_attempt` does: what fails is cleared away."""
    try:
        return (yield from staging(position, last, parts, attempt))
    except MirrorError:
        yield from DeleteTree(AttemptFolder(TABLE, position.generation, hex_id(attempt)).path)
        raise


def run(name: str, *slices: tuple[int, int]) -> Start:
    """Stages and publishes what is pending of these slices (last version, parts), as `mirror_table` does."""

    def start(epoch: int) -> Steps[None]:
        attempt = f"{name}{epoch}"
        for last, parts in slices:
            current = yield from recover(TABLE)
            manifest = current.manifest if current else None
            if manifest is None or manifest.covered < last:
                new_epoch = yield from first_epoch(TABLE)
                position = next_position(manifest, epoch=new_epoch, incarnation=hex_id(f"epoch of {attempt}"))
                record = yield from staged(position, last, parts, attempt)
                yield from publish(TABLE, record, CHECKS)

    return start


def history(*records: SliceRecord) -> History:
    """What lands when these slices land in this order."""
    return tuple(
        (record.slice.last, part_content(index, record.chunk))
        for record in records
        for index in range(len(record.parts))
    )


def started(zone: MemoryStore) -> SliceRecord:
    """The zone's first slice, landed."""
    record = stage(zone, position_of(zone), last=7)
    land(zone, record)
    return record


def first(zone: MemoryStore, parts: int = 1, publishers: int = 2) -> Case:
    """Some attempts at the first slice."""
    attempts = [stage(zone, position_of(zone), 7, parts, attempt) for attempt in "abc"[:publishers]]
    return Case(zone, tuple(publisher(attempt) for attempt in attempts), (history(attempts[0]),))


def following(zone: MemoryStore, parts: int = 1, publishers: int = 2) -> Case:
    """Some attempts at the second slice."""
    landed, position = started(zone), position_of(zone)
    attempts = [stage(zone, position, 8, parts, attempt) for attempt in "abc"[:publishers]]
    return Case(zone, tuple(publisher(attempt) for attempt in attempts), (history(landed, attempts[0]),))


def keyed(zone: MemoryStore, keys: tuple[tuple[str, ...], ...] = (KEYS, KEYS)) -> Case:
    """A table without keys, and publishers who know of these by now; who knows of others is refused."""
    landed = stage(zone, position_of(zone), last=7).model_copy(update={"keys": ()})
    land(zone, landed)
    staged = [stage(zone, position_of(zone), 8, attempt=attempt) for attempt in "abc"[: len(keys)]]
    attempts = [record.model_copy(update={"keys": own}) for record, own in zip(staged, keys, strict=True)]
    refusals = () if len(set(keys)) == 1 else (METADATA_DIFFERS,)
    histories = (history(landed, attempts[0]),)
    return Case(zone, tuple(publisher(attempt) for attempt in attempts), histories, refusals=refusals)


def stalled(zone: MemoryStore, parts: int = 1) -> Case:
    """One publishes two slices, while another is still at its attempt at the first of them."""
    landed, position = started(zone), position_of(zone)
    ours, theirs = (stage(zone, position, 8, parts, attempt) for attempt in "ab")
    ahead = stage(zone, position.after(covered=8, files=parts), last=9, attempt="c")
    return Case(zone, (publisher(ours, ahead), publisher(theirs)), (history(landed, ours, ahead),))


def chained(zone: MemoryStore, parts: int = 1) -> Case:
    """One publishes a slice, another the slice after it, which was staged ahead."""
    landed, position = started(zone), position_of(zone)
    ours = stage(zone, position, 8, parts, "a")
    ahead = stage(zone, position.after(covered=8, files=parts), last=9, attempt="c")
    return Case(zone, (publisher(ours), publisher(ahead)), (history(landed, ours, ahead),))


def cut_twice(zone: MemoryStore, parts: int = 1) -> Case:
    """Two versions as two slices by one publisher, as one slice by another."""
    landed, position = started(zone), position_of(zone)
    ours = stage(zone, position, 8, parts, "a")
    ahead = stage(zone, position.after(covered=8, files=parts), last=9, attempt="c")
    both = stage(zone, position, 9, parts, "b")
    histories = (history(landed, ours, ahead), history(landed, both))
    return Case(zone, (publisher(ours, ahead), publisher(both)), histories)


def doubled(zone: MemoryStore, parts: int = 1, publishers: int = 2) -> Case:
    """Retries of a publication that is still alive: all publish the same attempt."""
    landed = started(zone)
    ours = stage(zone, position_of(zone), 8, parts, "a")
    return Case(zone, (publisher(ours),) * publishers, (history(landed, ours),))


def repaired(zone: MemoryStore, last: int = 7, parts: int = 1) -> Case:
    """A repair, without a new commit or with one, while another run lands the slice that comes next."""
    landed, position = started(zone), position_of(zone)
    repair, following = stage_repair(zone, position, last, parts, "a"), stage(zone, position, 8, parts, "b")
    histories = (history(landed, repair), history(landed, following))
    return Case(zone, (publisher(repair), publisher(following)), histories)


def restaged(zone: MemoryStore, parts: int = 1) -> Case:
    """As doubled, and a repeated request of the stager arrives late: the part is back under its staged name."""
    landed, position = started(zone), position_of(zone)
    ours = stage(zone, position, 8, parts, "a")
    late = Create(ours.folder.part(ours.parts[0].name), part_bytes(receipt_for(position, ours.slice, ours.attempt), 0))
    return Case(zone, (publisher(ours),) * 2, (history(landed, ours),), flying=(late,))


def runs(zone: MemoryStore, slices: tuple[tuple[int, int], ...] = ((7, 1),), publishers: int = 2) -> Case:
    """Whole runs side by side, each of which stages for itself what it finds pending."""
    expected = tuple((last, part) for last, parts in slices for part in range(parts))
    return Case(zone, tuple(run(name, *slices) for name in "abc"[:publishers]), (expected,))
