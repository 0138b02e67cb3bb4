"""The Delta log of a source, read without a JVM: its state at a version, its commits, where they begin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirror_assets.errors import MirrorError
from mirror_assets.source.actions import (
    CommitFile,
    FileAction,
    Metadata,
    Protocol,
    commit_time,
    in_commit_time,
    parse_commit,
)
from mirror_assets.source.batching import DataFile
from mirror_assets.source.commits import Commit, describe
from mirror_assets.source.errors import LogGap, SourceNotDelta, SourceUnavailable, SourceUnreadable
from mirror_assets.source.files import SourceFiles, TipMark, commit_path
from mirror_assets.source.listing import missing_commit
from mirror_assets.source.ranges import CommitTimes, increasing
from mirror_assets.source.schema import canonical
from mirror_assets.source.state import SourceState
from mirror_assets.source.storage_errors import translated

__all__ = ["SourceLog", "SourceState"]

# Commit files are small: waiting for a remote store is all there is to it.
_THREADS = 16
# Files of a log that stores list in one page.
_SHORT_LOG = 1000


class SourceLog:
    """The log of one source; every call reads anew.

    Raises SourceNotDelta, SourceUnreadable, SourceUnsupported, CatalogManaged, NoColumns, AddressOfDatabricks
    (SettingError), SourceUnavailable (RetryError) and LogGap (RebuildError).
    """

    def __init__(
        self,
        uri: str,
        storage_options: Mapping[str, str] | None = None,
        load: Callable[[], DeltaTable] | None = None,
    ) -> None:
        """Name the source; `storage_options` are deltalake's, `load` opens the newest version. Nothing is read yet."""
        self.uri = uri
        self._options = dict(storage_options or {})
        self._load = load or (lambda: DeltaTable(uri, storage_options=self._options))

    @cached_property
    def _files(self) -> SourceFiles:
        return SourceFiles(self.uri, self._options)

    @property
    def storage_options(self) -> Mapping[str, str]:
        """What deltalake opens it with."""
        return self._options

    def has_commit(self, version: int) -> bool:
        """Whether the commit is in the log. Raises SourceNotDelta, and what keeps it from being read."""
        try:
            self._data(version)
        except LogGap:
            return False
        return True

    def state(self, version: int | None = None) -> SourceState:
        """The source at its newest version, or at `version`. Raises LogGap when commits that it takes are missing."""
        table = self._open(version)
        found, raw = table.version(), table.metadata()
        protocol = _protocol(table)
        files, size, stored = _sizes(table)
        return SourceState(
            uri=self.uri,
            version=found,
            timestamp_ms=self._time(found),
            metadata=Metadata(
                str(raw.id), canonical(table.schema().to_json()), raw.configuration, tuple(raw.partition_columns)
            ),
            protocol=protocol,
            files=files,
            bytes=size,
            rows=stored if "deletionVectors" not in protocol.features else self._live(found, stored),
            stored_rows=stored,
        )

    def commits(self, first: int, last: int) -> tuple[Commit, ...]:
        """The commits of [first, last]; reads their files only. Raises LogGap for the first that is missing."""
        versions = range(first, last + 1)
        if self._files.is_local:  # nothing to wait for: threads take four times as long
            return tuple(map(self._commit, versions))
        with ThreadPoolExecutor(_THREADS) as pool:
            try:
                return tuple(pool.map(self._commit, versions))
            except MirrorError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def lost_files(self, version: int, needed: Callable[[CommitFile], Sequence[FileAction]]) -> tuple[str, ...]:
        """Paths of those files of a commit that are needed and gone. Raises LogGap.

        Files of deletion vectors are not looked for: the log names them in another way.
        """
        return self._files.lost(needed(self._parsed(version)))

    def files(self, version: int) -> tuple[DataFile, ...]:
        """The live files of the version, in order of their paths as the log has them. Raises LogGap."""
        actions = pa.table(self._open(version).get_add_actions()).select(["path", "size_bytes", "num_records"])
        return tuple(DataFile(*row.values()) for row in actions.sort_by("path").to_pylist())

    def earliest(self) -> int:
        """The first version from which every commit up to the newest is in the log. Raises SourceNotDelta."""
        return min(self._unbroken())

    def tip_mark(self, version: int) -> TipMark | None:
        """The mark of the version if it is the newest: what `is_still_tip` compares with later; None if it is not."""
        return self._files.tip_mark(version)

    def is_still_tip(self, mark: TipMark) -> bool:
        """Whether nothing was committed since, and the table is the same one, without opening it.

        By one listing of the log; where that had many files, by asking for two of them, which costs the same whatever
        the log's length: a newer commit behind a hole is overlooked then.
        """
        if mark.log_files > _SHORT_LOG:
            return self._files.is_tip(mark)
        found = self._files.tip_mark(mark.version)
        return found is not None and replace(found, log_files=mark.log_files) == mark

    def times(self, state: SourceState) -> CommitTimes:
        """When the commits from the earliest to the state's were made. Raises SourceNotDelta."""
        written = {version: time for version, time in self._unbroken().items() if version <= state.version}
        since = state.metadata.in_commit_since
        in_commit = None if since is None else partial(self._in_commit_time, since)
        return CommitTimes(min(written, default=state.version + 1), increasing(list(written.values())), in_commit)

    def _unbroken(self) -> dict[int, int]:
        """The versions from which every commit up to the newest is there, and when their files were written."""
        files = self._files.commit_files()
        if not files:
            raise SourceNotDelta(self.uri)
        holes = [after for before, after in pairwise(files) if after != before + 1]
        return {version: time for version, time in files.items() if not holes or version >= holes[-1]}

    def _in_commit_time(self, since: int, version: int) -> int | None:
        return in_commit_time(self._data(version)) if version >= since else None

    def _open(self, version: int | None) -> DeltaTable:
        try:
            with translated(self.uri):
                table = self._load()
                if version is not None and version != table.version():
                    self._go_to(table, version)
                return table
        except LogGap as gap:
            raise self._absent(gap.version) from gap

    def _go_to(self, table: DeltaTable, version: int) -> None:
        """Load the version. Raises LogGap only where a commit is missing for it, whatever the library says."""
        try:
            table.load_as_version(version)
        except DeltaError as error:
            missing = missing_commit(self._files.log_names(), version)
            if missing is None:
                raise
            raise LogGap(self.uri, missing) from error

    def _absent(self, version: int) -> MirrorError:
        """What it means that a commit was not found: it is missing only from a log that is there."""
        if not self._files.log_names():
            return SourceNotDelta(self.uri)
        state = self._files.state_of(commit_path(version))
        if state.is_gone:
            return LogGap(self.uri, version)
        if state.hindrance is not None:
            return SourceUnreadable(self.uri, state.hindrance)
        return SourceUnavailable(self.uri, f"commit {version} is in its log, and could not be read a moment before")

    def _commit(self, version: int) -> Commit:
        file = self._parsed(version)
        modified = self._files.modified_ms(version) if file.timestamp_ms is None else file.timestamp_ms
        return describe(file, modified, self._files.rows_in_footer)

    def _parsed(self, version: int) -> CommitFile:
        try:
            return parse_commit(version, self._data(version))
        except (ValueError, KeyError, TypeError) as error:
            raise SourceUnreadable(self.uri, f"commit {version} is not what Delta writes ({error!r})") from error

    def _data(self, version: int) -> bytes:
        data = self._files.commit(version)
        if data is None:
            raise self._absent(version)
        return data

    def _time(self, version: int) -> int:
        told = commit_time(self._data(version))
        return self._files.modified_ms(version) if told is None else told

    def _live(self, version: int, stored: int | None) -> int | None:
        """Stored rows less those that deletion vectors hide, which only the checksum file tells."""
        data = self._files.checksum(version)
        hidden = json.loads(data).get("numDeletedRecordsOpt") if data else None
        return stored - hidden if stored is not None and isinstance(hidden, int) else None


def _protocol(table: DeltaTable) -> Protocol:
    raw = table.protocol()
    reading, writing = raw.reader_features or [], raw.writer_features or []
    return Protocol(raw.min_reader_version, raw.min_writer_version, frozenset([*reading, *writing]), frozenset(reading))


def _sizes(table: DeltaTable) -> tuple[int, int, int | None]:
    """Files, bytes, and rows in them where every file's statistics tell."""
    actions = pa.table(table.get_add_actions()).select(["size_bytes", "num_records"])
    size: int = pc.sum(actions["size_bytes"], min_count=0).as_py()
    rows: int = pc.sum(actions["num_records"], min_count=0).as_py()
    return actions.num_rows, size, rows if actions["num_records"].null_count == 0 else None
