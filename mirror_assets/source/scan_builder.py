"""Makes scans from the log: of a version, of the changes of commits, of the rows that differ between two versions."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyroaring import BitMap64

from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE
from mirror_assets.source.actions import ChangeFile, Metadata, Protocol, Vector
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.deletion_vectors import read_vectors
from mirror_assets.source.errors import CHANGE_FILE_INCOMPLETE, LogGap
from mirror_assets.source.file_states import FileState, FileStates, Transition, partition_names
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import LivePaths, physical_partitions, require_readable, with_physical_names
from mirror_assets.source.scan import ChosenRows, DifferingScans, RowKind, Scan, ScannedFile
from mirror_assets.source.table_features import require_readable_columns


@dataclass(frozen=True)
class VersionPart:
    """The files `first` to `end` - 1 of a version, in order of their paths; all files without `end`.

    `files` is the number of all files of the version, if it is known; `table_id` the id of the table.
    """

    first: int = 0
    end: int | None = None
    files: int | None = None
    table_id: str | None = None


def scan_version(log: DeltaLog, version: int, part: VersionPart = VersionPart()) -> Scan:
    """Return the scan of the rows of a version, or of a part of its files.

    Raises LogGap, and SOURCE_UNAVAILABLE if the version is not the one that the part was planned for.
    """
    fresh = log.reopened()
    wanted = None if part.end is None else _identities(fresh, version, part)
    snapshot = next(fresh.snapshots([version], None if wanted is None else {path for path, _ in wanted}))
    _require_same_table(log, version, snapshot.metadata.table_id, part.table_id)
    chosen = [file for file in snapshot.files if wanted is None or file.identity in wanted]
    assert wanted is None or len(chosen) == len(wanted)  # noqa: S101 read from the same files
    files = with_physical_names(chosen, snapshot.metadata)
    made = _Builder(fresh, snapshot.metadata)
    added = [Transition(file.path, None, file, data_change=True) for file in files]
    return Scan(log.uri, snapshot.metadata, tuple(made.files(added, version, made.vectors(added))))


def scan_changes(
    log: DeltaLog, commits: CommitRange, *, by_feed: bool = True, times_ms: Mapping[int, int] | None = None
) -> Scan:
    """Return the scan of the change rows of commits, in the schema of the last one.

    `by_feed`: a commit with change files is read from these, and all rows have the feed's columns; else all are read
    from the data files that they add and remove. A commit that only rewrites rows has none. Raises LogGap, and
    SourceUnreadable.
    """
    history = _History(log, commits)
    found: list[tuple[int, Sequence[Transition | ChangeFile]]] = []
    for version, actions in history.commits:
        moved = [one for one in history.states.apply(actions) if one.data_change and not one.is_unchanged]
        found.append((version, actions.change_files if by_feed and actions.change_files else moved))
    made = _Builder(log, history.metadata)
    vectors = made.vectors(one for _, files in found for one in files)
    scanned = [file for version, files in found for file in made.files(files, version, vectors)]
    history.remember()
    return Scan(log.uri, history.metadata, tuple(scanned), feed=by_feed, times_ms=times_ms or {})


def scan_differences(log: DeltaLog, commits: CommitRange) -> DifferingScans:
    """Return the scans of the rows that differ before and after these commits, by the files that differ.

    They have the live rows of files that the other version lacks, and of files that both have with different deletion
    vectors, the rows that only one of both shows. Raises LogGap, and SourceUnreadable.
    """
    history, before, last = _History(log, commits, needs_base=True), commits.first - 1, commits.last
    for _, actions in history.commits:
        for _transition in history.states.apply(actions):
            pass
    changed, base = list(history.states.changed()), history.base
    assert base is not None  # noqa: S101 needed above
    old, new = _Builder(log, base.metadata), _Builder(log, history.metadata)
    vectors = new.vectors(changed)
    gone, come = (
        Scan(log.uri, made.metadata, tuple(file for one in changed for file in made.rows(one, at, vectors, [kind])))
        for made, at, kind in ((old, before, RowKind.DELETE), (new, last, RowKind.INSERT))
    )
    history.remember()
    return DifferingScans(gone, come, before, last)


def _identities(log: DeltaLog, version: int, part: VersionPart) -> frozenset[tuple[str, str]]:
    """Return the identities of a part's files: only these become objects. Raises SOURCE_UNAVAILABLE, and LogGap."""
    live = log.live_file_columns(version)
    if part.files not in (None, len(live)):
        why = f"version {version} had {part.files} files, and has {len(live)} now"
        raise SOURCE_UNAVAILABLE(uri=log.uri, why=why, next_step=_PLAN_AGAIN)
    return live.identities(part.first, len(live) if part.end is None else part.end)


_PLAN_AGAIN = "run again: the next plan starts from the table that is there now."


def _require_same_table(log: DeltaLog, version: int, found: str, wanted: str | None) -> None:
    """Raise SOURCE_UNAVAILABLE if the version is not of the table with the wanted id."""
    if wanted not in (None, found):
        raise SOURCE_UNAVAILABLE(
            uri=log.uri, why=f"version {version} is of another table now (id {found})", next_step=_PLAN_AGAIN
        )


class _History:
    """Commits to read, and the states of their files."""

    def __init__(self, log: DeltaLog, commits: CommitRange, *, needs_base: bool = False) -> None:
        """Read the commits, and the live files before them, which may be missing unless `needs_base`. Raises LogGap."""
        self._log, self._range = log, commits
        self.commits = log.read_actions(commits.first, commits.last, commits.digests)
        self.states = self._states(needs_base=needs_base)
        base = self.states.base
        metadata = [actions.metadata for _, actions in self.commits if actions.metadata]
        protocols = [actions.protocol for _, actions in self.commits if actions.protocol]
        for protocol in (*([base.protocol] if base else []), *protocols):
            require_readable(log.uri, protocol, is_managed=log.is_managed)
        self.metadata = metadata[-1] if metadata else self.states.metadata
        require_readable_columns(log.uri, self.metadata)
        self._protocol: Protocol | None = protocols[-1] if protocols else base.protocol if base else None
        _require_same_table(log, commits.last, self.metadata.table_id, commits.table_id)

    @property
    def base(self) -> LivePaths | None:
        """The live files before the commits, or None if the log can't reconstruct that version."""
        return self.states.base

    def remember(self) -> None:
        """Keep the live files after the last commit for the next scan."""
        if self.base is not None and self._protocol is not None:
            live = [path for path, state in self.states.now.items() if state is not None]
            gone = [path for path, state in self.states.now.items() if state is None]
            self._log.keep_live_paths(self.base.after(self._range.last, self.metadata, self._protocol, live, gone))

    def _states(self, *, needs_base: bool) -> FileStates:
        if self._range.first == 0:
            first = self.commits[0][1]
            if first.metadata is None or first.protocol is None:
                raise SOURCE_UNREADABLE(uri=self._log.uri, why="commit 0 has no metaData or no protocol")
            return FileStates(LivePaths.of(-1, first.metadata, first.protocol, []), first.metadata, dict, self._log.uri)
        try:
            return FileStates.after(self._log, self._range.first - 1, self._range.table_id, self.commits)
        except LogGap:
            if needs_base:
                raise
            return FileStates(None, self._log.state(self._range.last).metadata, dict, self._log.uri)


@dataclass(frozen=True)
class _Builder:
    """Makes the files of a scan whose rows have the schema of `metadata`."""

    log: DeltaLog
    metadata: Metadata

    def vectors(self, found: Iterable[Transition | ChangeFile]) -> Mapping[str, BitMap64]:
        """Read the deletion vectors of these files."""
        states = (state for one in found if isinstance(one, Transition) for state in (one.before, one.after) if state)
        wanted: list[Vector] = [state.vector for state in states if state.vector]
        return read_vectors(self.log.files, self.log.uri, wanted) if wanted else {}

    def files(
        self, found: Sequence[Transition | ChangeFile], version: int, vectors: Mapping[str, BitMap64]
    ) -> Iterator[ScannedFile]:
        """Yield what to read of these files for a commit."""
        for one in found:
            if isinstance(one, ChangeFile):
                if not self._partition_names <= one.partition.keys():
                    raise CHANGE_FILE_INCOMPLETE(uri=self.log.uri, path=one.path)
                values, path = self._logical(one.partition, one.path), self._listable(one.path)
                yield ScannedFile(path, one.bytes, values, version, RowKind.AS_ROWS_SAY)
            else:
                yield from self.rows(one, version, vectors)

    def rows(
        self,
        one: Transition,
        version: int,
        vectors: Mapping[str, BitMap64],
        kinds: Collection[RowKind] = (RowKind.DELETE, RowKind.INSERT),
    ) -> Iterator[ScannedFile]:
        """Yield the rows of these kinds in a file, by its deletion vectors before and after."""

        def hidden(state: FileState) -> BitMap64:
            return vectors[state.vector.id] if state.vector else BitMap64()

        def part(state: FileState, kind: RowKind, chosen: ChosenRows | None) -> ScannedFile:
            values = self._logical(state.partition, one.path)
            first_id, row_version = state.base_row_id, state.row_commit_version
            path = self._listable(one.path)
            return ScannedFile(path, state.bytes or 0, values, version, kind, chosen, first_id, row_version)

        before, after = one.before, one.after
        if before is not None and after is not None:
            for file, kind, rows in (
                (before, RowKind.DELETE, hidden(after) - hidden(before)),
                (after, RowKind.INSERT, hidden(before) - hidden(after)),
            ):
                if rows and kind in kinds:
                    yield part(file, kind, ChosenRows(rows, are_read=True))
            return
        for state, kind in ((before, RowKind.DELETE), (after, RowKind.INSERT)):
            if state is not None and kind in kinds:
                yield part(state, kind, ChosenRows(hidden(state), are_read=False) if state.vector else None)

    def _listable(self, path: str) -> str:
        """Return the path. Raises SourceUnreadable for a name that Spark's Parquet reader skips without an error."""
        name = posixpath.basename(path)
        if name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_"):
            why = f"Spark can't read its file {path}, because of the file's name"
            step = (
                "rewrite the file's rows at the source, for example by an UPDATE of them or by REORG; then run again."
            )
            raise SOURCE_UNREADABLE(uri=self.log.uri, why=why, next_step=step)
        return path

    def _logical(self, partition: Mapping[str, str | None] | None, path: str) -> Mapping[str, str | None]:
        """Return a file's partition values by logical names. Raises SourceUnreadable if the log lacks one."""
        columns, values = self.metadata.partition_columns, partition or {}
        stored = {name: self._physical.get(name, name) for name in columns}
        lacking = [name for name, physical in stored.items() if physical not in values]
        if lacking:
            why = f"it names {path} without its value of the partition column `{lacking[0]}`"
            raise SOURCE_UNREADABLE(uri=self.log.uri, why=why, next_step="rebuild the table's mirror.")
        return {name: values[physical] for name, physical in stored.items()}

    @cached_property
    def _partition_names(self) -> frozenset[str]:
        return partition_names(self.metadata)

    @cached_property
    def _physical(self) -> Mapping[str, str]:
        return physical_partitions(self.metadata)
