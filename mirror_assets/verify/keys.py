"""Read the keys of a staged slice's rows, in shares that fit into memory, and sort them.

All rows of a key are in one share. Within a share, keys become whole numbers that are sorted together with their rows'
indices.
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
# Odd, with its bits spread: a product with it depends on every bit of a key (Knuth's multiplicative hashing).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_UPPER_HALF = np.uint64(32)
_TAIL_BYTES = 8
# A code below this leaves 22 bits for a row's index: enough for the rows of a share.
_MOST = 1 << 41


def aliases(record: SliceRecord) -> list[str]:
    """Return names for the key columns that collide with no other column here, whatever the source calls them."""
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
    mixed = np.zeros(len(rows), np.uint64)
    for key in keys:
        mixed = (mixed ^ _hashes(rows[key].combine_chunks())) * _MULTIPLIER
        mixed ^= mixed >> _UPPER_HALF
    return np.asarray(mixed % np.uint64(shares), np.intp)


def _hashes(column: pa.Array) -> _Hashes:
    """Return a number for each value: all bits of a fixed-width value, length and last bytes of text."""
    numbers = _whole_numbers(column)
    if numbers is not None:
        return numbers.view(np.uint64)
    return _text_hashes(column.cast(pa.large_string()) if pa.types.is_decimal(column.type) else column)


def _text_hashes(column: pa.Array) -> _Hashes:
    text = column.cast(pa.large_binary())
    numbers = np.asarray(pc.binary_length(text).to_numpy()).astype(np.uint64)
    _, bounds, data = text.buffers()
    offsets = np.frombuffer(bounds, np.int64)[text.offset : text.offset + len(text) + 1]
    found = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    for back in range(1, _TAIL_BYTES + 1):
        at = offsets[1:] - back
        is_there = at >= offsets[:-1]
        numbers *= _MULTIPLIER
        numbers[is_there] += found[at[is_there]]
    return numbers


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
    numbers = _whole_numbers(column)
    if numbers is not None and (below := int(numbers.max()) - (least := int(numbers.min())) + 1) <= _MOST:
        return Codes(numbers - least, below)
    encoded = pc.dictionary_encode(column)
    return Codes(np.asarray(encoded.indices.to_numpy()).astype(np.int64), len(encoded.dictionary))


def _whole_numbers(column: pa.Array) -> Numbers | None:
    """Return the values of a type that fits into 64 bits as whole numbers; None for another type."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
