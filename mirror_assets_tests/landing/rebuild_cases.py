"""Where a search over schedules begins: tables that one or two rebuild while others still publish."""

from __future__ import annotations

from mirror_assets.landing.format import encode
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild, drop_table_folder
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import CommitPosition
from mirror_assets.landing.steps import Create, Steps, drive
from mirror_assets_tests.landing.cases import history, publisher, run, staged, started
from mirror_assets_tests.landing.epochs import loading
from mirror_assets_tests.landing.minds import Start
from mirror_assets_tests.landing.schedules import Case
from mirror_assets_tests.landing.staging import CHECKS, TABLE, hex_id, landed_manifest, position_of, stage
from mirror_assets_tests.zones.memory import MemoryStore


def rebuild(name: str, last: int) -> Start:
    """Rebuilds the table, or goes on with its rebuild, as `rebuild_table` does; the mirror follows at once."""

    def start(epoch: int) -> Steps[None]:
        record, ready = (yield from begin_rebuild(TABLE)), None
        attempt = f"{name}{epoch}{record.epoch}"  # of this rebuild alone, as ids of attempts are
        snapshot = staged(_new_epoch(record.epoch, f"epoch of {attempt}"), last, 1, attempt)
        if record.step is RebuildStep.STAGING:
            ready = yield from snapshot
            record = yield from advance_rebuild(TABLE, record, RebuildStep.DROPPING)
        if record.step is RebuildStep.DROPPING:
            ready = ready or (yield from snapshot)
            yield from drop_table_folder(TABLE, record)
            record = yield from advance_rebuild(TABLE, record, RebuildStep.LOADING)
        if (yield from recover(TABLE, record.epoch)) is None:
            ready = ready or (yield from snapshot)
            yield from publish(TABLE, ready, CHECKS, record.epoch)
        if record.step is RebuildStep.LOADING:
            record = yield from advance_rebuild(TABLE, record, RebuildStep.RETURNING)
        yield from advance_rebuild(TABLE, record, RebuildStep.FINISHED)

    return start


def rebuilt(zone: MemoryStore) -> Case:
    """Two attempts at a rebuild's snapshot, while requests of the ended epoch arrive late in the dropped folder."""
    started(zone)
    ended = landed_manifest(zone)
    record = drive(loading(TABLE), zone)
    ours, theirs = (stage(zone, _new_epoch(record.epoch), 9, 1, attempt) for attempt in "ab")
    publishers = tuple(publisher(attempt, rebuild_epoch=record.epoch) for attempt in (ours, theirs))
    late = (Create(TABLE.manifest, encode(ended)), Create(TABLE.history(1, 1), encode(ended)))
    return Case(zone, publishers, (history(ours),), flying=late)


def rebuilt_twice(zone: MemoryStore) -> Case:
    """Two rebuild the table: one was asked to, the other met a rebuild that is running, and continues it."""
    landed = started(zone)
    return Case(zone, (rebuild("r", 9), rebuild("s", 9)), histories=(((9, 0),),), ended=(history(landed),))


def rebuilt_beside_a_publisher(zone: MemoryStore) -> Case:
    """One rebuilds the table, another is still at the next slice of the epoch that ends."""
    landed = started(zone)
    theirs = stage(zone, position_of(zone), 8, 1, "b")
    publishers = (rebuild("r", 9), publisher(theirs))
    return Case(zone, publishers, histories=(((9, 0),),), ended=(history(landed, theirs),))


def rebuilt_beside_a_run(zone: MemoryStore) -> Case:
    """One rebuilds the table, another begins a run, and stages what it finds pending."""
    landed = started(zone)
    return Case(zone, (rebuild("r", 9), run("b", (9, 1))), histories=(((9, 0),),), ended=((*history(landed), (9, 0)),))


def _new_epoch(epoch: int, incarnation: str = "second epoch") -> CommitPosition:
    return CommitPosition(epoch, hex_id(incarnation), generation=1, first_number=1, covered=-1)
