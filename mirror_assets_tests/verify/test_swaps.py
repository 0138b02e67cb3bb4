"""Two parts, or two rows of a key, in each other's place: seen if a replay of the files would give something else."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.format import MarkerCounts, SliceRecord, StagedPart
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import CommitPosition
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.verify.order import CommitPlaces, CommitSums, row_order
from mirror_assets.verify.staged import StagedSlice
from mirror_assets.verify.uniqueness import inspect_keys, key_uniqueness
from mirror_assets.zones import LocalStore
from mirror_assets_tests import figures
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
    """Changes, the order in which the files have them, and the number of rows of each file."""

    changes: Changes
    order: _Numbers
    sizes: tuple[int, ...]

    @classmethod
    def cut(cls, changes: Changes, bounds: _Numbers) -> Slice:
        """The changes in commit order, cut into parts that end at these places."""
        return cls(changes, np.arange(len(changes)), tuple(np.diff(bounds, prepend=0).tolist()))

    def found(self) -> Changes:
        """The rows as the files have them, in order."""
        return self.changes.take(self.order)

    def with_parts_exchanged(self, one: int, other: int) -> Slice:
        """The slice with two parts in each other's place."""
        parts = np.split(self.order, np.cumsum(self.sizes)[:-1])
        parts[one], parts[other] = parts[other], parts[one]
        return Slice(self.changes, np.concatenate(parts), tuple(map(len, parts)))

    def with_rows_exchanged(self, one: int, other: int) -> Slice:
        """The slice with two rows in each other's place."""
        order = self.order.copy()
        order[[one, other]] = order[[other, one]]
        return Slice(self.changes, order, self.sizes)

    def staged(self, folder: Path) -> StagedSlice:
        """Its keys and markers as files."""
        store, found, parts, at = LocalStore(folder), self.found(), [], 0
        for index, size in enumerate(self.sizes):
            rows = slice(at, at + size)
            markers = pa.array(found.marker[rows], pa.int32())
            table = pa.table({"id": found.key[rows], ROW_MARKER: markers})
            name = f"part-{index:05d}.parquet"
            parts.append(StagedPart(name=name, etag="e", bytes=1, sha256=None, markers=_counted(found.marker[rows])))
            path = store.local_path(_record(parts).folder.part(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, use_dictionary=False)
            at += size
        return StagedSlice(store, _record(parts).model_copy(update={"keys": ("id",)}), store)


def _counted(markers: _Numbers) -> MarkerCounts:
    inserts, updates, deletes = np.bincount(markers, minlength=3).tolist()
    return MarkerCounts(inserts=inserts, updates=updates, deletes=deletes)


@dataclass(frozen=True)
class InMemory:
    """A ChangeReader of these changes; the numbers of values stand for their hashes."""

    slice_: Slice

    def feed_sums(self, *, with_values: bool) -> dict[int, CommitSums]:
        changes = self.slice_.changes
        versions = np.unique(changes.version).tolist()
        return {one: _sums(changes.take(np.flatnonzero(changes.version == one)), with_values) for one in versions}

    def part_sums(self, commits: Sequence[CommitPlaces], *, with_values: bool) -> dict[int, CommitSums]:
        found = self.slice_.found()
        return {one.version: _sums(found.take(np.arange(one.start, one.end)), with_values) for one in commits}

    def differing_keys(self, commit: CommitPlaces, *, with_values: bool) -> list[str]:
        wanted = self.slice_.changes.take(np.flatnonzero(self.slice_.changes.version == commit.version))
        found = self.slice_.found().take(np.arange(commit.start, commit.end))
        differing = set(_rows(wanted, with_values)) ^ set(_rows(found, with_values))
        return sorted({f"«id={row[0]}»" for row in differing})


def _rows(changes: Changes, with_values: bool) -> list[tuple[int, int, int]]:
    values = np.where((changes.marker == Marker.DELETE) | (not with_values), 0, changes.value)
    return list(zip(changes.key.tolist(), changes.marker.tolist(), values.tolist(), strict=True))


def _sums(changes: Changes, with_values: bool) -> CommitSums:
    new, old = changes.marker != Marker.DELETE, changes.marker != Marker.INSERT
    hashes = changes.key * 1_000_003 + (changes.value * 7 if with_values else 0) + 1
    return CommitSums(int(new.sum()), int(old.sum()), (int(hashes[new].sum()), int(changes.key[old].sum())))


def _no_spark() -> SparkSession:
    raise AssertionError


def problems(slice_: Slice, folder: Path, commits: int, spark: SparkSession | None = None) -> str:
    """Return what the checks of keys and of their order find in the files; with `spark`, as in a large slice."""

    def session() -> SparkSession:
        assert spark is not None
        return spark

    staged = slice_.staged(folder)
    keys = inspect_keys(staged, lambda: commits, session, most_rows_here=0 if spark else 10**9)
    return key_uniqueness(keys).message or row_order(staged, keys, InMemory(slice_)).message


def _record(parts: list[StagedPart]) -> SliceRecord:
    position = CommitPosition(epoch=1, incarnation="i", generation=2, first_number=2, covered=1)
    return new_record(position, SliceKey(1, 2, 5), "0" * 30, tuple(parts))


_COMMITS = 12


def _random_slice(seed: int, most_rows: int) -> Slice:
    """Few or many keys, values and parts; a part may be empty, and hold several commits or a share of one."""
    draw = np.random.default_rng(seed)
    rows = int(np.exp(draw.uniform(np.log(4), np.log(most_rows))))
    keys = int(np.exp(draw.uniform(0, np.log(rows + 1))))
    deletes, differing = draw.choice([0.0, 0.1, 0.5]), draw.choice([1.0, 1.0, 0.3, 3 / rows])
    changes = random_changes(draw, rows, keys, int(draw.integers(2, _COMMITS)), deletes, differing)
    bounds = np.sort(np.append(draw.integers(0, len(changes) + 1, int(draw.integers(1, 40))), len(changes)))
    return Slice.cut(changes, bounds)


def _try(seed: int, most_rows: int, folder: Path, spark: SparkSession | None = None) -> int:
    """Exchange two parts, then two rows of a key, and return how many of both matter; those are seen."""
    slice_ = _random_slice(seed, most_rows)
    draw = np.random.default_rng(seed)
    if draw.random() < 0.1:
        assert problems(slice_, folder / "right", _COMMITS, spark) == "", f"seed {seed}"
    one, other = draw.choice(len(slice_.sizes), 2, replace=False).tolist()
    wrong = [slice_.with_parts_exchanged(one, other)]
    of_key = np.flatnonzero(slice_.changes.key == draw.choice(slice_.changes.key))
    if len(of_key) > 1:
        wrong.append(slice_.with_rows_exchanged(*draw.choice(of_key, 2, replace=False)))
    mattering = [found for found in wrong if found.found().replayed() != slice_.found().replayed()]
    for number, found in enumerate(mattering):
        assert problems(found, folder / str(number), _COMMITS, spark) != "", f"seed {seed}: exchange {number}"
    shutil.rmtree(folder, ignore_errors=True)
    return len(mattering)


def test_exchanges_that_matter_are_seen(tmp_path: Path) -> None:
    mattered = [_try(seed, 2_000 if seed % 4 else 40_000, tmp_path / "slice") for seed in range(100)]
    figures.report("exchanged parts or rows", "slices", len(mattered))
    figures.report("exchanged parts or rows", "mattered, and seen", sum(mattered))
    assert sum(mattered) > 60


def test_spark_sees_exchanges_that_matter(spark: SparkSession, tmp_path: Path) -> None:
    mattered = [_try(seed, 2_000, tmp_path / "slice", spark) for seed in range(100, 112)]
    assert sum(mattered) > 6


def test_one_key_among_many_whose_changes_differ_is_enough(tmp_path: Path) -> None:
    keys = np.arange(30_000)
    value = np.ones(60_000, np.int64)
    value[30_000 + 12_345] = 7
    both = Changes(np.tile(keys, 2), np.repeat([1, 2], 30_000), np.full(60_000, int(Marker.UPDATE)), value)
    slice_ = Slice.cut(both, np.array([30_000, 60_000]))
    assert problems(slice_, tmp_path / "right", _COMMITS) == ""
    assert "key «id=12345»" in problems(slice_.with_parts_exchanged(0, 1), tmp_path / "wrong", _COMMITS)


def test_a_feed_without_rows_is_a_problem(tmp_path: Path) -> None:
    twice = Changes(np.zeros(2, int), np.array([1, 2]), np.full(2, int(Marker.UPDATE)), np.array([1, 2]))
    staged, none = Slice.cut(twice, np.array([2])).staged(tmp_path), twice.take(np.zeros(0, int))
    keys = inspect_keys(staged, lambda: 2, _no_spark)
    assert keys.order_is_open
    assert row_order(staged, keys, InMemory(Slice.cut(none, np.array([0])))).problems == (
        "the change feed has no rows of this slice",
    )


@pytest.mark.soak
def test_exchanges_in_slices_of_up_to_20_million_rows_are_seen(spark: SparkSession, tmp_path: Path) -> None:
    sizes = [2_000] * 900 + [200_000] * 90 + [20_000_000] * 10
    mattered = [
        _try(seed, most, tmp_path / "slice", spark if most > 2_000 else None) for seed, most in enumerate(sizes)
    ]
    figures.report("exchanged parts or rows, up to 20 million rows", "slices", len(mattered))
    figures.report("exchanged parts or rows, up to 20 million rows", "mattered, and seen", sum(mattered))
