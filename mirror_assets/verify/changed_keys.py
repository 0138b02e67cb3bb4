"""Reads the keys of a slice's changes in this process: from the source's files, and from the staged parts.

Spark has encoded these rows. This is another reader, and a faster one while the rows are some million. It only reads
keys that land as they are stored; Spark reads all others, and again what this reader finds different.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirror_assets.markers import Marker
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan import RowKind, Scan, ScannedFile
from mirror_assets.source.schema import Projection, parse_schema
from mirror_assets.verify.key_hashes import Hashes, hash_keys
from mirror_assets.verify.order import CommitPlaces, CommitSums
from mirror_assets.verify.staged import StagedSlice
from mirror_assets.verify.uniqueness import MARKER_BITS, MOST_ROWS_HERE, key_rows

# Remote files wait for their store, and files of a disk for a processor.
_THREADS, _LOCAL_THREADS = 16, 4
_BATCH_ROWS = 1 << 17
# Rows that may be read for chosen ones among them, whatever the size of the slice.
_FEW_ROWS = 1_000_000
_CHANGE_TYPE, _NEW_TYPES = "_change_type", ("insert", "update_postimage")
_Flags = npt.NDArray[np.bool_]


class _OtherFormError(Exception):
    """A file has keys in another form than that in which they land."""


@dataclass(frozen=True)
class KeyReader:
    """Reads the sums of `ChangeReader`, without values; `feed_sums` is None where Spark has to read.

    `names` are the keys' names in the source's files, and `types` the types with which they land.
    """

    log: DeltaLog
    staged: StagedSlice
    scan: Scan
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    @classmethod
    def of(cls, log: DeltaLog, staged: StagedSlice, scan: Scan, projection: Projection) -> KeyReader | None:
        """Return the reader of a slice; None if it has to select or compute rows, or reads too many."""
        keys = staged.record.keys
        computed = {column.name.casefold() for column in projection.computed}
        is_mapped = scan.metadata.configuration.get("delta.columnMapping.mode", "none").lower() != "none"
        fields = [parse_schema(scan.metadata.schema_string).field(key) for key in keys]
        if (
            projection.where
            or scan.replacing
            or staged.record.markers.total > MOST_ROWS_HERE
            or any(field is None or field.name.casefold() in computed for field in fields)
            or sum(map(_rows_up_to_chosen, scan.files)) > max(_FEW_ROWS, staged.record.markers.total)
        ):
            return None
        with staged.open(staged.paths[0]) as file:
            types = tuple(file.schema_arrow.field(key).type for key in keys)
        named = ((field.physical_name if is_mapped else None) or field.name for field in fields if field)
        return cls(log, staged, scan, tuple(named), types)

    def feed_sums(self) -> dict[int, CommitSums] | None:
        """Return the sums of each commit that has rows in the feed, by version, in order."""
        sums = defaultdict[int, CommitSums](CommitSums)
        try:
            with ThreadPoolExecutor(_LOCAL_THREADS if self.log.files.is_local else _THREADS) as pool:
                for file, of_file in zip(self.scan.files, pool.map(self._of_file, self.scan.files), strict=True):
                    sums[file.version] += of_file
        except (_OtherFormError, OSError, pa.ArrowException):
            return None
        return {version: sums[version] for version in sorted(sums) if sums[version].rows}

    def part_sums(self, commits: Sequence[CommitPlaces]) -> dict[int, CommitSums]:
        """Return the sums of each commit that has rows in the parts, by version."""
        sums, ends, begin = defaultdict[int, CommitSums](CommitSums), np.array([one.end for one in commits]), 0
        for hashes, rows in key_rows(self.staged):
            markers, end = rows & MARKER_BITS, begin + len(rows)
            first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(ends, end, "left")
            for commit in commits[int(first) : int(last) + 1]:
                at = slice(max(commit.start - begin, 0), max(commit.end - begin, 0))
                sums[commit.version] += _sums(hashes[at], markers[at] != Marker.DELETE, markers[at] != Marker.INSERT)
            begin = end
        return {version: one for version, one in sums.items() if one.rows}

    def _of_file(self, file: ScannedFile) -> CommitSums:
        total = CommitSums()
        for hashes, is_new in self._read(file):
            total += _sums(hashes, is_new, ~is_new)
        return total

    def _read(self, file: ScannedFile) -> Iterator[tuple[Hashes, _Flags]]:
        """Yield the hashes of the keys of the rows that the file shows, and whether each row is new."""
        says, place = file.kind is RowKind.AS_ROWS_SAY, 0
        columns = [*self.names, *([_CHANGE_TYPE] if says else [])]
        chosen = np.sort(np.array(file.chosen.rows.to_array() if file.chosen else [], np.int64))
        are_read = file.chosen is not None and file.chosen.are_read
        with (
            self.log.files.open(file.path) as source,
            pq.ParquetFile(source, read_dictionary=columns[len(self.names) :]) as opened,
        ):
            for batch in opened.iter_batches(_BATCH_ROWS, columns=columns):
                if not set(columns) <= set(batch.schema.names) or any(column.null_count for column in batch.columns):
                    raise _OtherFormError
                keys = [batch.column(name) for name in self.names]
                if tuple(key.type for key in keys) != self.types:
                    raise _OtherFormError
                shown = np.full(len(batch), not are_read)
                shown[chosen[slice(*np.searchsorted(chosen, [place, place + len(batch)]))] - place] = are_read
                place += len(batch)
                named = pa.record_batch(keys, list(self.staged.record.keys))
                is_new = (
                    _is_new(batch.column(_CHANGE_TYPE)) if says else np.full(len(batch), file.kind is RowKind.INSERT)
                )
                yield hash_keys(named, self.staged.record.keys)[shown], is_new[shown]
                if are_read and not (chosen >= place).any():
                    break


def _rows_up_to_chosen(file: ScannedFile) -> int:
    """Return the number of rows up to the last one that is read, in a file of which only chosen ones are."""
    return file.chosen.rows.max() + 1 if file.chosen and file.chosen.are_read and file.chosen.rows else 0


def _is_new(types: pa.Array) -> _Flags:
    """Return for each of these change types whether it is that of a new row; they are few."""
    encoded = types if pa.types.is_dictionary(types.type) else types.dictionary_encode()
    flags = pc.is_in(encoded.dictionary, value_set=pa.array(_NEW_TYPES)).to_numpy(zero_copy_only=False)
    found: _Flags = flags[encoded.indices.to_numpy()]
    return found


def _sums(hashes: Hashes, is_new: _Flags, is_old: _Flags) -> CommitSums:
    new, old = hashes[is_new], hashes[is_old]
    return CommitSums(len(new), len(old), (int(new.sum()), int(old.sum())))
