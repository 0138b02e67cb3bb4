"""Reads the Delta log of one table: its state, its commits, any version that can be reconstructed, and new commits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirror_assets.errors import MirrorError, SettingError
from mirror_assets.lakes.access import Access, CatalogCommits, Locate, Located, PlainAccess
from mirror_assets.lakes.errors import CATALOG_MANAGED, SOURCE_UNAVAILABLE, SourceUnreadable
from mirror_assets.source.actions import Actions, LoggedFile, Metadata
from mirror_assets.source.commit_reader import CommitReader, not_of_delta
from mirror_assets.source.commits import Commit, SourceState, commit_digest, describe, with_column_ids
from mirror_assets.source.delta_rs import live_paths, load_table, metadata_of, protocol_of, size_of
from mirror_assets.source.errors import (
    LOG_GAP,
    NO_COLUMNS,
    LogGap,
    SourceNotDelta,
    source_not_delta,
)
from mirror_assets.source.live_file_columns import LiveFileColumns, named_files, replayed
from mirror_assets.source.log_checkpoint import checkpoint_files, read_checkpoint
from mirror_assets.source.log_listing import LogListing, LogStep, TipMark
from mirror_assets.source.log_paths import is_hidden
from mirror_assets.source.parsing import deleted_rows, parse_actions, parse_info
from mirror_assets.source.ranges import CommitTimes, increasing
from mirror_assets.source.read_errors import translated
from mirror_assets.source.replay import (
    LivePaths,
    LoggedCommit,
    Replay,
    Snapshot,
    require_readable,
    require_reconciled,
    with_logical_names,
)
from mirror_assets.source.source_files import SourceFiles, StoredFile
from mirror_assets.source.table_features import require_readable_columns, require_whole_log

# A store lists this many files of a log in one page.
_SHORT_LOG = 1000
# Commits of the history whose actions are in memory: a replay since a checkpoint reads as many.
_COMMITS = 100

_Read = TypeVar("_Read")


class CommitReplaced(Exception):
    """The log was rolled back: it has another commit where one has landed."""


class _AuxiliaryUnread(Exception):
    """A checkpoint or compacted commits can't be read; `reason` is the error if no other files have the version."""

    def __init__(self, paths: tuple[str, ...], reason: MirrorError) -> None:
        self.paths, self.reason = paths, reason
        super().__init__(str(reason))


@dataclass
class _Known:
    """What a DeltaLog has read for its history; `commits` are the last ones that were read."""

    listing: LogListing | None = None
    newest: Snapshot | None = None
    stored: tuple[StoredFile, ...] | None = None
    commits: dict[int, Actions] = field(default_factory=dict)


class DeltaLog:
    """The Delta log of one table. Threads may share it.

    The methods down to `has_next` read the store on each call, and retain nothing. The methods of the history, from
    `newest` on, list the log once, and hold few commits at a time: create another DeltaLog to see later commits.

    `state` and `live_paths` use deltalake, which lists a log from its last checkpoint on and reads that without Python:
    it opens the newest of 10,000 versions in 17 ms, a replay takes 290 ms. It refuses logs that lack fields which Delta
    on Spark doesn't need. These are replayed.

    Raises SourceNotDelta, SourceUnreadable and other SettingErrors, SOURCE_UNAVAILABLE (RetryError), and LogGap
    (RebuildError) only for a commit that a readable store doesn't have.
    """

    def __init__(self, uri: str, access: Access | None = None, locate: Locate | None = None) -> None:
        """Name the table and how to access it. Nothing is read yet.

        `locate` asks a catalog for the table's address, each time before the newest version is read. Until the next
        time, everything is read at that address, also by Spark, so a plan and its slices are of one table. The same is
        true of the commits of a table that its catalog manages.
        """
        self._locate = locate
        self._place = Located(uri, access or PlainAccess(uri)) if locate is None else None
        self._opened: tuple[Located, SourceFiles] | None = None
        self._known = _Known()
        self._live_paths: LivePaths | None = None

    @classmethod
    def at(cls, place: Located) -> DeltaLog:
        """Return the log of a table by a response of its catalog."""
        made = cls(place.uri, place.access)
        made._place = place
        return made

    @property
    def uri(self) -> str:
        """The table's address; asks its catalog the first time."""
        return self._located.uri

    @property
    def access(self) -> Access:
        """The access by deltalake."""
        return self._located.access

    @property
    def files(self) -> SourceFiles:
        """Opens the table's files."""
        place, opened = self._located, self._opened
        if opened is None or opened[0] is not place:
            # Another response of a catalog about the same table: its connections stay open.
            files = opened[1] if opened and opened[0] == place else SourceFiles(place.uri, place.access)
            opened = self._opened = place, files.by(place.commits)
        return opened[1]

    @property
    def commits_of_catalog(self) -> CatalogCommits | None:
        """The commits of the catalog that manages the table, by its last response; None if the log alone has them."""
        return self._located.commits

    @property
    def is_managed(self) -> bool:
        """Whether a catalog decides which commits count."""
        return self.commits_of_catalog is not None

    def locate_again(self) -> Located:
        """Ask the catalog, and return the table's address and commits, by which everything is read from now on."""
        self._relocate()
        return self._located

    def reopened(self) -> DeltaLog:
        """Return the log of the same table, by the last response of its catalog, with nothing read yet."""
        return DeltaLog.at(self._located)

    def state(self, version: int | None = None) -> SourceState:
        """Return the source at its newest version, or at `version`.

        Raises LogGap if a required commit is missing, and SOURCE_UNAVAILABLE if the newest one isn't written
        completely.
        """
        if version is not None:
            return self._state(version)
        self._relocate()
        try:
            return self._state()
        except CATALOG_MANAGED.error:
            # Its catalog may manage it since the location was cached.
            self._relocate(is_fresh=True)
            if not self.is_managed:
                raise
            return self._state()

    def _state(self, version: int | None = None) -> SourceState:
        try:
            state = self._state_by_replay(version) if self.is_managed else self._state_by_deltalake(version)
        except SourceUnreadable as error:
            if self.is_managed:
                raise
            newest = self.files.log().newest if version is None and isinstance(error.__cause__, DeltaError) else None
            if newest is not None:
                self._commit_reader.info(newest, is_newest=True)
            state = self._state_by_replay(version, error)
        require_readable(self.uri, state.protocol, is_managed=self.is_managed)
        require_readable_columns(self.uri, state.metadata)
        require_whole_log(self.uri, state.metadata)
        return state

    def live_file_columns(self, version: int) -> LiveFileColumns:
        """Return the files of `snapshot`, as columns. Raises LogGap.

        Chunks are counted in them, so they are those that scans read. delta-rs lacks a file that a commit removes and
        adds again.
        """

        def columns(step: LogStep) -> pa.Table:
            return self._step(step, checkpoint_files, named_files)

        return replayed(self._read_steps(version, None, columns)[1])

    def has_commit(self, version: int) -> bool:
        """Whether the commit is in the log. Raises SOURCE_UNAVAILABLE for one that its catalog doesn't know."""
        try:
            self._commit_reader.data(version)
        except LogGap:
            return False
        return True

    def require_landed(self, tip: SourceState, version: int, table_id: str | None) -> None:
        """Raise SOURCE_UNAVAILABLE if the newest version of the same table is older than one that has landed.

        Its store may list less than it holds, and its catalog may answer with an older state. Another table's log, and
        one that was rolled back, may end before.
        """
        if tip.version < version and tip.table_id == table_id and self.has_commit(version):
            why = f"it says that version {tip.version} is the newest, and commit {version} is in the log"
            raise SOURCE_UNAVAILABLE(uri=self.uri, why=why)

    def commits(
        self,
        first: int,
        last: int,
        *,
        with_files: bool = False,
        after: str | None = None,
        before: Metadata | None = None,
    ) -> tuple[Commit, ...]:
        """Return the commits [first, last]. Raises LogGap for the first that is missing, and SOURCE_UNSUPPORTED.

        Reads their files only, unless one changes the metadata under column mapping and `before`, the metadata before
        them, is not given. `after` is the digest of the commit before them: raises CommitReplaced if the log has
        another one there.
        """

        def described(version: int) -> Commit | None:
            if version < first:
                with suppress(LogGap):
                    if commit_digest(self._commit_reader.data(version)) != after:
                        raise CommitReplaced
                return None
            data = self._commit_reader.data(version)
            actions = self._commit_reader.parsed(version, data)
            if actions.protocol is not None:
                require_readable(self.uri, actions.protocol, is_managed=self.is_managed)
            written, footer_rows = self._commit_reader.time_ms(version, actions.info), self.files.rows_in_footer
            digest = commit_digest(data)
            return describe(version, actions, written, footer_rows, with_files=with_files, digest=digest)

        found = self.files.each(described, range(first if after is None or last < first else first - 1, last + 1))
        return with_column_ids([commit for commit in found if commit], lambda: before or self._metadata_at(first - 1))

    def read_actions(
        self, first: int, last: int, digests: Mapping[int, str] | None = None
    ) -> list[tuple[int, Actions]]:
        """Return the actions of the commits [first, last]. Raises LogGap for the first that is missing.

        `digests` are those of commits as they were planned, by version: raises SOURCE_UNAVAILABLE for another commit.
        """
        planned, versions = digests or {}, range(first, last + 1)

        def read(version: int) -> Actions:
            data = self._commit_reader.data(version)
            if planned.get(version, "") not in ("", commit_digest(data)):
                raise SOURCE_UNAVAILABLE(
                    uri=self.uri,
                    why=f"commit {version} was replaced",
                    next_step="run again: it is planned again as it is now.",
                )
            return self._commit_reader.parsed(version, data)

        return list(zip(versions, self.files.each(read, versions), strict=True))

    def live_paths(self, version: int, table_id: str | None = None) -> LivePaths:
        """Return the live files of a version. Raises LogGap.

        Those that `keep_live_paths` got last are returned if they are of this version, and of the table with this id.
        """
        kept = self._live_paths
        if kept is not None and kept.version == version and kept.metadata.table_id == table_id:
            return kept
        refusal: SourceUnreadable | None = None
        if not self.is_managed:
            try:
                with translated(self.uri):
                    table = self._open(version)
                    paths = live_paths(table, self._commit_reader)
                    return LivePaths.of(version, metadata_of(table), protocol_of(table), paths)
            except SourceUnreadable as error:
                refusal = error
        found = self._replayed(version, refusal)
        return LivePaths.of(version, found.metadata, found.protocol, [file.key for file in found.files])

    def keep_live_paths(self, live: LivePaths) -> None:
        """Keep the live files of a version: the next slice begins with them."""
        self._live_paths = live

    def lost_files(self, version: int, needed: Callable[[Actions], Iterable[LoggedFile]]) -> tuple[str, ...]:
        """Return the paths of those files of a commit that are `needed` and were deleted. Raises LogGap.

        Files of deletion vectors are not checked.
        """
        return self.files.lost(needed(self._commit_reader.actions(version)))

    def earliest(self) -> int:
        """Return the first version from which every commit up to the newest is in the log."""
        return min(self._unbroken())

    def earliest_state(self, *, with_previous: bool = False) -> int | None:
        """Return the first version from `earliest` on that can be reconstructed; None without one.

        After log cleanup, commits before the first complete checkpoint are in the log, but can't be read. With
        `with_previous`, the version before it can be reconstructed also.
        """
        listing, first = self.files.log(), self.earliest()
        known = listing.arrivals
        return next((v for v in known if v >= first and (not with_previous or v - 1 in known)), None)

    def times(self, state: SourceState) -> CommitTimes:
        """Return when the commits from the earliest to the state's were made, by Delta's clock."""
        written = {version: time for version, time in self._unbroken().items() if version <= state.version}
        since = state.metadata.in_commit_since

        def in_commit(version: int) -> int | None:
            is_dated = since is not None and version >= since
            return parse_info(self._commit_reader.data(version)).in_commit_ms if is_dated else None

        first = min(written, default=state.version + 1)
        return CommitTimes(first, increasing(list(written.values())), None if since is None else in_commit)

    def tip_mark(self, version: int) -> TipMark | None:
        """Return the mark of the version if it is the newest, to compare with later; None if it is not."""
        return self.files.log().tip_mark(version)

    def is_still_tip(self, mark: TipMark) -> bool:
        """Whether nothing was committed since the mark, and the table is the same one, without opening it.

        A log of few files is listed. In a longer one, two files are checked, so that the cost doesn't grow with the
        log; a newer commit after a missing one is overlooked then. A catalog that manages the table knows its newest
        version.
        """
        if self._relocate():
            return False
        if self.commits_of_catalog is not None:
            return self.commits_of_catalog.latest == mark.version
        if mark.log_files > _SHORT_LOG:
            return self.files.is_tip(mark)
        found = self.tip_mark(mark.version)
        return found is not None and replace(found, log_files=mark.log_files) == mark

    @property
    def is_on_disk(self) -> bool:
        """Whether `has_next` asks a disk of this machine and sends no request."""
        return self.files.is_local and not self.is_managed

    def has_next(self, mark: TipMark) -> bool:
        """Whether the commit after the mark exists: one request, which detects neither a gap nor another table."""
        if self.is_managed:
            self._relocate()
            return self.commits_of_catalog is None or self.commits_of_catalog.latest > mark.version
        return self.files.commit(mark.version + 1) is not None

    def newest(self) -> int:
        """Return the newest version of the history."""
        newest = self._listing.newest
        if newest is None:
            raise source_not_delta(self.uri)
        return newest

    def versions(self) -> tuple[int, ...]:
        """Return the versions that checkpoints and commits can reconstruct, ascending."""
        return tuple(self._listing.arrivals)

    def logged_versions(self) -> tuple[int, ...]:
        """Return the versions whose commit is in the log, ascending, whether they can be reconstructed or not."""
        return tuple(self._listing.commits)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return the table at the version, or at its newest one. Raises LogGap if it can't be reconstructed."""
        if version is not None and version != self.newest():
            return next(self.snapshots([version]))
        if self._known.newest is None:
            self._known.newest = next(self.snapshots([self.newest()]))
        return self._known.newest

    def snapshots(self, versions: Iterable[int], among: Collection[str] | None = None) -> Iterator[Snapshot]:
        """Yield the table at each of the versions, ascending, in one replay. Raises LogGap.

        `among`: the files at these paths are enough; others may be missing.
        """
        replay, have = Replay(self.uri, is_managed=self.is_managed), None

        def actions_of(step: LogStep) -> Actions:
            return self._step(step, partial(read_checkpoint, among=among), lambda actions: actions)

        for version in sorted(set(versions)):
            steps, read = self._read_steps(version, have, actions_of)
            if steps and steps[0].first == 0:
                replay = Replay(self.uri, is_managed=self.is_managed)
            for actions in read:
                replay.apply(actions)
            have = version
            yield replay.snapshot(version, self._time(version, replay.metadata.in_commit_since))

    def logged_commits(self, first: int, last: int) -> Iterator[LoggedCommit]:
        """Yield the commits [first, last] with their actions. Raises LogGap at once for the first that is missing."""
        versions = range(first, last + 1)
        missing = next((version for version in versions if version not in self._listing.commits), None)
        if missing is not None:
            raise LOG_GAP(uri=self.uri, version=missing)
        return self._logged(versions, self.snapshot().metadata)

    def _logged(self, versions: range, metadata: Metadata) -> Iterator[LoggedCommit]:
        for part in (versions[at : at + _COMMITS] for at in range(0, len(versions), _COMMITS)):
            for version, actions in zip(part, self.files.each(self._commit_once, part), strict=True):
                added = tuple(with_logical_names(actions.added, metadata))
                yield LoggedCommit(
                    version, self._time(version, metadata.in_commit_since), replace(actions, added=added)
                )

    def time_ms(self, version: int) -> int:
        """Return when the version was made, in ms since 1970, by Delta's clock (see CommitTimes). Raises LogGap.

        A version whose commit is no longer in the log is as old as its checkpoint.
        """
        return self._time(version, self.snapshot().metadata.in_commit_since)

    def stored_files(self, *, hidden: bool = False) -> tuple[StoredFile, ...]:
        """List all files below the table's folder except the log's, in order of their paths.

        Files that VACUUM never lists are left out unless `hidden`.
        """
        if self._known.stored is None:
            found = (file for file in self.files.listed() if not file.path.startswith("_delta_log/"))
            self._known.stored = tuple(sorted(found, key=lambda file: file.path))
        if hidden:
            return self._known.stored
        metadata = self.snapshot().metadata
        return tuple(file for file in self._known.stored if not is_hidden(file.path, metadata))

    @property
    def _located(self) -> Located:
        if self._place is None:
            self._relocate()
        place = self._place
        assert place is not None  # noqa: S101 just located
        return place

    def _relocate(self, *, is_fresh: bool = False) -> bool:
        """Ask the catalog for the table's address and commits; return whether the address has changed.

        Files that were read for the history of the same table are retained.
        """
        if self._locate is None:
            return False
        before, found = self._place, self._locate(is_fresh=is_fresh)
        if found != before:
            self._known, self._live_paths = _Known(), None
        self._place = found
        return before is not None and found != before

    @property
    def _listing(self) -> LogListing:
        """The listing of the history."""
        known = self._known
        if known.listing is None:
            known.listing = self.files.log()
        return known.listing

    @property
    def _commit_reader(self) -> CommitReader:
        return CommitReader(self.uri, self.files)

    def _open(self, version: int | None) -> DeltaTable:
        """Open the version, or the newest. Raises LogGap only if a commit is missing, whatever deltalake reports."""
        try:
            with translated(self.uri):
                try:
                    return load_table(self.access, version)
                except DeltaError as error:
                    missing = None if version is None else self.files.log().gap_since_checkpoint(version)
                    if missing is None:
                        raise
                    raise LOG_GAP(uri=self.uri, version=missing) from error
        except LogGap as gap:
            raise self._commit_reader.absence(gap.version) from gap

    def _metadata_at(self, version: int) -> Metadata | None:
        """Return the metadata at the version; None if it can't be read any more."""
        try:
            return self.state(version).metadata
        except (LogGap, SettingError):
            return None

    def _state_by_deltalake(self, version: int | None) -> SourceState:
        table = self._open(version)
        with translated(self.uri):
            found, protocol, (files, size, stored_rows) = table.version(), protocol_of(table), size_of(table)
            metadata = metadata_of(table)
        rows = stored_rows
        if rows is not None and "deletionVectors" in protocol.features:
            # Only the checksum file has the number of rows that deletion vectors hide.
            hidden = deleted_rows(self.files.checksum(found))
            rows = None if hidden is None else rows - hidden
        info, digest = self._commit_reader.info(found, is_newest=version is None)
        written = self._commit_reader.time_ms(found, info)
        return SourceState(self.uri, found, written, metadata, protocol, files, size, rows, stored_rows, digest)

    def _state_by_replay(self, version: int | None, refusal: SourceUnreadable | None = None) -> SourceState:
        snapshot = self._replayed(version, refusal)
        found, live = snapshot.version, snapshot.files
        stored = [file.rows for file in live]
        stored_rows = None if None in stored else sum(rows or 0 for rows in stored)
        rows = None if stored_rows is None else stored_rows - sum(file.hidden_rows for file in live)
        size = sum(file.bytes for file in live)
        info, digest = self._commit_reader.info(found, is_newest=version is None)
        written, of_table = self._commit_reader.time_ms(found, info), (snapshot.metadata, snapshot.protocol)
        return SourceState(self.uri, found, written, *of_table, len(live), size, rows, stored_rows, digest)

    def _replayed(self, version: int | None, refusal: SourceUnreadable | None = None) -> Snapshot:
        """Return a version, read by this reader, which ignores optional fields.

        deltalake refuses its log, or can't know the commits of its catalog. Raises the refusal if it is a store's.
        """
        if refusal is not None and not isinstance(refusal.__cause__, DeltaError):
            raise refusal
        try:
            snapshot = self.reopened().snapshot(version)
        except SourceNotDelta:
            if refusal is None:
                raise
            raise refusal from refusal.__cause__
        if not snapshot.metadata.columns:
            raise NO_COLUMNS(uri=self.uri)
        return snapshot

    def _unbroken(self) -> dict[int, int]:
        """Return the versions since the last gap, and when their files were written."""
        unbroken = self.files.log().unbroken()
        if not unbroken:
            raise source_not_delta(self.uri)
        return unbroken

    def _time(self, version: int, in_commit_since: int | None) -> int:
        written = self._listing.dated.get(version)
        if written is None:
            if version not in self._listing.arrivals:
                raise LOG_GAP(uri=self.uri, version=version)
            return self._listing.arrivals[version].modified_ms
        if in_commit_since is None or version < in_commit_since:
            return written
        in_commit = self._commit_once(version).info.in_commit_ms
        return written if in_commit is None else in_commit

    def _read_steps(
        self, version: int, have: int | None, read: Callable[[LogStep], _Read]
    ) -> tuple[list[LogStep], list[_Read]]:
        """Read the steps from version `have`, or from the beginning, to the version.

        A checkpoint or compacted commits that can't be read are left out if the version can be reconstructed without
        them. Raises LogGap, or the error of the last file that was left out.
        """
        refused: MirrorError | None = None
        while True:
            steps = self._listing.steps(version, have)
            if steps is None or version < 0:
                raise refused or LOG_GAP(uri=self.uri, version=self._listing.gap(version))
            try:
                return steps, self.files.each(read, steps)
            except _AuxiliaryUnread as error:
                refused, self._known.listing = error.reason, self._listing.without(error.paths)

    def _step(
        self,
        step: LogStep,
        of_checkpoint: Callable[[SourceFiles, Sequence[str]], _Read],
        of_actions: Callable[[Actions], _Read],
    ) -> _Read:
        """Read one step of a replay: a checkpoint with its sidecars, a commit, or compacted commits."""
        if step == self._listing.commits.get(step.last):
            return of_actions(self._commit_once(step.last))
        try:
            if step.is_checkpoint:
                return of_checkpoint(self.files, step.paths)
            with self.files.open(step.paths[0]) as file:
                actions = parse_actions(file.read(), self.files.paths)
            require_reconciled(actions)
        except FileNotFoundError as error:
            raise _AuxiliaryUnread(step.paths, LOG_GAP(uri=self.uri, version=step.last)) from error
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise _AuxiliaryUnread(step.paths, not_of_delta(self.uri, ", ".join(step.paths), error)) from error
        return of_actions(actions)

    def _commit_once(self, version: int) -> Actions:
        commits = self._known.commits
        found = commits.get(version)
        if found is None:
            found = commits[version] = self._commit_reader.actions(version)
            for oldest in list(commits)[:-_COMMITS]:
                commits.pop(oldest, None)  # another thread may have done so
        return found
