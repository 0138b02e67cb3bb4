"""The keys of all rows in a slice's parts, in shares that fit into memory: the rows of one key are in one share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.landing.format import SliceRecord, StagedPart
from mirror_assets.markers import ROW_MARKER
from mirror_assets.verify.key_codes import whole_numbers
from mirror_assets.verify.staged import StagedSlice

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
