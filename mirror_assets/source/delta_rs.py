"""Reads a version of a table with deltalake (delta-rs), without replaying its log in Python."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirror_assets.lakes.access import Access
from mirror_assets.lakes.errors import SOURCE_UNREADABLE
from mirror_assets.source.actions import Actions, Metadata, Protocol
from mirror_assets.source.commit_reader import CommitReader
from mirror_assets.source.errors import LogGap
from mirror_assets.source.log_paths import spelled
from mirror_assets.source.read_errors import translated
from mirror_assets.source.schema import canonical

# As Python's text, paths take twice the memory of their column.
_PATHS_AT_ONCE = 1 << 16


def load_table(access: Access, version: int | None = None) -> DeltaTable:
    """Open the table at a version, or at its newest one. Raises deltalake's errors."""
    try:
        return DeltaTable(access.uri, version=version, storage_options=dict(access.storage_options()))
    except ValueError as error:  # where values of the log don't fit their columns
        raise DeltaError(str(error)) from error


def newest_metadata(access: Access) -> Metadata:
    """Return the metadata of the table at its newest version, without reading its list of files.

    Raises SourceNotDelta, SourceUnreadable and other SettingErrors, and SOURCE_UNAVAILABLE (RetryError).
    """
    try:
        with translated(access.uri):
            return metadata_of(load_table(access))
    except (LogGap, FileNotFoundError) as gap:
        raise SOURCE_UNREADABLE(uri=access.uri, why=str(gap)) from gap


def metadata_of(table: DeltaTable) -> Metadata:
    """Return the metadata of the opened version."""
    raw = table.metadata()
    schema = canonical(table.schema().to_json())
    return Metadata(str(raw.id), schema, raw.configuration, tuple(raw.partition_columns))


def protocol_of(table: DeltaTable) -> Protocol:
    """Return the protocol of the opened version."""
    raw = table.protocol()
    reading, writing = raw.reader_features or [], raw.writer_features or []
    return Protocol(raw.min_reader_version, raw.min_writer_version, frozenset([*reading, *writing]), frozenset(reading))


def size_of(table: DeltaTable) -> tuple[int, int, int | None]:
    """Return the number of live files of the opened version, their bytes, and their stored rows, hidden ones included.

    The rows are None unless the statistics of every file have a row count.
    """
    adds = add_actions(table)
    size: int = pc.sum(adds["size_bytes"], min_count=0).as_py()
    rows: int = pc.sum(adds["num_records"], min_count=0).as_py()
    return adds.num_rows, size, rows if adds["num_records"].null_count == 0 else None


def live_paths(table: DeltaTable, commits: CommitReader) -> Iterator[str]:
    """Yield the paths of the live files of the opened version, in the spelling by which actions name them.

    Some may come twice. delta-rs takes files for removed that a commit since the checkpoint removes and adds again.
    """
    steps = commits.files.log().steps(table.version()) or []
    first = max((step.last + 1 for step in steps if step.is_checkpoint), default=0)

    def read(version: int) -> Actions:
        data = commits.files.commit(version)
        # Commits that only add files can be large.
        return commits.parsed(version, data) if data is not None and b'"remove"' in data else Actions()

    again = set[str]()
    for actions in commits.files.each(read, range(first, table.version() + 1)):
        removed = {file.key for file in actions.removed}
        again = (again - removed) | (removed & {file.key for file in actions.added})
    yield from again
    for batch in add_actions(table).select(["path"]).to_batches(_PATHS_AT_ONCE):
        yield from map(spelled, batch.column(0).to_pylist())


def live_files(access: Access, version: int) -> tuple[pa.Table, Protocol]:
    """Return `path`, spelled as in the log, and `num_records` of the live files of a version, and its protocol.

    It opens the version directly, not the newest one first. Raises deltalake's errors.
    """
    table = load_table(access, version)
    return add_actions(table).select(("path", "num_records")), protocol_of(table)


def add_actions(table: DeltaTable) -> pa.Table:
    """Return the add actions of the live files; `pa.table` would import pandas, which takes a third of a second."""
    return pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()
