"""Read and sort the keys of a staged slice's rows, in shares (hash partitions) that fit into memory.

All rows of a key are in one share. Within a share, keys become whole numbers that are sorted together with their rows'
indices. DuckDB takes longer for numbers, less for text; docs/performance.md has the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.landing.format import SliceRecord, StagedPart
from mirror_assets.markers import ROW_MARKER
from mirror_assets.verify.staged import Numbers, StagedSlice

MARKER, PLACE, VERSION = "marker", "place", "version"
# Rows of a share: some 30 bytes each where the key is one number.
SHARE_ROWS = 2_000_000
_BATCH_ROWS = 500_000
_Hashes = npt.NDArray[np.uint64]
# 2^64 divided by the golden ratio, for Knuth's multiplicative hashing: every bit of a key affects the product.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_UPPER_HALF = np.uint64(32)
# Bytes of a word, and bits of a byte.
_WORD = np.uint64(8)
_PADDING = np.zeros(8, np.uint8)
# A code below this leaves 22 bits for a row's index: enough for the rows of a share.
_MOST = 1 << 41


def aliases(record: SliceRecord) -> list[str]:
    """Return the names `key0`, `key1` … for the key columns, which can't collide with other columns of these tables."""
    return [f"key{index}" for index in range(len(record.keys))]


def read_keys(staged: StagedSlice, share_rows: int = SHARE_ROWS) -> Iterator[pa.Table]:
    """Yield the keys of every row, as columns `key0` …, in tables of about `share_rows` rows; none for no keys or rows.

    `place` is the number of rows before the row in all parts; rows come in this order. `version` is the row's commit,
    NULL where its part holds several. `marker` is there if the parts have markers. Several shares go through files in
    the machine's folder for temporary files.
    """
    rows = staged.record.markers.total
    if not staged.record.keys or not rows:
        return
    parts = zip(staged.record.parts, staged.rows_before.values(), strict=True)
    tables = (table for part, before in parts for table in _read_part(staged, part, before))
    shares = -(-rows // share_rows)
    if shares == 1:
        yield pa.concat_tables(tables)
        return
    with TemporaryDirectory(prefix="mirror-assets-keys-") as folder:
        files = [Path(folder) / f"{share}.arrow" for share in range(shares)]
        _write_shares(tables, aliases(staged.record), files)
        yield from filter(len, map(_read_share, files))


def _read_part(staged: StagedSlice, part: StagedPart, place: int) -> Iterator[pa.Table]:
    """Yield the part's rows, the first of which is at `place`, in batches: a part may have any number of rows."""
    names = _columns(staged.record)
    with staged.open(staged.path(part.name)) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(names)):
            table = pa.table(batch).select(list(names)).rename_columns(list(names.values()))
            places = pa.array(np.arange(place, place + len(table), dtype=np.int64))
            versions = pa.repeat(pa.scalar(part.version, pa.int64()), len(table))
            yield table.append_column(PLACE, places).append_column(VERSION, versions)
            place += len(table)


def _columns(record: SliceRecord) -> Mapping[str, str]:
    """Return the columns to read, each with its name here."""
    names = dict(zip(record.keys, aliases(record), strict=True))
    return names | {ROW_MARKER: MARKER} if record.kind.has_markers else names


def _write_shares(tables: Iterable[pa.Table], keys: Sequence[str], files: Sequence[Path]) -> None:
    """Write the rows of each share into its file, in their order."""
    with ExitStack() as opened:
        writers: list[pa.ipc.RecordBatchFileWriter] = []
        for table in tables:
            share = share_of(table, keys, len(files))
            ordered = table.take(pa.array(np.argsort(share, kind="stable")))
            ends = np.cumsum(np.bincount(share, minlength=len(files)))
            writers = writers or [opened.enter_context(pa.ipc.new_file(str(file), table.schema)) for file in files]
            for writer, (start, end) in zip(writers, pairwise([0, *ends.tolist()]), strict=True):
                writer.write_table(ordered.slice(start, end - start))


def _read_share(file: Path) -> pa.Table:
    with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as reader:
        return reader.read_all()


def share_of(rows: pa.Table, keys: Sequence[str], shares: int) -> npt.NDArray[np.intp]:
    """Return each row's share, from 0: the same for equal keys, in whatever table they are."""
    return np.asarray(_hashes(rows, keys) % np.uint64(shares), np.intp)


def maybe_repeated(rows: pa.Table, keys: Sequence[str]) -> Numbers:
    """Return the indices of rows whose key may be another row's, too: all but those that share their hash with none.

    Of keys that are whole numbers, all rows are returned: comparing them costs no more than comparing hashes.
    """
    indices = np.arange(len(rows), dtype=np.int64)
    if all(_is_whole(rows.schema.field(key).type) for key in keys):
        return indices
    width = np.uint64((len(rows) - 1).bit_length())
    both = np.sort((_hashes(rows, keys) >> width << width) | indices.view(np.uint64))
    same = np.flatnonzero(both[1:] >> width == both[:-1] >> width)
    repeated = np.zeros(len(rows), bool)
    repeated[(both[np.union1d(same, same + 1)] & ((np.uint64(1) << width) - np.uint64(1))).view(np.int64)] = True
    return indices[repeated]


def _hashes(rows: pa.Table, keys: Sequence[str]) -> _Hashes:
    mixed = np.zeros(len(rows), np.uint64)
    for key in keys:
        mixed = (mixed ^ _column_hashes(rows[key].combine_chunks())) * _MULTIPLIER
        mixed ^= mixed >> _UPPER_HALF
    return mixed


def _column_hashes(column: pa.Array) -> _Hashes:
    """Return a number for each value: of a whole number all bits, of text its length, first and last bytes."""
    if _is_whole(column.type):
        return _whole_numbers(column).view(np.uint64)
    text = (column.cast(pa.large_string()) if pa.types.is_decimal(column.type) else column).cast(pa.large_binary())
    _, bounds, data = text.buffers()
    offsets = np.frombuffer(bounds, np.int64)[text.offset : text.offset + len(text) + 1]
    content = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    padded = np.concatenate([_PADDING, content, _PADDING])
    words = np.ndarray(len(padded) - 7, np.uint64, padded, strides=(1,))  # the 8 bytes from each byte on
    starts, ends = offsets[:-1] - offsets[0] + 8, offsets[1:] - offsets[0] + 8
    lengths = (ends - starts).astype(np.uint64)
    unused_bits = (_WORD - np.clip(lengths, 1, _WORD)) * _WORD
    first, last = words[starts] << unused_bits, words[ends - 8] >> unused_bits
    first[lengths == 0] = last[lengths == 0] = 0
    mixed = (lengths * _MULTIPLIER ^ first ^ first >> _UPPER_HALF) * _MULTIPLIER
    return np.asarray(mixed ^ mixed >> _UPPER_HALF ^ last ^ last >> _UPPER_HALF)


@dataclass(frozen=True)
class Codes:
    """A whole number for each row, from 0 and below `below`: equal exactly for equal keys."""

    numbers: Numbers
    below: int

    def and_(self, other: Codes) -> Codes:
        """Return a code for each pair of codes. Both are below 2^41, or as few as there are rows."""
        one = self if self.below * other.below < 1 << 62 else self.dense()
        pairs = Codes(one.numbers * other.below + other.numbers, one.below * other.below)
        return pairs if pairs.below <= _MOST else pairs.dense()

    def dense(self) -> Codes:
        """Return codes below the number of different keys."""
        found, numbers = np.unique(self.numbers, return_inverse=True)
        return Codes(numbers.astype(np.int64), len(found))

    def in_order(self) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Return the rows' indices sorted by key and row, and whether each row has the key of the one before."""
        width = max(1, (len(self.numbers) - 1).bit_length())
        codes = self if (self.below - 1).bit_length() + width < 63 else self.dense()
        indices = np.arange(len(self.numbers), dtype=np.int64)
        both = np.sort((codes.numbers << width) | indices)
        keys = both >> width
        return both & ((1 << width) - 1), np.concatenate([np.zeros(1, bool), keys[1:] == keys[:-1]])


def codes_of(rows: pa.Table, keys: Sequence[str]) -> Codes:
    """Return the codes of a table that has rows, whose keys are never NULL, floating-point or nested."""
    first, *others = (_column_codes(rows[key].combine_chunks()) for key in keys)
    for other in others:
        first = first.and_(other)
    return first


def _column_codes(column: pa.Array) -> Codes:
    if _is_whole(column.type):
        numbers = _whole_numbers(column)
        least = int(numbers.min())
        if (below := int(numbers.max()) - least + 1) <= _MOST:
            return Codes(numbers - least, below)
    encoded = pc.dictionary_encode(column)
    return Codes(np.asarray(encoded.indices.to_numpy()).astype(np.int64), len(encoded.dictionary))


def _is_whole(kind: pa.DataType) -> bool:
    """Whether values of the type are whole numbers of up to 64 bits, or stored as such."""
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind))


def _whole_numbers(column: pa.Array) -> Numbers:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
