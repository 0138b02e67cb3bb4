"""The Delta log of a source as it is now: its state, its commits, and whether anything was committed since a look."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirror_assets.source.access import Access, Locate, Located, PlainAccess
from mirror_assets.source.actions import Actions, LoggedFile, Metadata, Protocol
from mirror_assets.source.batching import DataFile
from mirror_assets.source.column_statistics import ColumnStatistics, FileStatistics, column_statistics
from mirror_assets.source.commits import Commit, describe
from mirror_assets.source.errors import LogGap, SourceNotDelta
from mirror_assets.source.log_listing import TipMark
from mirror_assets.source.log_reader import LogReader
from mirror_assets.source.ranges import CommitTimes, increasing
from mirror_assets.source.schema import canonical
from mirror_assets.source.source_state import SourceState
from mirror_assets.source.storage_errors import translated

# Files of a log that stores list in one page.
_SHORT_LOG = 1000


class SourceLog:
    """The log of one source; every call reads anew.

    `state` and `files` go through deltalake, for it lists a log only from its last checkpoint on and reads that without
    Python: of 10,000 commits the newest version takes 17 ms, and 290 ms by TableLog. Everything else is LogReader's.

    Raises SourceNotDelta, SourceUnreadable, SourceUnsupported, CatalogManaged, NoColumns, AddressOfDatabricks
    (SettingError), SourceUnavailable (RetryError) and LogGap (RebuildError).
    """

    def __init__(
        self,
        uri: str,
        access: Access | None = None,
        locate: Locate | None = None,
    ) -> None:
        """Name the source, and the way to it. Nothing is read yet.

        `locate` asks a catalog where the table lies. It is asked before the newest version is read; whatever is read
        then, and Spark reads, is at that place, so that a plan and its slices are of one table.
        """
        self._locate = locate
        self._place = Located(uri, access or PlainAccess(uri)) if locate is None else None
        self._opened: tuple[Located, LogReader] | None = None

    @property
    def uri(self) -> str:
        """The address that the source was found at; asks its catalog the first time."""
        return self._where.uri

    @property
    def access(self) -> Access:
        """The way to the source."""
        return self._reader.access

    def state(self, version: int | None = None) -> SourceState:
        """Return the source at its newest version, or at `version`.

        Raises LogGap when a commit that is needed for it is missing.
        """
        if version is None:
            self._look_up()
        table = self._open(version)
        found, raw = table.version(), table.metadata()
        schema, partitions = canonical(table.schema().to_json()), tuple(raw.partition_columns)
        protocol = _protocol(table)
        files, size, stored = _sizes(table)
        return SourceState(
            uri=self.uri,
            version=found,
            timestamp_ms=self._time(found),
            metadata=Metadata(str(raw.id), schema, raw.configuration, partitions),
            protocol=protocol,
            files=files,
            bytes=size,
            rows=stored if "deletionVectors" not in protocol.features else self._live(found, stored),
            stored_rows=stored,
        )

    def files(self, version: int) -> tuple[DataFile, ...]:
        """Return the live files of the version, in order of their paths as the log has them. Raises LogGap."""
        actions = _add_actions(self._open(version), "path", "size_bytes", "num_records")
        return tuple(DataFile(*row.values()) for row in actions.sort_by("path").to_pylist())

    def column_statistics(self, state: SourceState) -> tuple[ColumnStatistics, ...]:
        """Return what the statistics of a state's files prove of its columns. Raises LogGap."""
        rows = _all_add_actions(self._open(state.version)).to_pylist()
        files = [_statistics(row) for row in rows]
        fields = state.schema.fields
        return tuple(column_statistics(field.name, field.physical_name or field.name, files) for field in fields)

    def has_commit(self, version: int) -> bool:
        """Whether the commit is in the log."""
        return self._reader.has_commit(version)

    def commits(self, first: int, last: int) -> tuple[Commit, ...]:
        """Return the commits [first, last]; reads their files only. Raises LogGap for the first that is missing."""
        return tuple(self._reader.each(self._commit, range(first, last + 1)))

    def lost_files(self, version: int, needed: Callable[[Actions], Iterable[LoggedFile]]) -> tuple[str, ...]:
        """Return the paths of those files of a commit that are `needed` and gone. Raises LogGap.

        Files of deletion vectors are not looked for.
        """
        return self._reader.files.lost(needed(self._reader.commit(version)))

    def earliest(self) -> int:
        """Return the first version from which every commit up to the newest is in the log."""
        return min(self._unbroken())

    def times(self, state: SourceState) -> CommitTimes:
        """Return when the commits from the earliest to the state's were made, by Delta's clock."""
        written = {version: time for version, time in self._unbroken().items() if version <= state.version}
        since = state.metadata.in_commit_since
        in_commit = None if since is None else partial(self._in_commit_time, since)
        return CommitTimes(min(written, default=state.version + 1), increasing(list(written.values())), in_commit)

    def tip_mark(self, version: int) -> TipMark | None:
        """Return the mark of the version if it is the newest, to compare with later; None if it is not."""
        return self._reader.files.log().tip_mark(version)

    def is_still_tip(self, mark: TipMark) -> bool:
        """Whether nothing was committed since the mark, and the table is the same one, without opening it.

        A log of few files is listed. Of a longer one two files are asked for, so that the cost does not grow with the
        log; a newer commit behind a missing one is overlooked then.
        """
        if self._look_up():
            return False
        if mark.log_files > _SHORT_LOG:
            return self._reader.files.is_tip(mark)
        found = self.tip_mark(mark.version)
        return found is not None and replace(found, log_files=mark.log_files) == mark

    def has_next(self, mark: TipMark) -> bool:
        """Whether the commit behind the mark is there: one request, which sees neither a gap nor another table."""
        return self._reader.files.commit(mark.version + 1) is not None

    @property
    def _where(self) -> Located:
        if self._place is None:
            self._look_up()
        place = self._place
        assert place is not None  # noqa: S101 it has just been looked up
        return place

    @property
    def _reader(self) -> LogReader:
        place = self._where
        if self._opened is None or self._opened[0] is not place:
            self._opened = (place, LogReader(place.uri, place.access))
        return self._opened[1]

    def _look_up(self) -> bool:
        """Ask the catalog where the table lies; return whether it is another place than before."""
        if self._locate is None:
            return False
        before, found = self._place, self._locate()
        if found != before:
            self._place = found
        return before is not None and found != before

    def _open(self, version: int | None) -> DeltaTable:
        try:
            with translated(self.uri):
                table = load_table(self.access)
                if version is not None and version != table.version():
                    self._go_to(table, version)
                return table
        except LogGap as gap:
            raise self._reader.why_absent(gap.version) from gap

    def _go_to(self, table: DeltaTable, version: int) -> None:
        """Load the version. Raises LogGap only where a commit is missing for it, whatever the library says."""
        try:
            table.load_as_version(version)
        except DeltaError as error:
            missing = self._reader.files.log().gap_behind_checkpoint(version)
            if missing is None:
                raise
            raise LogGap(self.uri, missing) from error

    def _time(self, version: int) -> int:
        time_ms = self._reader.commit_info(version).timestamp_ms
        return self._reader.files.modified_ms(version) if time_ms is None else time_ms

    def _live(self, version: int, stored: int | None) -> int | None:
        """Stored rows less those that deletion vectors hide, whose number only the checksum file has."""
        data = self._reader.files.checksum(version)
        hidden = json.loads(data).get("numDeletedRecordsOpt") if data else None
        return stored - hidden if stored is not None and isinstance(hidden, int) else None

    def _commit(self, version: int) -> Commit:
        actions, files = self._reader.commit(version), self._reader.files
        modified = files.modified_ms(version) if actions.info.timestamp_ms is None else actions.info.timestamp_ms
        return describe(version, actions, modified, files.rows_in_footer)

    def _unbroken(self) -> dict[int, int]:
        """The versions from which every commit up to the newest is there, and when their files were written."""
        unbroken = self._reader.files.log().unbroken()
        if not unbroken:
            raise SourceNotDelta(self.uri)
        return unbroken

    def _in_commit_time(self, since: int, version: int) -> int | None:
        return self._reader.commit_info(version).in_commit_ms if version >= since else None


def load_table(access: Access) -> DeltaTable:
    """Open the table at its newest version. Raises deltalake's errors."""
    return DeltaTable(access.uri, storage_options=dict(access.storage_options()))


def _protocol(table: DeltaTable) -> Protocol:
    raw = table.protocol()
    reading, writing = raw.reader_features or [], raw.writer_features or []
    return Protocol(raw.min_reader_version, raw.min_writer_version, frozenset([*reading, *writing]), frozenset(reading))


def _sizes(table: DeltaTable) -> tuple[int, int, int | None]:
    """Files, bytes, and rows in them where every file's statistics tell."""
    actions = _add_actions(table, "size_bytes", "num_records")
    size: int = pc.sum(actions["size_bytes"], min_count=0).as_py()
    rows: int = pc.sum(actions["num_records"], min_count=0).as_py()
    return actions.num_rows, size, rows if actions["num_records"].null_count == 0 else None


def _add_actions(table: DeltaTable, *columns: str) -> pa.Table:
    """Return these columns of the live files' actions; `pa.table` would import pandas, for a third of a second."""
    return _all_add_actions(table).select(columns)


def _all_add_actions(table: DeltaTable) -> pa.Table:
    return pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()


def _statistics(row: Mapping[str, Any]) -> FileStatistics:
    """Return a file's statistics; their parts are missing where no file has any."""
    nulls, least, most, partition = (row.get(name) or {} for name in ("null_count", "min", "max", "partition"))
    return FileStatistics(row["num_records"], nulls, least, most, partition)
