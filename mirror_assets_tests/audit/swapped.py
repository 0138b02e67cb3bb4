"""Random slices of changes as files, with what the feed would say of them, and two of their parts exchanged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.audit.key_look import look_at_keys
from mirror_assets.audit.keyed_rows import PLACE, VERSION
from mirror_assets.audit.order import row_order
from mirror_assets.audit.reread import FOUND_HASH, WANTED_HASH, WANTED_MARKER
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.audit.uniqueness import key_uniqueness
from mirror_assets.landing.format import MarkerCounts, SliceRecord, StagedPart
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import CommitPosition
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.storage import LocalStore
from mirror_assets_tests.landing.staging import new_record

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Changes:
    """Changes in commit order, one row each: its key, its commit, its marker, and a number for its values."""

    key: _Numbers
    version: _Numbers
    marker: _Numbers
    value: _Numbers

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: npt.NDArray[np.intp]) -> Changes:
        """These rows."""
        return Changes(self.key[index], self.version[index], self.marker[index], self.value[index])

    def replayed(self) -> dict[int, int]:
        """The live keys with their values, when the rows have been applied in order."""
        _, last = np.unique(self.key[::-1], return_index=True)
        ends = self.take(len(self) - 1 - last)
        alive = ends.marker != Marker.DELETE
        return dict(zip(ends.key[alive].tolist(), ends.value[alive].tolist(), strict=True))


def random_changes(
    draw: np.random.Generator, rows: int, keys: int, commits: int, deletes: float, differing: float
) -> Changes:
    """A history of keys, in which each is changed once a commit at most; a share of rows has values of its own."""
    key = draw.integers(0, keys, rows)
    version = np.sort(draw.integers(1, commits + 1, rows))
    _, once = np.unique(version * keys + key, return_index=True)
    key, version = key[once], version[once]
    order = np.lexsort((version, key))
    marker = np.empty(len(key), np.int64)
    is_first = np.diff(key[order], prepend=-1) != 0
    there, drawn = draw.random(keys) < 0.5, draw.random(len(key)) < deletes
    exists = False
    for at, first, dies in zip(order.tolist(), is_first.tolist(), drawn.tolist(), strict=True):
        exists = bool(there[key[at]]) if first else exists
        marker[at] = (Marker.DELETE if dies else Marker.UPDATE) if exists else Marker.INSERT
        exists = not (exists and dies)
    own = np.where(draw.random(len(key)) < differing, draw.integers(2, 1 << 40, len(key)), 1)
    return Changes(key, version, marker, own)


@dataclass(frozen=True)
class Slice:
    """Changes, the places at which its parts end, and the parts in the order in which their files lie."""

    changes: Changes
    bounds: _Numbers
    order: tuple[int, ...]

    def found(self) -> Changes:
        """The rows as the files have them, in order."""
        starts = [0, *self.bounds[:-1].tolist()]
        return self.changes.take(np.concatenate([np.arange(starts[part], self.bounds[part]) for part in self.order]))

    def exchanged(self, one: int, other: int) -> Slice:
        """The slice with two parts in each other's place."""
        order = list(self.order)
        order[one], order[other] = order[other], order[one]
        return Slice(self.changes, self.bounds, tuple(order))

    def staged(self, folder: Path) -> StagedSlice:
        """Its keys and markers as files."""
        store, found, parts, at = LocalStore(folder), self.found(), [], 0
        sizes = np.diff(self.bounds, prepend=0)
        for index, size in enumerate(sizes[list(self.order)].tolist()):
            rows = slice(at, at + size)
            markers = pa.array(found.marker[rows], pa.int32())
            table = pa.table({"id": found.key[rows], ROW_MARKER: markers})
            name = f"part-{index:05d}.parquet"
            parts.append(StagedPart(name=name, etag="e", bytes=1, sha256=None, markers=MarkerCounts(inserts=size)))
            path = store.local_path(_record(parts).folder.part(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, use_dictionary=False)
            at += size
        return StagedSlice(store, _record(parts).model_copy(update={"keys": ("id",)}), store)


@dataclass(frozen=True)
class InMemory:
    """What reading again gives; the numbers of values stand for their hashes."""

    slice_: Slice

    def expected(self, keys: pa.Table, *, with_values: bool) -> pa.Table:
        changes = self.slice_.changes
        chosen = changes.take(np.flatnonzero(np.isin(changes.key, keys["key0"].to_numpy())))
        hashes = pa.array(chosen.value, mask=(chosen.marker == Marker.DELETE) | (not with_values))
        return pa.table(
            {
                "key0": chosen.key,
                VERSION: chosen.version,
                WANTED_MARKER: pa.array(chosen.marker, pa.int32()),
                WANTED_HASH: hashes,
            }
        )

    def some_hashes(self, places: pa.Table) -> pa.Table:
        found = self.slice_.found().take(places[PLACE].to_numpy())
        return pa.table({PLACE: places[PLACE], FOUND_HASH: pa.array(found.value, mask=found.marker == Marker.DELETE)})

    def all_hashes(self) -> _Numbers:
        return self.slice_.found().value


def problems(slice_: Slice, folder: Path, commits: int) -> str:
    """What the checks on keys and on order find in the files."""
    staged = slice_.staged(folder)
    look = look_at_keys(staged, lambda: commits)
    unique = key_uniqueness(staged, look)
    return unique.message or row_order(staged, look, InMemory(slice_)).message


def _record(parts: list[StagedPart]) -> SliceRecord:
    position = CommitPosition(epoch=1, incarnation="i", generation=2, first_number=2, covered=1)
    return new_record(position, SliceKey(1, 2, 5), "0" * 30, tuple(parts))
