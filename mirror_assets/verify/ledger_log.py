"""Reads what the ledger needs: commits, the live files before them, and footers of Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirror_assets.errors import MirrorError
from mirror_assets.lakes.errors import SOURCE_UNREADABLE
from mirror_assets.source.actions import Actions, Protocol
from mirror_assets.source.delta_rs import live_files
from mirror_assets.source.errors import LOG_GAP, LogGap
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_checkpoint import may_be_among, read_checkpoint, spelled_paths
from mirror_assets.source.log_listing import LogStep
from mirror_assets.source.parsing import parse_actions
from mirror_assets.source.read_errors import translated
from mirror_assets.verify.ledger import (
    NO_FILES,
    Balances,
    CommitBalance,
    CommitFiles,
    FileChange,
    FilesBefore,
    RunningLedger,
    StoredRows,
    Vectors,
)

# Commits that are read at once when a whole log is audited: this bounds the memory.
_AUDITED_AT_ONCE = 256
_LIVE_FILES = pa.schema({"path": pa.large_string(), "num_records": pa.int64()})

_ReadLog = Callable[[], tuple[tuple[CommitFiles, ...], StoredRows]]


class SliceLedger:
    """The ledger of the commits, or of the version, that a slice is made from; threads must not share it.

    Its methods raise what reading the log raises.
    """

    def __init__(self, log: DeltaLog, read: _ReadLog, read_again: _ReadLog) -> None:
        """Read nothing yet: `read` returns the commits, and the rows of their files by statistics.

        `read_again` returns the same without delta-rs' list of live files, for `by_footers`.
        """
        self._log, self._read, self._read_again = log, read, read_again
        self._footers: dict[str, int | None] = {}

    @cached_property
    def by_statistics(self) -> Balances:
        """The balances by the statistics in the log; footers are read only of files without."""
        commits, known = self._read()
        footers = self._read_footers(path for path in _counted(commits) if known(path) is None)

        def stored(path: str) -> int | None:
            rows = known(path)
            return footers.get(path) if rows is None else rows

        return Balances(tuple(commit.balance(stored) for commit in commits))

    @cached_property
    def by_footers(self) -> Balances:
        """The balances by the footers of all files that decide; statistics count only for lost files."""
        commits, known = self._read_again()
        paths = _counted(commits)
        footers = self._read_footers(paths)
        wrong = tuple(
            f"{path} has {rows:,} rows by its footer, {said:,} by its statistics"
            for path in paths
            if (rows := footers[path]) is not None and (said := known(path)) is not None and said != rows
        )

        def stored(path: str) -> int | None:
            rows = footers.get(path)
            return known(path) if rows is None else rows

        return Balances(tuple(commit.balance(stored) for commit in commits), wrong)

    def rows_in(self, paths: Sequence[str]) -> int | None:
        """Return the rows in these Parquet files by their footers; None if one is lost."""
        footers, total = self._read_footers(paths), 0
        for path in paths:
            rows = footers[path]
            if rows is None:
                return None
            total += rows
        return total

    def _read_footers(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        """Return the rows of each file, whose footer is read once; None for one that was deleted or is damaged."""

        def rows(path: str) -> int | None:
            try:
                with self._log.files.open(self._log.files.paths.decoded(path)) as file:
                    return int(pq.read_metadata(file).num_rows)
            except (FileNotFoundError, pa.ArrowInvalid):
                return None

        wanted = [path for path in dict.fromkeys(paths) if path not in self._footers]
        self._footers.update(zip(wanted, self._log.files.each(rows, wanted), strict=True))
        return self._footers


def commits_ledger(log: DeltaLog, first: int, last: int) -> SliceLedger:
    """Return the ledger of the commits [first, last]."""

    def read(*, trusts_rows: bool) -> tuple[tuple[CommitFiles, ...], StoredRows]:
        versions = range(first, last + 1)
        found = log.files.each(lambda version: read_commit(log, version), versions)
        removed = {file.key for actions in found for file in actions.removed}
        touched = removed | {file.key for actions in found for file in actions.added}
        running = RunningLedger(lambda: files_before(log, first, touched, trusts_rows=trusts_rows))
        return tuple(map(running.apply, versions, found)), running.stored_rows

    return SliceLedger(log, partial(read, trusts_rows=True), partial(read, trusts_rows=False))


def version_ledger(log: DeltaLog, version: int, first: int = 0, end: int | None = None) -> SliceLedger:
    """Return the ledger of a version, as one commit that adds its files.

    A chunk has the files `first` to `end` - 1 only, in order of their paths.
    """

    @cache
    def read() -> tuple[tuple[CommitFiles, ...], StoredRows]:
        files, protocol = _live_files(log, version)
        vectors, paths = dict[str, Vectors](), files["path"]
        if "deletionVectors" in protocol.features or _is_file_added_again(log, version):
            vectors.update(read_vectors(log, version))
            # delta-rs takes a file that one commit removes and adds again, in this order, for removed.
            live = pa.array([path for path, found in vectors.items() if found], pa.large_string())
            paths = pa.chunked_array([*paths.chunks, live]).unique()
        wanted = paths.take(pc.sort_indices(paths).slice(first, None if end is None else end - first))
        rows = _rows_by_path(files.filter(pc.is_in(files["path"], wanted)))
        changes = (FileChange(path, {}, vectors.get(path, {"": 0}), changes_data=True) for path in wanted.to_pylist())
        return (CommitFiles(version, tuple(changes), ()),), rows.get

    return SliceLedger(log, read, read)


def audit(log: DeltaLog) -> Iterator[CommitBalance]:
    """Yield the balance of every commit from the earliest that can be followed, by the actions alone."""
    first, last = log.earliest(), log.newest()
    running = RunningLedger(lambda: files_before(log, first))
    for begin in range(first, last + 1, _AUDITED_AT_ONCE):
        versions = range(begin, min(begin + _AUDITED_AT_ONCE, last + 1))
        for version, actions in zip(versions, log.files.each(lambda one: read_commit(log, one), versions), strict=True):
            yield running.apply(version, actions).balance(running.stored_rows)


def files_before(
    log: DeltaLog, first: int, among: Collection[str] | None = None, *, trusts_rows: bool = True
) -> FilesBefore | None:
    """Return the live files before the commit `first`, or those `among` these paths.

    They are read by delta-rs; their vectors are the ledger's own reading of checkpoint and commits. delta-rs lacks a
    file that a commit removes and adds again: without `trusts_rows`, the vectors show such a file. None if the log
    can't reconstruct that version.
    """
    if first == 0:
        return NO_FILES
    try:
        files, protocol = _live_files(log, first - 1, among)
    except LogGap:
        return None
    has_vectors = "deletionVectors" in protocol.features
    return FilesBefore(_rows_by_path(files), lambda: read_vectors(log, first - 1, among), has_vectors, trusts_rows)


def _live_files(log: DeltaLog, version: int, among: Collection[str] | None = None) -> tuple[pa.Table, Protocol]:
    """Return `path` and `num_records` of the version's live files, or of those `among` these, and its protocol.

    Paths are spelled as actions name the files. Raises LogGap.
    """
    try:
        with translated(log.uri):
            files, protocol = live_files(log.access, version)
    except (MirrorError, FileNotFoundError):  # the log says what it means: a gap, or a source that can't be read
        snapshot = log.reopened().snapshot(version)
        columns = [[file.key for file in snapshot.files], [file.rows for file in snapshot.files]]
        return pa.table(columns, schema=_LIVE_FILES), snapshot.protocol
    if among is not None:
        files = files.filter(may_be_among(files["path"], among))
    files = files.cast(_LIVE_FILES)
    return files.set_column(0, _LIVE_FILES.field(0), spelled_paths(files["path"])), protocol


def _rows_by_path(files: pa.Table) -> Mapping[str, int | None]:
    return dict(zip(files["path"].to_pylist(), files["num_records"].to_pylist(), strict=True))


def read_commit(log: DeltaLog, version: int) -> Actions:
    """Read the actions of a commit. Raises LogGap for a missing commit, and SourceUnreadable for an invalid one."""
    data = log.files.commit(version)
    if data is None:
        raise LOG_GAP(uri=log.uri, version=version)
    return _parsed(log, data, f"commit {version}")


def read_vectors(log: DeltaLog, version: int, among: Collection[str] | None = None) -> Mapping[str, Vectors]:
    """Return the vectors of all live files of a version, by path, from checkpoint and commits. Raises LogGap.

    `among`: those of the files at these paths are enough.
    """
    listing = log.files.log()
    steps = listing.steps(version)
    if steps is None:
        raise LOG_GAP(uri=log.uri, version=listing.gap(version))
    live: dict[str, dict[str, int]] = {}
    for actions in log.files.each(lambda step: _read_step(log, step, among), steps):
        for removed in actions.removed:
            live.get(removed.key, {}).pop(removed.vector.id if removed.vector else "", None)
        for added in actions.added:
            live.setdefault(added.key, {})[added.vector.id if added.vector else ""] = added.hidden_rows
    return live


def _is_file_added_again(log: DeltaLog, version: int) -> bool:
    """Whether a commit up to the version, after its checkpoint, both removes and adds a file."""
    steps = [step for step in log.files.log().steps(version) or () if not step.is_checkpoint]
    found = log.files.each(lambda step: _read_step(log, step, None), steps)
    return any({one.key for one in actions.added} & {one.key for one in actions.removed} for actions in found)


def _read_step(log: DeltaLog, step: LogStep, among: Collection[str] | None) -> Actions:
    try:
        if step.is_checkpoint:
            return read_checkpoint(log.files, step.paths, among)
        with log.files.open(step.paths[0]) as file:
            return _parsed(log, file.read(), step.paths[0])
    except FileNotFoundError as error:
        raise LOG_GAP(uri=log.uri, version=step.last) from error
    except pa.ArrowException as error:
        raise SOURCE_UNREADABLE(
            uri=log.uri, why=f"{', '.join(step.paths)} is not what Delta writes ({error!r})"
        ) from error


def _parsed(log: DeltaLog, data: bytes, name: str) -> Actions:
    try:
        return parse_actions(data, log.files.paths)
    except (ValueError, KeyError, TypeError) as error:
        raise SOURCE_UNREADABLE(uri=log.uri, why=f"{name} is not what Delta writes ({error!r})") from error


def _counted(commits: Iterable[CommitFiles]) -> list[str]:
    return list(dict.fromkeys(path for commit in commits for path in sorted(commit.counted_paths)))
