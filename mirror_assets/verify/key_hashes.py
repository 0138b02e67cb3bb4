"""Hashes of keys, computed by NumPy from columns of Arrow: equal for equal keys, different for almost all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Those of SplitMix64: 2^64 divided by the golden ratio, then the steps of its finalizer.
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST = np.uint64(31)

Hashes = npt.NDArray[np.uint64]


def hash_keys(rows: pa.RecordBatch, keys: Sequence[str]) -> Hashes:
    """Return a hash of each row's key. Keys are never NULL, floating-point or nested."""
    hashes = np.zeros(len(rows), np.uint64)
    for key in keys:
        hashes = _mix(hashes ^ _hash_column(rows[key]))
    return hashes


def _mix(words: Hashes) -> Hashes:
    """Spread each bit of a word over all bits, one-to-one: different words stay different, and 0 does not stay 0.

    Sums of hashes are compared. So neither may a key have the hash 0, which no sum shows, nor may the hashes of a few
    keys that differ in some bits, such as the upper ones, have the sum of those of others.
    """
    mixed: Hashes = words + _INCREMENT
    for shift, multiplier in _STEPS:
        mixed ^= mixed >> shift
        mixed *= multiplier
    mixed ^= mixed >> _LAST
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
    hashes, rows, at = _mix(lengths.astype(np.uint64)), np.flatnonzero(lengths), 0
    while len(rows):
        beyond = np.maximum(at + 8 - lengths[rows], 0).astype(np.uint64)  # bytes of the next value in the last word
        hashes[rows] = _mix(hashes[rows] ^ (words[starts[rows] + at] << (beyond << np.uint64(3))))
        at += 8
        rows = rows[lengths[rows] > at]
    return hashes
