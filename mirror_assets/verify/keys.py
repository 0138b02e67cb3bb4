"""Keys as numbers: equal for equal keys only, and small enough to be sorted together with their places."""

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

# A code below this has room for 22 bits beside it: of as many rows as a share has.
_MOST = 1 << 41


@dataclass(frozen=True)
class Codes:
    """A number from 0 to `below` for each row."""

    numbers: Numbers
    below: int

    def and_(self, other: Codes) -> Codes:
        """A number for each pair. Both are below 2^41, and one of them is at most the number of rows, or made so."""
        one = self if self.below * other.below < 1 << 62 else self.dense()
        pairs = Codes(one.numbers * other.below + other.numbers, one.below * other.below)
        return pairs if pairs.below <= _MOST else pairs.dense()

    def dense(self) -> Codes:
        """The same keys told apart by as few numbers as there are keys."""
        found, numbers = np.unique(self.numbers, return_inverse=True)
        return Codes(numbers.astype(np.int64), len(found))

    def in_order(self) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """The rows' indices by key, those of a key in their order, and whether each has the key of the one before."""
        width = max(1, (len(self.numbers) - 1).bit_length())
        codes = self if (self.below - 1).bit_length() + width < 63 else self.dense()
        places = np.arange(len(self.numbers), dtype=np.int64)
        both = np.sort((codes.numbers << width) | places)
        keys = both >> width
        return both & ((1 << width) - 1), np.concatenate([np.zeros(1, bool), keys[1:] == keys[:-1]])


def codes_of(rows: pa.Table, keys: Sequence[str]) -> Codes:
    """A code for each row, of a table that has rows. Keys are never NULL, floating-point or nested by then."""
    first, *others = (_of_column(rows[key].combine_chunks()) for key in keys)
    for other in others:
        first = first.and_(other)
    return first


def whole_numbers(column: pa.Array) -> Numbers | None:
    """The values of a type that fits into 64 bits, as whole numbers; None of another type."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _of_column(column: pa.Array) -> Codes:
    numbers = whole_numbers(column)
    if numbers is not None and (below := int(numbers.max()) - (least := int(numbers.min())) + 1) <= _MOST:
        return Codes(numbers - least, below)
    encoded = pc.dictionary_encode(column)
    return Codes(np.asarray(encoded.indices.to_numpy()).astype(np.int64), len(encoded.dictionary))


MARKER, PLACE, VERSION = "marker", "place", "version"
# Rows of a share: with a key of one number, some 30 bytes each.
SHARE_ROWS = 2_000_000
_BATCH_ROWS = 500_000
_Numbers = npt.NDArray[np.uint64]
# Odd, and its bits are spread: a product with it depends on every bit of a key (Knuth's multiplicative hashing).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_UPPER_HALF = np.uint64(32)
_TAIL = 8


def aliases(record: SliceRecord) -> list[str]:
    """Names for the key columns that no other column here has, whatever the source calls them."""
    return [f"key{index}" for index in range(len(record.keys))]


def keyed_rows(staged: StagedSlice, share_rows: int = SHARE_ROWS) -> Iterator[pa.Table]:
    """Tables of about `share_rows` rows with the keys, as `key0` …, of every row; no table is empty.

    There is none where the slice has no keys. `place` is the number of rows before a row in all parts, in which order
    they come; `version` the commit it is of, where its part holds no other; `marker` is there where the parts have
    markers. A slice of several shares goes through files in the machine's folder for temporary ones.
    """
    rows = staged.record.markers.total
    if not staged.record.keys or not rows:
        return
    parts = zip(staged.record.parts, staged.rows_before.values(), strict=True)
    tables = (table for part, before in parts for table in _columns(staged, part, before))
    shares = -(-rows // share_rows)
    if shares == 1:
        yield pa.concat_tables(tables)
        return
    with TemporaryDirectory(prefix="mirror-assets-keys-") as folder:
        files = [Path(folder) / f"{share}.arrow" for share in range(shares)]
        _share_out(tables, aliases(staged.record), files)
        yield from filter(len, map(_read_share, files))


def share_of(rows: pa.Table, keys: Sequence[str], shares: int) -> npt.NDArray[np.intp]:
    """The share that each row goes to, from 0: the same for the same key, in whatever table it is."""
    mixed = np.zeros(len(rows), np.uint64)
    for key in keys:
        mixed = (mixed ^ _numbers(rows[key].combine_chunks())) * _SPREAD
        mixed ^= mixed >> _UPPER_HALF
    return np.asarray(mixed % np.uint64(shares), np.intp)


def _share_out(tables: Iterable[pa.Table], keys: Sequence[str], files: Sequence[Path]) -> None:
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


def _numbers(column: pa.Array) -> _Numbers:
    """A number for each value: of fixed-width values all bits, of text its length and its last bytes."""
    numbers = whole_numbers(column)
    if numbers is not None:
        return numbers.view(np.uint64)
    return _of_text(column.cast(pa.large_string()) if pa.types.is_decimal(column.type) else column)


def _of_text(column: pa.Array) -> _Numbers:
    text = column.cast(pa.large_binary())
    numbers = np.asarray(pc.binary_length(text).to_numpy()).astype(np.uint64)
    _, bounds, data = text.buffers()
    offsets = np.frombuffer(bounds, np.int64)[text.offset : text.offset + len(text) + 1]
    found = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    for back in range(1, _TAIL + 1):
        at = offsets[1:] - back
        is_there = at >= offsets[:-1]
        numbers *= _SPREAD
        numbers[is_there] += found[at[is_there]]
    return numbers


def _columns(staged: StagedSlice, part: StagedPart, place: int) -> Iterator[pa.Table]:
    """The part's rows, from `place` on, as `keyed_rows` has them; some at a time: a part may have any number."""
    names = _names(staged.record)
    with staged.open(staged.path(part.name)) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(names)):
            table = pa.table(batch).select(list(names)).rename_columns(list(names.values()))
            places = pa.array(np.arange(place, place + len(table), dtype=np.int64))
            versions = pa.repeat(pa.scalar(part.version, pa.int64()), len(table))
            yield table.append_column(PLACE, places).append_column(VERSION, versions)
            place += len(table)


def _names(record: SliceRecord) -> Mapping[str, str]:
    names = dict(zip(record.keys, aliases(record), strict=True))
    return names | {ROW_MARKER: MARKER} if record.kind.has_markers else names
