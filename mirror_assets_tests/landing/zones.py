"""The landing zone in every state that a search meets, and the rules that each of its changes must keep."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.errors import MirrorError
from mirror_assets.landing.metadata import declared_keys
from mirror_assets.landing.names import landing_number
from mirror_assets.landing.rebuild import RebuildStep, read_rebuild
from mirror_assets.landing.receipt import parse_receipt
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import FolderIdentity, Head, ListFolder, Read, ReadReceipt, drive
from mirror_assets_tests.landing.minds import Raised
from mirror_assets_tests.landing.staging import FILE, SPARK_SCHEMA, TABLE, content_of
from mirror_assets_tests.landing.zone import PLACES
from mirror_assets_tests.zones.memory import MemoryStore

# What a landing file holds: the last version of its slice, and which part of it.
Part = tuple[int, int]
History = tuple[Part, ...]

_READS = (Read, ListFolder, Head, FolderIdentity, ReadReceipt)


class Action(Hashable, Protocol):
    """A request of a publisher, or what somebody else does to the store."""

    def perform(self, store: MemoryStore) -> object:
        """Do it."""
        ...


@dataclass(frozen=True)
class Zone:
    """A state of the store: number and ETag of what stands in the table folder, and all that ever landed in it."""

    store: MemoryStore
    folder: str | None
    visible: dict[int, str]
    landed: History


class Zones:
    """The states met so far, as numbers. What a request does to one of them is worked out once.

    `histories` are the sequences in which files may land in one existence of the table folder. A change that breaks a
    rule raises AssertionError.
    """

    def __init__(self, histories: tuple[History, ...]) -> None:
        self._histories = histories
        self._numbers: dict[Hashable, int] = {}
        self._zones: list[Zone] = []
        self._done: dict[tuple[int, Action], tuple[int, Hashable]] = {}

    def __getitem__(self, number: int) -> Zone:
        return self._zones[number]

    def __len__(self) -> int:
        return len(self._zones)

    def first(self, store: MemoryStore) -> int:
        """The state in which a search begins."""
        visible = _visible(store)
        contents = [_content(store, number) for number in visible]
        landed = tuple(content for content in contents if content is not None)
        return self._number(Zone(store.clone(), store.folder_identity(TABLE.folder), visible, landed))

    def after(self, number: int, request: Action) -> tuple[int, Hashable]:
        """The state after the request took effect, and its answer."""
        known = self._done.get((number, request))
        if known is None:
            known = self._done[number, request] = self._perform(number, request)
        return known

    def _perform(self, number: int, request: Action) -> tuple[int, Hashable]:
        writes = not isinstance(request, _READS)
        store = self[number].store.clone() if writes else self[number].store
        try:
            reply: object = request.perform(store)
        except MirrorError as error:
            return number, Raised(f"{type(error).__name__}: {error.what}", error)
        answer = tuple(reply) if isinstance(reply, list) else reply
        assert isinstance(answer, Hashable)
        return (self._number(self._changed(self[number], store)) if writes else number), answer

    def _changed(self, before: Zone, store: MemoryStore) -> Zone:
        folder, visible = store.folder_identity(TABLE.folder), _visible(store)
        same = folder == before.folder
        assert same or _is_ended(before.store), "a table folder was dropped whose epoch had not ended"
        assert not same or _keys(before.store) in (None, (), _keys(store)), "declared keys were changed"
        landed = before.landed if same else ()
        for number, etag in visible.items():
            known = before.visible.get(number) if same else None
            assert known in (None, etag), f"number {number} was overwritten"
            if known is None:
                assert not _is_being_dropped(store) or same, (
                    f"number {number} landed before the mirror dropped the table"
                )
                landed = self._landed(landed, number, _content(store, number))
        nobodys = {number for number in _anywhere(store) if number <= len(landed)} - _recognised(store)
        assert not nobodys, f"numbers {sorted(nobodys)} can't be recognised any more"
        return Zone(store, folder, visible, landed)

    def _landed(self, landed: History, number: int, content: Part | None) -> History:
        assert number > len(landed), f"number {number} landed a second time"
        assert number == len(landed) + 1, f"gap before number {number}"
        assert content is not None, f"number {number} is not ours, or its footer differs from its name"
        now = (*landed, content)
        assert any(now == history[:number] for history in self._histories), f"landed {now}"
        return now

    def _number(self, zone: Zone) -> int:
        key = (zone.store.fingerprint(), zone.landed)
        number = self._numbers.setdefault(key, len(self._zones))
        if number == len(self._zones):
            self._zones.append(zone)
        return number


def _visible(store: MemoryStore) -> dict[int, str]:
    numbers = ((landing_number(info.name), info.etag) for info in store.list(TABLE.folder))
    return {number: etag for number, etag in numbers if number}


def _anywhere(store: MemoryStore) -> set[int]:
    """The numbers of all landing files, wherever the service has put them."""
    return {number for folder in PLACES for info in store.list(folder) if (number := landing_number(info.name))}


def _recognised(store: MemoryStore) -> set[int]:
    """The numbers of the files that the kept generations tell of."""
    kept = (store.read(info.path, 1 << 20).data for info in store.list(TABLE.history_folder))
    return {number for data in kept for number in _kept_numbers(data)}


@functools.cache
def _kept_numbers(data: bytes) -> frozenset[int]:
    """The numbers in a file of the history, be it of one generation or of several."""
    kept = json.loads(data)
    generations = kept.get("generations", [kept])
    files = (file for generation in generations for file in generation.get("files", generation.get("entries")))
    return frozenset(file["number"] for file in files)


def _keys(store: MemoryStore) -> tuple[str, ...] | None:
    """The declared keys; None where there is no declaration."""
    return declared_keys(store.read(TABLE.metadata, 1 << 20).data) if store.head(TABLE.metadata) else None


def _content(store: MemoryStore, number: int) -> Part | None:
    """What the landing file holds; None when it is not ours, or its footer says another number."""
    return _parsed_part(store.read(TABLE.landing_file(number), 1 << 20).data, number)


@functools.cache
def _parsed_part(data: bytes, number: int) -> Part | None:
    try:
        metadata = pq.ParquetFile(io.BytesIO(data)).schema_arrow.metadata
    except pa.ArrowException:
        return None
    receipt, (last, part) = parse_receipt("", metadata[SPARK_SCHEMA]), content_of(data)
    fits = receipt and (receipt.slice.last, receipt.first_number + part % FILE) == (last, number)
    return (last, part) if fits else None


def _is_ended(store: MemoryStore) -> bool:
    """Whether what stands in the table folder is of an epoch that a rebuild has ended."""
    current, record = drive(read_manifest(TABLE), store), drive(read_rebuild(TABLE), store)
    return current is None or (record is not None and record.epoch > current.manifest.epoch)


def _is_being_dropped(store: MemoryStore) -> bool:
    record = drive(read_rebuild(TABLE), store)
    return record is not None and record.step is RebuildStep.DROPPING
