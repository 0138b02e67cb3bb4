"""Check that keys are unique in the source, by their rows in a slice: two live rows of a key can't be mirrored.

`inspect_keys` compares 64-bit hashes of all keys. Rows of different keys may share a hash, so a key that violates a
rule is read, and inspected again, before it is reported. Rows are identified by their place: the number of rows before
the row in all parts of the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession
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
from mirror_assets.verify.staged import Numbers, StagedSlice

_Flags = npt.NDArray[np.bool_]
_SAMPLES = 5
_SHARE_ROWS = 2_000_000
# Keys of a share to read, if they violate a rule: of this many, most are not mere collisions of hashes.
_MOST_KEYS = 1_000
_NO_VERSION = -1
_IMPOSSIBLE = {
    Marker.INSERT: "is inserted while it is there, so the source has two rows of it",
    Marker.UPDATE: "is updated twice in one commit, or while it is not there",
    Marker.DELETE: "is deleted twice in one commit, or while it is not there",
    Marker.UPSERT: "is upserted while it is not there",
}
Hashes = npt.NDArray[np.uint64]
Markers = npt.NDArray[np.int8]
_BATCH_ROWS = 500_000
# 2^64 divided by the golden ratio, for Knuth's multiplicative hashing: every bit of a word affects the product.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class KeyInspection:
    """The keys of a slice that occur in several rows: how many, and some that violate the rules of `key_uniqueness`.

    `order_is_open`: the markers of some key also allow another order of its rows. `values_decide`: two
    rows of some key differ in nothing but their values. `markers` has the marker of every row by its place.
    """

    repeated: int = 0
    problems: tuple[str, ...] = ()
    order_is_open: bool = False
    values_decide: bool = False
    markers: Markers = field(default_factory=lambda: np.zeros(0, np.int8))


def inspect_keys(staged: StagedSlice, rows_allowed: Callable[[], int], share_rows: int = _SHARE_ROWS) -> KeyInspection:
    """Inspect the keys of all rows, in shares (hash partitions) of about `share_rows` rows.

    `rows_allowed` returns the most rows that a key may have; it is called only if a key has several rows.
    """
    rows = staged.record.markers.total
    if not staged.record.keys or not rows:
        return KeyInspection()
    hashes, markers = read_hashes(staged)
    found = KeyInspection(markers=markers)
    allowed, to_read = 1, [np.zeros(0, np.int64)]
    shares = 1 << (-(-rows // share_rows) - 1).bit_length()  # the lower bits of a hash are its share
    for share in range(shares):
        is_in_share = (hashes & np.uint64(shares - 1)) == share
        if staged.record.kind is not SliceKind.CHANGES:  # most often no key is repeated: a plain sort shows that sooner
            ordered = np.sort(hashes[is_in_share])
            if (ordered[1:] != ordered[:-1]).all():
                continue
        keys = _RepeatedKeys.among(hashes, np.flatnonzero(is_in_share))
        if not len(keys):
            continue
        allowed = rows_allowed()
        too_many, cannot_follow = _violations(staged, keys, keys.places, markers, allowed)
        wrong = np.flatnonzero(too_many | (keys.count(cannot_follow) > 0))[:_MOST_KEYS]
        to_read.append(keys.places[np.isin(keys.numbers, wrong)])
        found = replace(found, repeated=found.repeated + len(keys))
        if staged.record.kind is SliceKind.CHANGES:
            marker = markers[keys.places]
            most_equal = max(int(keys.count(marker == one).max()) for one in (Marker.INSERT, Marker.UPDATE))
            found = replace(
                found,
                order_is_open=found.order_is_open or _is_order_open(keys, marker),
                values_decide=found.values_decide or most_equal > 1,
            )
    problems = _problems(staged, np.sort(np.concatenate(to_read)), markers, allowed)
    return replace(found, problems=tuple(problems))


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


@dataclass(frozen=True)
class _RepeatedKeys:
    """The places of all rows whose key occurs several times, sorted by key and place, and whether each begins a key."""

    places: Numbers
    begins: _Flags

    @classmethod
    def among(cls, keys: Hashes, places: Numbers) -> _RepeatedKeys:
        """Return the repeated keys of the rows at these places, in order; `keys` has a number for every row's key."""
        if not len(places):
            return cls(places, np.zeros(0, bool))
        chosen = keys[places]
        # To sort the upper bits of the keys, with the row's index as the lower bits, takes a tenth of argsort's time.
        width, indices = np.uint64(len(places).bit_length()), np.arange(len(places), dtype=np.uint64)
        packed = np.sort((chosen >> width << width) | indices)
        order = (packed & ((np.uint64(1) << width) - np.uint64(1))).astype(np.int64)
        is_new = chosen[order[1:]] != chosen[order[:-1]]
        if (is_new & (packed[1:] >> width == packed[:-1] >> width)).any():  # two keys have the same upper bits
            order = np.lexsort((indices, chosen))
            is_new = chosen[order[1:]] != chosen[order[:-1]]
        begins, ends = np.append(True, is_new), np.append(is_new, True)
        repeated = ~(begins & ends)
        return cls(places[order[repeated]], begins[repeated])

    def __len__(self) -> int:
        """Return the number of keys."""
        return int(self.begins.sum())

    @property
    def numbers(self) -> Numbers:
        """For each row, the number of its key, from 0."""
        return np.cumsum(self.begins) - 1

    @property
    def starts(self) -> Numbers:
        """The index of each key's first row."""
        return np.flatnonzero(self.begins)

    @property
    def row_counts(self) -> Numbers:
        """The number of rows of each key."""
        return np.diff(self.starts, append=len(self.places))

    def count(self, rows: _Flags) -> Numbers:
        """Return how many of the flagged rows each key has."""
        return np.add.reduceat(rows, self.starts, dtype=np.int64)


def _violations(
    staged: StagedSlice, keys: _RepeatedKeys, places: Numbers, markers: Markers, allowed: int
) -> tuple[_Flags, _Flags]:
    """Return which keys have too many rows, and which rows can't follow their key's row before: by marker or commit.

    `places` are the places of the keys' rows.
    """
    too_many = keys.row_counts > allowed
    if staged.record.kind is not SliceKind.CHANGES:
        return too_many, np.zeros(len(places), bool)
    known = [_NO_VERSION if part.version is None else part.version for part in staged.record.parts]
    version = np.asarray(known)[np.searchsorted(staged.bounds, places, side="right")]
    marker = markers[places]
    exists, inserts = marker[:-1] != Marker.DELETE, marker[1:] == Marker.INSERT
    is_again = (version[1:] == version[:-1]) & (version[1:] != _NO_VERSION)
    return too_many, ~keys.begins & np.append(False, is_again | (exists == inserts))


def _is_order_open(keys: _RepeatedKeys, marker: Markers) -> bool:
    """Return whether the markers of some key also allow another order of its rows.

    Only INSERT, UPDATE and UPDATE, DELETE allow no other order; every other valid sequence has a valid reordering.
    """
    first, second = marker[keys.starts], marker[keys.starts + 1]
    decided = (first == Marker.INSERT) & (second == Marker.UPDATE)
    decided |= (first == Marker.UPDATE) & (second == Marker.DELETE)
    return bool(((keys.row_counts > 2) | ~decided).any())


def _problems(staged: StagedSlice, places: Numbers, markers: Markers, allowed: int) -> list[str]:
    """Return the violations among the rows at these places, by their keys in place of hashes."""
    if not len(places):
        return []
    rows = staged.read_rows(places, staged.record.keys)
    numbers = dict[tuple[object, ...], int]()
    exact = [numbers.setdefault(tuple(row.values()), len(numbers)) for row in rows]
    keys = _RepeatedKeys.among(np.array(exact, np.uint64), np.arange(len(rows)))
    too_many, cannot_follow = _violations(staged, keys, places[keys.places], markers, allowed)
    appended = staged.record.kind is SliceKind.APPENDS
    where = "that were appended" if appended else f"in {allowed} commit{'s' if allowed > 1 else ''}"
    problems = [
        f"key {shown_key(rows[keys.places[start]])} has {count} rows {where}"
        for start, count in zip(keys.starts[too_many], keys.row_counts[too_many], strict=True)
    ]
    return problems or [
        f"key {shown_key(rows[index])} {_IMPOSSIBLE[Marker(markers[places[index]])]}: "
        f"{staged.describe_place(places[index])}"
        for index in keys.places[cannot_follow]
    ]


def read_hashes(staged: StagedSlice) -> tuple[Hashes, Markers]:
    """Return the hash of the key and the marker of each row by its place, of a slice that has keys and rows.

    The hashes are in a temporary file, so a slice need not fit into memory. Without a marker column, rows are inserts.
    """
    record, place = staged.record, 0
    with TemporaryFile() as file_of_hashes:  # the map keeps the file until it is freed
        hashes = np.memmap(file_of_hashes, np.uint64, shape=record.markers.total)
    markers = np.full(record.markers.total, Marker.INSERT, np.int8)
    names = [*record.keys, ROW_MARKER] if record.kind.has_markers else list(record.keys)
    for path in staged.paths:
        with staged.open(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                rows = slice(place, place := place + len(batch))
                hashes[rows] = hash_keys(batch, record.keys)
                if record.kind.has_markers:
                    markers[rows] = batch[ROW_MARKER].to_numpy()
    return hashes, markers


def hash_keys(rows: pa.RecordBatch, keys: Sequence[str]) -> Hashes:
    """Return a hash of each row's key. Keys are never NULL, floating-point or nested."""
    hashes = np.zeros(len(rows), np.uint64)
    for key in keys:
        hashes = _mix(hashes ^ _hash_column(rows[key]))
    return hashes


def _mix(words: Hashes) -> Hashes:
    """Spread each bit of a word over all bits, one-to-one: different words stay different."""
    mixed: Hashes = words * _MULTIPLIER
    mixed ^= mixed >> _HALF
    mixed *= _MULTIPLIER
    mixed ^= mixed >> _HALF
    return mixed


def _hash_column(column: pa.Array) -> Hashes:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False)).astype(np.uint64)
    if pa.types.is_temporal(kind):
        return _hash_column(column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
    return _hash_bytes(column.cast(pa.string()) if pa.types.is_decimal(kind) else column)


def _hash_bytes(column: pa.Array) -> Hashes:
    """Hash the bytes of each value, in words of eight bytes, and its length."""
    text = column.cast(pa.large_binary())
    _, bounds, data = text.buffers()
    offsets = np.frombuffer(bounds, np.int64)[text.offset : text.offset + len(text) + 1]
    content = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    padded = np.concatenate([content, np.zeros(8, np.uint8)])
    words = np.ndarray(len(content) + 1, np.uint64, padded, strides=(1,))  # the eight bytes from each byte on
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    hashes, rows, at = lengths.astype(np.uint64), np.flatnonzero(lengths), 0
    while len(rows):
        beyond = np.maximum(at + 8 - lengths[rows], 0).astype(np.uint64)  # bytes of the next value in the last word
        hashes[rows] = _mix(hashes[rows] ^ (words[starts[rows] + at] << (beyond << np.uint64(3))))
        at += 8
        rows = rows[lengths[rows] > at]
    return hashes
