"""Check that keys are unique in the source, by their rows in a slice: two live rows of a key can't be mirrored.

Each row is packed into one number: its place (the number of rows before it in all parts of the slice), the commit of
its part, and its marker. The rules compare this number with those of earlier rows of the same key. Keys that ascend
need no sort. Others are sorted in this process, some million at once, while the rest waits in temporary files. Spark
sorts the rows of very large slices on its executors. Both sort by hashes of the keys, which may collide: rows of keys
that violate a rule are compared again, by the keys themselves, before one is reported.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.encode.columns import projected
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.landing.format import SliceKind
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.redaction import shown_key
from mirror_assets.source.scan import Scan
from mirror_assets.source.schema import Projection
from mirror_assets.spark_messages import readable
from mirror_assets.spark_names import quoted
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.key_hashes import Hashes, hash_keys
from mirror_assets.verify.staged import PART_NUMBER, ROW_INDEX, Numbers, StagedSlice

_SAMPLES = 5
_REPORTED = _SAMPLES + 1
# Spark takes 27 times as long on two cores (16 million rows), but a cluster has more of them.
MOST_ROWS_HERE = 100_000_000
# What is sorted takes 34 bytes a row, and what waits 16 bytes of a temporary file.
_ROWS_AT_ONCE = 8_000_000
_ROWS_OF_A_TASK = 500_000
# Rows of a batch, and the most ascending runs in it: with more, comparing the runs saves nothing.
_RUN_ROWS, _MOST_RUNS = 1 << 16, 64
# Rows to compare by their keys, which takes 300 bytes a row, and keys that they are of.
_MOST_SUSPECTS, _MOST_KEYS = 100_000, 1_000
# Rows that are compared at once: they fit into the caches of a processor.
_BLOCK_ROWS = 1 << 17
_Flags = npt.NDArray[np.bool_]
# Markers are smaller than this, so they have these bits of a row.
_MARKERS = 8
MARKER_BITS = _MARKERS - 1
_IMPOSSIBLE = {
    Marker.INSERT: "is inserted while it is there, so the source has two rows of it",
    Marker.UPDATE: "is updated twice in one commit, or while it is not there",
    Marker.DELETE: "is deleted twice in one commit, or while it is not there",
    Marker.UPSERT: "is upserted while it is not there",
}
# A valid sequence of five rows has two inserts or two updates.
_REPEATS_A_MARKER = 5
# A group that is more than twice as large as planned has many rows of the same key, which no hash spreads.
_UNEVEN = 2
# Numbers and flags: arrays of NumPy, or columns of Spark.
_Values = TypeVar("_Values", npt.NDArray[Any], Column)


@dataclass(frozen=True)
class KeyInspection:
    """The keys of a slice that occur in several rows: how many, and some that violate the rules of `key_uniqueness`.

    `order_is_open`: the markers of some key also allow another order of its rows. `values_decide`: two
    rows of some key differ in nothing but their values. Both are only known if there are no problems.
    """

    repeated: int = 0
    problems: tuple[str, ...] = ()
    order_is_open: bool = False
    values_decide: bool = False


class _TooManyError(Exception):
    """More rows share keys than this process may hold at once."""


@dataclass(frozen=True)
class _Packing:
    """How rows are packed: by part, in order, the number of its commit from 1; 0 if unknown."""

    commits: tuple[int, ...]

    @classmethod
    def of(cls, staged: StagedSlice) -> _Packing:
        """Return the packing of a slice's rows."""
        known = sorted({part.version for part in staged.record.parts if part.version is not None})
        number = {version: 1 + index for index, version in enumerate(known)}
        return cls(tuple(0 if part.version is None else number[part.version] for part in staged.record.parts))

    @property
    def place(self) -> int:
        """What one place counts: a power of two, for it is quicker to mask bits than to divide."""
        return _MARKERS << max(self.commits, default=0).bit_length()

    def firsts(self, staged: StagedSlice) -> list[int]:
        """By part, in order: its first row, without a marker."""
        starts = staged.rows_before.values()
        return [start * self.place + commit * _MARKERS for start, commit in zip(starts, self.commits, strict=True)]


@dataclass(frozen=True)
class _KeyRows(Generic[_Values]):
    """Rows beside the rows of their keys before them, as numbers of Arrow or columns of Spark: the rules of both.

    `earlier(n)` is the n-th row before each row; negative if its key has fewer.
    """

    row: _Values
    earlier: Callable[[int], _Values]
    packing: _Packing

    @property
    def is_second(self) -> _Values:
        """Whether the row is the second one of its key."""
        return (self.earlier(1) >= 0) & (self.earlier(2) < 0)

    def is_beyond(self, allowed: int) -> _Values:
        """Whether the row is the first one of its key that exceeds the allowed number."""
        return (self.earlier(allowed) >= 0) & (self.earlier(allowed + 1) < 0)

    @cached_property
    def _markers(self) -> list[_Values]:
        """The row's marker, and those of the rows before it; of any value where there is none."""
        rows = (self.row, *(self.earlier(n) for n in range(1, _REPEATS_A_MARKER - 1)))
        return [_masked(row, MARKER_BITS) for row in rows]

    @property
    def cannot_follow(self) -> _Values:
        """Whether the row can't follow the one before, by their markers, or because they are of one commit."""
        marker, marker_before, before = self._markers[0], self._markers[1], self.earlier(1)
        bits = self.packing.place - _MARKERS
        commit = _masked(self.row, bits)
        is_again = (commit > 0) & (commit == _masked(before, bits))
        exists, inserts = marker_before != int(Marker.DELETE), marker == int(Marker.INSERT)
        cannot: _Values = (before >= 0) & (is_again | (exists == inserts))
        return cannot

    @property
    def is_open(self) -> _Values:
        """Whether the key's rows up to this one are valid in another order also.

        Only INSERT, UPDATE and UPDATE, DELETE allow no other order; every other valid sequence has a valid reordering.
        """
        marker, before = self._markers[0], self._markers[1]
        decided = (before == int(Marker.INSERT)) & (marker == int(Marker.UPDATE))
        decided |= (before == int(Marker.UPDATE)) & (marker == int(Marker.DELETE))
        is_open: _Values = (self.earlier(1) >= 0) & ((self.earlier(2) >= 0) | ~decided)
        return is_open

    @property
    def repeats_marker(self) -> _Values:
        """Whether an earlier row of the key has the same marker, INSERT or UPDATE; or any, if the row is the fifth."""
        (marker, *before), repeats = self._markers, self.earlier(_REPEATS_A_MARKER - 1) >= 0
        for n, one in enumerate(before, 1):
            repeats |= (self.earlier(n) >= 0) & (one == marker) & (marker <= int(Marker.UPDATE))
        return repeats


def _masked(values: _Values, bits: int) -> _Values:
    masked: _Values = values.bitwiseAND(bits) if isinstance(values, Column) else values & bits
    return masked


def inspect_keys(
    staged: StagedSlice,
    rows_allowed: Callable[[], int],
    spark: Callable[[], SparkSession],
    most_rows_here: int = MOST_ROWS_HERE,
    rows_at_once: int = _ROWS_AT_ONCE,
) -> KeyInspection:
    """Inspect the keys of all rows: in this process, or with Spark if they are more than `most_rows_here`.

    This process sorts `rows_at_once`; if they are more, they wait in temporary files. Spark also sorts them if the disk
    is full, and if a key has far too many. `rows_allowed` returns the most rows that a key may have; it is called only
    if a key has several rows. Raises what `spark_errors` raises.
    """
    rows = staged.record.markers.total
    if not staged.record.keys or not rows or _is_ascending(staged):
        return KeyInspection()
    if rows <= most_rows_here:
        try:
            return _inspect_here(staged, rows_allowed, rows_at_once)
        except _TooManyError:
            pass
        except OSError:
            if rows <= rows_at_once:  # then there are no temporary files
                raise
    with spark_errors(f"{staged.record.table}, comparing the keys of staged parts"):
        return _inspect_on_spark(staged, rows_allowed, spark())


def key_uniqueness(keys: KeyInspection) -> CheckResult:
    """Check that a key changes once in a commit at most, and that each change can follow the key's change before it.

    A key can't have more rows than the slice has commits with data. It can't be inserted while it exists, nor updated
    or deleted while it doesn't: then the source has two rows of the key, or the changes are in a wrong order.
    """
    more = ("and more",) if len(keys.problems) > _SAMPLES else ()
    return CheckResult("key_uniqueness", keys.problems[:_SAMPLES] + more, {"repeated_keys": keys.repeated})


def version_uniqueness(spark: SparkSession, scan: Scan, keys: Sequence[str], projection: Projection) -> CheckResult:
    """Check all keys of a version: a staged chunk holds only some of them. Raises what `spark_errors` raises."""
    columns = [F.col(quoted(key)).alias(f"key{index}") for index, key in enumerate(keys)]
    with spark_errors(f"the keys of {scan.uri}"):
        rows = projected(read_scan(spark, scan), projection)
        counted = rows.groupBy(*columns).agg(F.count(F.lit(1)).alias("rows"))
        twice = readable(counted.where(F.col("rows") > 1).limit(_SAMPLES)).collect()
    problems = tuple(f"key {shown_key(dict(zip(keys, row, strict=False)))} has {row[-1]} rows" for row in twice)
    return CheckResult("key_uniqueness", problems)


def _is_ascending(staged: StagedSlice) -> bool:
    """Return whether the rows are few runs of ascending keys that don't overlap, so that no key occurs twice.

    First loads of tables whose keys count up are; all others are left after the first rows.
    """
    if len(staged.record.keys) > 1 or staged.record.kind is SliceKind.CHANGES:  # the same keys change again
        return False
    firsts, lasts = list[pa.Array](), list[pa.Array]()
    for path in staged.paths:
        with staged.open(path) as file:
            for batch in file.iter_batches(_RUN_ROWS, columns=list(staged.record.keys)):
                keys = batch.column(0)
                ends = np.flatnonzero(~_is_less(keys[:-1], keys[1:]))
                if len(ends) > _MOST_RUNS:
                    return False
                if len(keys) > 1 and pa.types.is_integer(keys.type):  # where one file of the source follows another
                    ends = np.union1d(ends, [np.argmax(np.diff(keys.to_numpy()))])
                firsts.append(keys.take(pa.array(np.append(0, ends + 1))))
                lasts.append(keys.take(pa.array(np.append(ends, len(keys) - 1))))
    first, last = pa.chunked_array(firsts), pa.chunked_array(lasts)
    order = pc.sort_indices(first)
    return bool(_is_less(last.take(order)[:-1], first.take(order)[1:]).all())


def _is_less(keys: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> _Flags:
    return np.asarray(pc.fill_null(pc.less(keys, others), fill_value=False), bool)


def _inspect_here(staged: StagedSlice, rows_allowed: Callable[[], int], rows_at_once: int) -> KeyInspection:
    packing, is_by_commit = _Packing.of(staged), staged.record.kind is SliceKind.CHANGES
    allowed = cache(lambda: max(1, rows_allowed()))
    repeated, is_open, values_decide = 0, False, False
    wrong_rows, has_more = list[Numbers](), False
    for hashes, rows in _groups(staged, rows_at_once):
        suspects = set[int]()
        for numbers, places in _repeated(hashes):
            keys = _beside_earlier(numbers, rows[places], packing)
            repeated += int(np.count_nonzero(keys.is_second))
            wrong = keys.is_beyond(allowed()) | (keys.cannot_follow if is_by_commit else False)
            suspects.update(np.unique(numbers[wrong])[: _MOST_KEYS + 1].tolist())
            is_open |= is_by_commit and bool(keys.is_open.any())
            values_decide |= is_by_commit and bool(keys.repeats_marker.any())
        if suspects and sum(map(len, wrong_rows)) <= _MOST_SUSPECTS:
            chosen = sorted(suspects)[:_MOST_KEYS]
            has_more |= len(chosen) < len(suspects)
            wrong_rows.append(rows[np.isin(hashes, np.array(chosen, np.uint64))])
        del hashes, rows  # before the next group is read
    if not wrong_rows:
        return KeyInspection(repeated, (), is_open, values_decide)
    suspected = np.sort(np.concatenate(wrong_rows))
    if len(suspected) > _MOST_SUSPECTS:
        raise _TooManyError
    problems = _proved(staged, suspected, allowed())
    if has_more and not problems:  # these keys only share their hashes, and others may not
        raise _TooManyError
    return KeyInspection(repeated, problems, is_open, values_decide)


def _proved(staged: StagedSlice, rows: Numbers, allowed: int) -> tuple[str, ...]:
    """Return the violations of these rows, of keys that violate a rule or only share their hashes, by the keys."""
    packing, known = _Packing.of(staged), dict[tuple[object, ...], int]()
    values = (tuple(row.values()) for row in staged.read_rows(rows // packing.place, staged.record.keys))
    numbers = np.array([known.setdefault(key, len(known)) for key in values])
    order = np.lexsort((rows, numbers))
    numbers, rows = numbers[order], rows[order]
    keys, counts = _beside_earlier(numbers, rows, packing), np.bincount(numbers)
    beyond = keys.is_beyond(allowed)
    too_many = sorted(zip(rows[beyond].tolist(), counts[numbers[beyond]].tolist(), strict=True))
    is_by_commit = staged.record.kind is SliceKind.CHANGES
    impossible = sorted(rows[keys.cannot_follow].tolist()) if is_by_commit else []
    return _problems(staged, dict(too_many[:_REPORTED]), impossible[:_REPORTED], allowed)


def _beside_earlier(numbers: Hashes | Numbers, rows: Numbers, packing: _Packing) -> _KeyRows[npt.NDArray[Any]]:
    """Return the rows, which are in the order of their keys' numbers and places, beside earlier ones."""

    @cache
    def earlier(n: int) -> Numbers:
        found = np.full(len(rows), -1)
        found[n:] = np.where(numbers[n:] == numbers[:-n], rows[:-n], -1)
        return found

    return _KeyRows(rows, earlier, packing)


def _repeated(hashes: Hashes) -> Iterator[tuple[Hashes, Numbers]]:
    """Yield blocks of hashes that occur several times, in order, and where each is; all of one hash in one block.

    Few other hashes are among them.
    """
    # To sort the upper bits of the hashes, with the place as the lower bits, takes a tenth of argsort's time.
    width = np.uint64(len(hashes).bit_length())
    is_place = (np.uint64(1) << width) - np.uint64(1)
    packed = (hashes >> width << width) | np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    start = 0
    while start < len(packed):
        last = packed[min(start + _BLOCK_ROWS, len(packed)) - 1]
        block = packed[start : (end := int(np.searchsorted(packed, last | is_place, "right")))]
        is_again = block[1:] >> width == block[:-1] >> width
        places = (block[np.append(is_again, False) | np.append(False, is_again)] & is_place).astype(np.int64)
        found, start = hashes[places], end
        if ((found[1:] != found[:-1]) & (found[1:] >> width == found[:-1] >> width)).any():
            order = np.lexsort((places, found))  # two hashes have the same upper bits
            found, places = found[order], places[order]
        if len(found):
            yield found, places


def _inspect_on_spark(staged: StagedSlice, rows_allowed: Callable[[], int], spark: SparkSession) -> KeyInspection:
    packing, allowed = _Packing.of(staged), max(1, rows_allowed())
    is_by_commit = staged.record.kind is SliceKind.CHANGES
    lags = sorted({1, 2, allowed, allowed + 1} | (set(range(1, _REPEATS_A_MARKER)) if is_by_commit else set()))
    rows = staged.spark_rows(spark, packing.firsts(staged))
    marker = F.col(ROW_MARKER) if staged.record.kind.has_markers else F.lit(0)
    row = F.col(PART_NUMBER) + F.col(ROW_INDEX) * packing.place + marker
    tasks = -(-staged.record.markers.total // _ROWS_OF_A_TASK)

    def beside_earlier(*keys: Column) -> DataFrame:
        named = {f"key{index}": key for index, key in enumerate(keys)}
        window = Window.partitionBy(*named).orderBy("row")
        chosen = rows.select(row.alias("row"), *(key.alias(name) for name, key in named.items()))
        earlier = {f"earlier{n}": F.lag("row", n, -1).over(window) for n in lags}
        return chosen.repartition(tasks, *named).withColumns(earlier)

    rules = _KeyRows(F.col("row"), lambda n: F.col(f"earlier{n}"), packing)
    wrong = rules.cannot_follow if is_by_commit else F.lit(col=False)
    keys = [F.col(quoted(key)) for key in staged.record.keys]
    flags = [rules.is_second, rules.is_beyond(allowed) | wrong]
    flags += [rules.is_open, rules.repeats_marker] if is_by_commit else []
    sorted_rows = beside_earlier(F.xxhash64(*keys)).where("earlier1 >= 0")
    repeated, violations, *order = sorted_rows.agg(*map(F.count_if, flags)).collect()[0]
    if not violations:
        return KeyInspection(repeated, (), *map(bool, order))
    exact = beside_earlier(*keys)
    of_key = F.count(F.lit(1)).over(Window.partitionBy(*(f"key{index}" for index in range(len(keys)))))
    beyond = exact.withColumn("rows", of_key).where(rules.is_beyond(allowed)).select("row", "rows")
    too_many = {one["row"]: one["rows"] for one in beyond.orderBy("row").limit(_REPORTED).collect()}
    impossible = [one["row"] for one in exact.where(wrong).select("row").orderBy("row").limit(_REPORTED).collect()]
    return KeyInspection(repeated, _problems(staged, too_many, impossible, allowed), *map(bool, order))


def _problems(
    staged: StagedSlice, too_many: Mapping[int, int], impossible: Sequence[int], allowed: int
) -> tuple[str, ...]:
    """Return the violations as texts: rows of keys that have too many, with their numbers; rows that can't follow."""
    packing = _Packing.of(staged)
    wrong = [*too_many] or [*impossible]
    places = [row // packing.place for row in wrong]
    keys = map(shown_key, staged.read_rows(np.array(places, np.int64), staged.record.keys))
    if too_many:
        appended = staged.record.kind is SliceKind.APPENDS
        where = "that were appended" if appended else f"in {allowed} commit{'s' if allowed > 1 else ''}"
        return tuple(f"key {key} has {count} rows {where}" for key, count in zip(keys, too_many.values(), strict=True))
    return tuple(
        f"key {key} {_IMPOSSIBLE[Marker(row % _MARKERS)]}: {staged.describe_place(place)}"
        for key, row, place in zip(keys, wrong, places, strict=True)
    )


def _groups(staged: StagedSlice, rows_at_once: int) -> Iterator[tuple[Hashes, Numbers]]:
    """Yield the hashes of keys and their rows, in order, in groups of about `rows_at_once`: all of one hash in one.

    If the groups are several, they are written into temporary files. Raises _TooManyError for a group of many more
    rows, and OSError.
    """
    total = staged.record.markers.total
    bits = (-(-total // rows_at_once) - 1).bit_length()
    if not bits:
        every, place = (np.empty(total, np.uint64), np.empty(total, np.int64)), 0
        for hashes, rows in key_rows(staged):
            every[0][place : place + len(rows)], every[1][place : place + len(rows)] = hashes, rows
            place += len(rows)
        yield every
        return
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(1 << bits)]
        sizes = np.zeros(len(files), np.int64)
        for hashes, rows in key_rows(staged):
            group = (hashes >> np.uint64(64 - bits)).astype(np.uint16)
            order = np.argsort(group, kind="stable")
            pairs = np.column_stack([hashes, rows.view(np.uint64)])[order]
            ends = np.searchsorted(group[order], range(1, 1 << bits))
            for file, part in zip(files, np.split(pairs, ends), strict=True):
                file.write(part.tobytes())
            sizes += np.diff(ends, prepend=0, append=len(pairs))
        if sizes.max() > _UNEVEN * rows_at_once:
            raise _TooManyError
        for file, size in zip(files, sizes.tolist(), strict=True):
            file.seek(0)
            pairs = np.fromfile(file, np.uint64, 2 * size).reshape(-1, 2)
            if len(pairs) < size:
                raise OSError(errno.EIO, "a temporary file lacks rows that were written")
            hashes, rows = pairs[:, 0].copy(), pairs[:, 1].copy().view(np.int64)
            del pairs  # while the caller works on the group
            yield hashes, rows


def key_rows(staged: StagedSlice) -> Iterator[tuple[Hashes, Numbers]]:
    """Yield the hash of the key of each row by its place, and the rows. Without a marker column, rows are inserts."""
    packing, record, place = _Packing.of(staged), staged.record, 0
    names = [*record.keys, ROW_MARKER] if record.kind.has_markers else list(record.keys)
    for path, commit in zip(staged.paths, packing.commits, strict=True):
        with staged.open(path) as file:
            for batch in file.iter_batches(_BLOCK_ROWS, columns=names):
                rows = packing.place * np.arange(place, place + len(batch)) + commit * _MARKERS
                if record.kind.has_markers:
                    rows += batch[ROW_MARKER].to_numpy()
                yield hash_keys(batch, record.keys), rows
                place += len(batch)
