"""Where a search over schedules begins: zones that somebody has spoilt, so that a publisher has to refuse."""

from __future__ import annotations

from dataclasses import replace

from mirror_assets.landing.errors import FOREIGN_FILE, SLICE_NOT_CHECKED, SLICE_NOT_STAGED, STAGED_FILE_LOST
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import Rename
from mirror_assets_tests.landing.cases import following, history, publisher, started
from mirror_assets_tests.landing.schedules import Case
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage
from mirror_assets_tests.zones.memory import MemoryStore


def foreign_file(zone: MemoryStore) -> Case:
    """Somebody else's file stands where the next one belongs."""
    case = following(zone)
    zone.create(TABLE.landing_file(2), b"no file of ours")
    return replace(case, zone=zone, histories=(((7, 0),),), refusals=(FOREIGN_FILE,))


def lost_part(zone: MemoryStore) -> Case:
    """A publisher died behind its commit, and then somebody deleted the first of its two parts."""
    landed = started(zone)
    record = stage(zone, position_of(zone), 8, parts=2)
    steps = publish(TABLE, record, CHECKS)
    request = next(steps)
    while not isinstance(request, Rename):
        request = steps.send(request.perform(zone))
    zone.delete(request.source)
    return Case(zone, (publisher(record),) * 2, (history(landed),), refusals=(STAGED_FILE_LOST,))


def rewritten_part(zone: MemoryStore) -> Case:
    """Somebody rewrote a staged part after its checks."""
    landed = started(zone)
    record = stage(zone, position_of(zone), last=8)
    path = record.folder.part(record.parts[0].name)
    zone.replace(path, b"other rows", record.parts[0].etag)
    return Case(zone, (publisher(record),) * 2, (history(landed),), refusals=(SLICE_NOT_STAGED,))


def unchecked_part(zone: MemoryStore) -> Case:
    """A staged part was rewritten and its record follows, but the verdicts are those of the part before."""
    landed = started(zone)
    record = stage(zone, position_of(zone), last=8)
    path, part = record.folder.part(record.parts[0].name), record.parts[0]
    etag = zone.replace(path, zone.read(path, 1 << 20).data, part.etag)
    changed = _with_etag(record, etag)
    return Case(zone, (publisher(changed),) * 2, (history(landed),), refusals=(SLICE_NOT_CHECKED,))


def _with_etag(record: SliceRecord, etag: str) -> SliceRecord:
    return record.model_copy(update={"parts": (record.parts[0].model_copy(update={"etag": etag}),)})


def manifest_lost(zone: MemoryStore) -> Case:
    """Everybody dies at some moment, and then the manifest is deleted."""
    return replace(following(zone, parts=2), manifest_lost=True)
