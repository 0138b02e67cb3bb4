"""A landing zone as a test looks at it: what landed, wherever the service put it; and the service's housekeeping."""

from __future__ import annotations

from mirror_assets.landing.format import Manifest, decode
from mirror_assets.landing.metadata import declared_keys
from mirror_assets.landing.names import (
    PROCESSED,
    READY_TO_DELETE,
    AttemptFolder,
    HistoryRange,
    landing_name,
    landing_number,
)
from mirror_assets.zones import Store
from mirror_assets_tests.landing.staging import KEYS, TABLE, content_of, landed_manifest

LIMIT = 1 << 20
PLACES = (TABLE.folder, f"{TABLE.folder}/{PROCESSED}", f"{TABLE.folder}/{READY_TO_DELETE}")


def landed_paths(store: Store) -> list[str]:
    """Every landing file, wherever it is."""
    return [
        info.path for place in PLACES for info in store.list(place) if not info.is_folder and landing_number(info.name)
    ]


def landed(store: Store) -> list[tuple[int, tuple[int, int]]]:
    """Number and content (last version of the slice, part) of every landing file, by number; twins show twice."""
    files = [(path.rpartition("/")[2], store.read(path, LIMIT).data) for path in landed_paths(store)]
    return sorted((landing_number(name) or 0, content_of(data)) for name, data in files)


def consume(store: Store) -> None:
    """What the service does with files that it has applied: all but the last move away (`landing-zone` §4.14)."""
    waiting = sorted(info.path for info in store.list(TABLE.folder) if landing_number(info.name))
    for path in waiting[:-1]:
        number = landing_number(path.rpartition("/")[2]) or 0
        target = f"{TABLE.folder}/{PROCESSED}/{landing_name(number)}"
        data = store.read(path, LIMIT).data
        store.create(target, data)
        store.delete(path)


def staged_generations(store: Store) -> list[int]:
    """The generation of every attempt that is still staged."""
    folders = (AttemptFolder.parse(TABLE, info.name) for info in store.list(TABLE.scratch))
    return [folder.generation for folder in folders if folder]


def require_exactly_once(store: Store, expected: list[tuple[int, int]], covered: int) -> None:
    """Fail unless just these contents have landed, in this order, and manifest, history and declaration agree."""
    assert landed(store) == list(enumerate(expected, start=1))
    manifest = landed_manifest(store)
    assert (manifest.covered, manifest.next_number) == (covered, len(expected) + 1)
    histories = [info.path for info in store.list(TABLE.history_folder) if HistoryRange.parse(info.name)]
    kept = [decode(Manifest, path, store.read(path, LIMIT).data) for path in histories]
    assert [generation.generation for generation in kept] == list(range(1, manifest.generation + 1))
    assert kept[-1] == manifest
    entries = [entry for generation in kept for entry in generation.entries]
    assert [entry.number for entry in entries] == list(range(1, len(expected) + 1))
    sizes = {path.rpartition("/")[2]: len(store.read(path, LIMIT).data) for path in landed_paths(store)}
    assert [sizes[landing_name(entry.number)] for entry in entries] == [entry.bytes for entry in entries]
    assert declared_keys(store.read(TABLE.metadata, LIMIT).data) == KEYS
