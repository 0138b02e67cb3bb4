"""Staged parts: described after Spark has written them, and read again for publishing."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirror_assets.landing.errors import SLICE_NOT_STAGED
from mirror_assets.landing.format import CheckVerdict, MarkerCounts, SliceKind, SliceRecord, StagedPart, encode, is_next
from mirror_assets.landing.names import AttemptFolder, SliceKey, TableName, is_part_folder, part_place
from mirror_assets.landing.recover import found_parts, list_attempts
from mirror_assets.landing.state import CommitPosition
from mirror_assets.landing.steps import drive, read_control_file, write_control_file
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.zones import FileInfo, LocalStore, Store

_CHUNK = 4 << 20
_UPLOADS = 4
_HADOOP_CHECKSUM = ".crc"


def take_parts(store: Store, folder: AttemptFolder) -> tuple[StagedPart, ...]:
    """Describe the parts that Spark wrote into the folder, in order.

    Skips parts without rows, except when all are: Spark writes a file for its first partition even then.
    """
    top = store.list(folder.parts)
    below = [info.path for info in top if info.is_folder and is_part_folder(info.name)]
    written = [*top, *(info for place in below for info in store.list(place))]
    for info in written:
        if info.name.endswith(_HADOOP_CHECKSUM):
            store.delete(info.path)  # the SHA-256 replaces it
    files = [info for info in written if part_place(_part_name(folder, info))]
    parts = tuple(inspect_part(store, info, _part_name(folder, info)) for info in files)
    return tuple(part for part in parts if part.markers.total) or parts[:1]


def inspect_part(store: Store, listed: FileInfo, name: str) -> StagedPart:
    """Make the part durable and describe it, with its SHA-256 if it is on this machine."""
    info = store.fsync(listed)
    digest = sha256(store, info.path) if store.local_path(info.path) else None
    markers = count_markers(store, info.path)
    return StagedPart(name=name, etag=info.etag, bytes=info.size, sha256=digest, markers=markers)


def _part_name(folder: AttemptFolder, info: FileInfo) -> str:
    return info.path.removeprefix(f"{folder.parts}/")


def upload_parts(
    local_staging: LocalStore, store: Store, folder: AttemptFolder, parts: Sequence[StagedPart]
) -> tuple[StagedPart, ...]:
    """Upload the parts from a local folder, four at a time, and return them with their new ETags."""

    def upload(part: StagedPart) -> StagedPart:
        path = folder.part(part.name)
        info = store.upload(local_staging.local_path(path), path)
        return part.model_copy(update={"etag": info.etag})

    with ThreadPoolExecutor(_UPLOADS) as pool:
        return tuple(pool.map(upload, parts))


def fetch_parts(store: Store, local_staging: LocalStore, record: SliceRecord) -> None:
    """Download the parts that are missing or different in the local folder. Raises PathMissing."""
    for part in record.parts:
        path = record.folder.part(part.name)
        if local_staging.head(path) is None or sha256(local_staging, path) != part.sha256:
            copy = local_staging.local_path(path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            with store.open(path) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK)


def sha256(store: Store, path: str) -> str:
    """Return the SHA-256 of the file, in hexadecimal."""
    digest = hashlib.sha256()
    with store.open(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def count_markers(store: Store, path: str) -> MarkerCounts:
    """Count rows by marker, from the marker column alone; without one, all rows are inserts."""
    with store.open(path) as source, pq.ParquetFile(source) as file:
        if ROW_MARKER not in file.schema_arrow.names:
            return MarkerCounts(inserts=file.metadata.num_rows)
        markers = file.read([ROW_MARKER]).column(ROW_MARKER)
    counts = {pair["values"]: pair["counts"] for pair in pc.value_counts(markers.combine_chunks()).to_pylist()}
    return MarkerCounts(
        inserts=counts.get(Marker.INSERT, 0),
        updates=counts.get(Marker.UPDATE, 0),
        deletes=counts.get(Marker.DELETE, 0),
        upserts=counts.get(Marker.UPSERT, 0),
    )


def write_record(store: Store, record: SliceRecord) -> None:
    """Write `slice.json`, which makes the slice complete; its parts must be staged."""
    store.create(record.folder.record, encode(record))


def staged_folders(store: Store, table: TableName, generation: int | None = None) -> tuple[AttemptFolder, ...]:
    """List the staging folders of the table, or of one generation, complete or not, in one request.

    They are in the order of generation and attempt.
    """
    found = (one for one in drive(list_attempts(table), store) if generation in (None, one.generation))
    return tuple(sorted(found, key=lambda one: (one.generation, one.attempt)))


def staged_records(store: Store, folders: Iterable[AttemptFolder]) -> tuple[SliceRecord, ...]:
    """Read the records of those folders that are complete. Raises ManifestCorrupt."""
    records = (drive(read_control_file(SliceRecord, folder.record), store).record for folder in folders)
    return tuple(record for record in records if record is not None)


def staged_slices(store: Store, table: TableName, generation: int | None = None) -> tuple[SliceRecord, ...]:
    """Read the complete staged slices of the table, or of one generation, by generation and attempt.

    The generation is in the folder's name, so slices of others are not read.
    """
    return staged_records(store, staged_folders(store, table, generation))


def fitting_slices(
    store: Store, attempts: Iterable[AttemptFolder], table: TableName, key: SliceKey, position: CommitPosition
) -> tuple[SliceRecord, ...]:
    """Return those of the attempts at the slice up to `key.last` that can be committed next.

    Raises SLICE_NOT_STAGED if none can.
    """
    staged = staged_records(store, (one for one in attempts if one.generation == position.generation))
    fitting = tuple(record for record in staged if record.slice.last == key.last and stands_on(record, position))
    if not fitting:
        raise SLICE_NOT_STAGED(table=str(table), key=str(key))
    return fitting


def best_attempt(records: Iterable[SliceRecord]) -> SliceRecord:
    """Return the best attempt at one generation: passed before unchecked before refused, then the newest.

    The verdicts come first: an unchecked attempt must not displace one that may land.
    """
    return max(records, key=lambda record: (not is_refused(record), bool(record.verdicts), record.attempt))


def clear_refused(store: Store, attempts: Sequence[AttemptFolder]) -> str:
    """Delete those of a generation's attempts that a check has refused: they may never be published.

    Returns the newest attempt, complete or not; an empty text if there was none.
    """
    for record in staged_records(store, attempts):
        if is_refused(record):
            store.delete_tree(record.folder.path)
    return max((folder.attempt for folder in attempts), default="")


def is_refused(record: SliceRecord) -> bool:
    """Whether a check has refused the slice."""
    return not all(verdict.passed for verdict in record.verdicts)


def is_whole(store: Store, record: SliceRecord) -> bool:
    """Whether all parts exist with the ETags that they were staged with."""
    found = drive(found_parts(record), store)
    return all(found.get(record.folder.part(part.name)) == part.etag for part in record.parts)


def stands_on(record: SliceRecord, position: CommitPosition) -> bool:
    """Whether the slice is staged for this position; the first slice of an epoch sets its incarnation.

    Not a repair: only the run that has compared mirror and source lands it.
    """
    return (
        record.kind is not SliceKind.REPAIR
        and record.generation == position.generation
        and record.first_number == position.first_number
        and record.epoch == position.epoch
        and (position.generation == 1 or record.incarnation == position.incarnation)
        and is_next(record.slice, record.chunk, position.loading)
    )


def add_verdicts(store: Store, record: SliceRecord, verdicts: Sequence[CheckVerdict]) -> SliceRecord:
    """Add the verdicts to the record, in place of older ones by the same checks. Raises SLICE_NOT_STAGED."""
    path = record.folder.record
    given = {verdict.check for verdict in verdicts}
    # Until no other check adds its verdict at the same time.
    while (current := (found := drive(read_control_file(SliceRecord, path), store)).record) is not None:
        others = tuple(known for known in current.verdicts if known.check not in given)
        updated = current.model_copy(update={"verdicts": (*others, *verdicts)})
        if drive(write_control_file(found, updated), store):
            return updated
    raise SLICE_NOT_STAGED(table=record.table, key=str(record.slice))
