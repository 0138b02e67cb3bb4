"""Read a staged slice's keys as 64-bit hashes, and its row markers: all that the checks of keys need of most rows.

Rows are identified by their place: the number of rows before the row in all parts of the slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from tempfile import TemporaryFile

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.verify.staged import StagedSlice

Hashes = npt.NDArray[np.uint64]
Markers = npt.NDArray[np.int8]
_BATCH_ROWS = 500_000
# 2^64 divided by the golden ratio, for Knuth's multiplicative hashing: every bit of a word affects the product.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


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
