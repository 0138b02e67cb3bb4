"""Predict the files that VACUUM would delete, the readers that need them, and the statement that retains them.

By the rules of Spark's VACUUM with Delta 4.1 and newer (reference `direct-lake` §3.3). It lists the folder and deletes
each file that is not hidden, is older than the retention, and is named neither by a live file nor by a tombstone
younger than the retention. So change files, and files whose tombstone a checkpoint dropped, are deleted by their age.
So are live files if the log spells their path differently from Hadoop.

VACUUM LITE is not predicted: it uses the times in the log, not those of the files, and folders that are hidden since a
partition column was renamed. If the log itself holds a deletion vector, Spark's VACUUM (Delta 4.4) fails and deletes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mirror_assets.config.setting_values import Changes
from mirror_assets.features.direct_lake.consumers import MIRROR, MirrorNeeds, Requirement
from mirror_assets.features.direct_lake.errors import FRAME_REFUSED
from mirror_assets.source.actions import Actions, LiveFile, Metadata, Tombstone
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_paths import is_absolute
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.source_files import StoredFile
from mirror_assets.source.table_properties import Retention

# The statement is valid for a day at least: people don't run it the moment that it is printed.
_MARGIN_SECONDS = 86_400
# Durations are shown in tenths of an hour.
_STEP_SECONDS = 360


@dataclass(frozen=True)
class NeededFile:
    """A file by its path in the table's folder, and its readers."""

    path: str
    needed_by: tuple[Requirement, ...]


@dataclass(frozen=True)
class VacuumPlan:
    """The files that VACUUM would delete from a table at `now`, and their readers. Times: seconds since 1970.

    `threatened` are the needed files among `deleted`; `lost` are needed files that are missing already; `gone` are
    requirements whose files the log no longer lists. `safe_until` is when VACUUM would delete the first needed file
    (None: never). `resume_until` is until when the mirror can read its next commit (None if none waits, or it can't be
    read any more). `statement` makes the table keep all that is needed for a day at least; None if its properties do
    that now: if files are threatened all the same, it is by RETAIN 0.
    """

    uri: str
    version: int
    now: float
    retention_seconds: float
    deleted: tuple[StoredFile, ...]
    threatened: tuple[NeededFile, ...]
    lost: tuple[NeededFile, ...]
    gone: tuple[Requirement, ...]
    oldest_needed: int | None
    min_safe_retention_seconds: float
    safe_until: float | None
    resume_until: float | None
    statement: str | None

    @property
    def deleted_bytes(self) -> int:
        """Bytes that VACUUM would free."""
        return sum(file.bytes for file in self.deleted)

    @property
    def unknown_frames(self) -> tuple[Requirement, ...]:
        """The frames among `gone`: VACUUM may delete files of them. The mirror isn't among them: it starts again."""
        return tuple(one for one in self.gone if one.reader != MIRROR)

    @property
    def is_safe(self) -> bool:
        """Whether VACUUM would delete nothing that a reader needs, and the files of all frames are known."""
        return not self.threatened and not self.unknown_frames

    def keeping(self, metadata: Metadata) -> str:
        """Return the statement that keeps needed files as long as new ones, or doubles the retention.

        `metadata` is the table's. Raises PROPERTY_UNREADABLE.
        """
        return self.statement or Retention.of(self.uri, metadata).prolonged(self.min_safe_retention_seconds)


def plan_vacuum(
    log: DeltaLog,
    now: float,
    frames: Iterable[Requirement] = (),
    mirror: MirrorNeeds | None = None,
    retain_hours: float | None = None,
) -> VacuumPlan:
    """Plan `VACUUM`, or `VACUUM … RETAIN retain_hours HOURS`, at `now` (seconds since 1970). Deletes nothing.

    Raises SettingError for a frame or a mirror that is newer than the table, PROPERTY_UNREADABLE, and what the log
    raises.
    """
    frames = tuple(frames)
    for reader in [*frames, *([Requirement(MIRROR, mirror.covered)] if mirror else [])]:
        if reader.version > log.newest():
            raise FRAME_REFUSED(uri=log.uri, frame=str(reader), why=f"its newest version is {log.newest()}")
    snapshot, stored = log.snapshot(), frozenset(file.path for file in log.stored_files(hidden=True))
    needs = _Needs(log)
    needs.add_frames(frames)
    if mirror is not None:
        needs.add_mirror(mirror)
    lost = needs.among(path for path in needs.files if path not in stored and not is_absolute(path))
    expiring = _expiring_files(snapshot, log.stored_files())
    # VACUUM doesn't recognise these files as live.
    live = frozenset(_paths(snapshot.files)).intersection(file.path for file, _ in expiring)
    needs.add(live, Requirement("table", snapshot.version))
    retention = effective_retention(snapshot, retain_hours)
    deleted = tuple(file for file, since_ms in expiring if since_ms < _ms(now) - _ms(retention))
    clocks = [since_ms for file, since_ms in expiring if file.path in needs.files]
    least = max(0, _ms(now) - min(clocks)) / 1000 if clocks else None  # with this retention, nothing needed is deleted
    kept = Retention.of(log.uri, snapshot.metadata)
    committed = _next_commit(log, mirror, lost)
    age = max(least or 0.0, now - (committed or now))
    waiting = [mirror.covered + 1] if mirror is not None and mirror.covered < log.newest() else []
    return VacuumPlan(
        uri=log.uri,
        version=snapshot.version,
        now=now,
        retention_seconds=retention,
        deleted=deleted,
        threatened=needs.among(file.path for file in deleted),
        lost=lost,
        gone=tuple(sorted(needs.gone)),
        oldest_needed=min([*(frame.version for frame in frames), *waiting], default=None),
        min_safe_retention_seconds=least or 0.0,
        safe_until=None if least is None else now + retention - least,
        resume_until=None if committed is None else committed + kept.first.seconds,
        statement=None if age <= kept.first.seconds else kept.keeping(age + _MARGIN_SECONDS),
    )


def effective_retention(snapshot: Snapshot, retain_hours: float | None = None) -> float:
    """Return the seconds that VACUUM uses: the table's property; `RETAIN n HOURS` counts only if it rounds to zero.

    Raises PROPERTY_UNREADABLE.
    """
    if retain_hours is not None and math.floor(retain_hours + 0.5) == 0:
        return 0.0
    return Retention.of(snapshot.uri, snapshot.metadata).files.seconds


def _expiring_files(snapshot: Snapshot, listing: Iterable[StoredFile]) -> list[tuple[StoredFile, int]]:
    """Return the files that no live file protects, and when their retention began (ms since 1970).

    That is when the file was written, or its youngest tombstone.
    """
    live = set(_protected(snapshot.files))
    removed: dict[str, int] = {}
    for tombstone in snapshot.tombstones:
        for path in _protected([tombstone]):
            removed[path] = max(tombstone.deleted_ms, removed.get(path, 0))
    return [(file, max(file.modified_ms, removed.get(file.path, 0))) for file in listing if file.path not in live]


def _protected(files: Iterable[LiveFile | Tombstone]) -> Iterator[str]:
    """Yield the paths that VACUUM keeps for these actions.

    It assumes that a deletion vector with an absolute path belongs to another table.
    """
    for file in files:
        if file.as_listed:
            yield file.path
        if file.vector is not None and file.vector.path is not None and file.vector.id.startswith("u"):
            yield file.vector.path


def _next_commit(log: DeltaLog, mirror: MirrorNeeds | None, lost: Iterable[NeededFile]) -> float | None:
    """Return when the mirror's next commit was made; None if none waits, or it can't be read any more."""
    if mirror is None or mirror.covered + 1 not in log.logged_versions():
        return None
    requirement = Requirement(MIRROR, mirror.covered + 1)
    is_lost = any(requirement in file.needed_by for file in lost)
    return None if is_lost else log.time_ms(requirement.version) / 1000


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _paths(files: Iterable[LiveFile | Tombstone]) -> Iterator[str]:
    """Yield the paths of the files and of their deletion vectors."""
    for file in files:
        yield file.path
        if file.vector is not None and file.vector.path is not None:
            yield file.vector.path


_NO_READERS = frozenset[Requirement]()


class _Needs:
    """Collects the needed files by path, each with its readers.

    Files with the same readers share one set: each took 216 bytes alone. `gone` are requirements whose files the log no
    longer lists.
    """

    def __init__(self, log: DeltaLog) -> None:
        self.files: dict[str, frozenset[Requirement]] = {}
        self.gone: set[Requirement] = set()
        self._log = log

    def add(self, paths: Iterable[str], requirement: Requirement) -> None:
        """Record that a reader needs these files."""
        shared: dict[frozenset[Requirement], frozenset[Requirement]] = {}
        for path in paths:
            before = self.files.get(path, _NO_READERS)
            after = shared.get(before)
            if after is None:
                after = shared[before] = before | {requirement}
            self.files[path] = after

    def among(self, paths: Iterable[str]) -> tuple[NeededFile, ...]:
        """Return the needed files among the paths."""
        return tuple(NeededFile(path, tuple(sorted(self.files[path]))) for path in sorted(paths) if path in self.files)

    def add_frames(self, frames: Sequence[Requirement]) -> None:
        """Add all files of the framed versions."""
        available = set(self._log.versions())
        self.gone.update(frame for frame in frames if frame.version not in available)
        for snapshot in self._log.snapshots({frame.version for frame in frames} & available):
            for frame in frames:
                if frame.version == snapshot.version:
                    self.add(_paths(snapshot.files), frame)

    def add_mirror(self, mirror: MirrorNeeds) -> None:
        """Add the files with the changes of the commits after the covered version.

        At a missing commit the mirror starts again with a snapshot, so it doesn't need later commits. But a history
        continues after the gap, and the mirror may be past it.
        """
        logged, newest = set(self._log.logged_versions()), self._log.newest()
        missing = [version for version in range(mirror.covered + 1, newest + 1) if version not in logged]
        self.gone.update(Requirement(MIRROR, version) for version in missing[:1])
        stretches = list(pairwise([mirror.covered, *missing, newest + 1]))
        for before, after in stretches if mirror.changes is None else stretches[:1]:
            for commit in self._log.logged_commits(before + 1, after - 1):
                self.add(_files_with_changes(commit.actions, mirror.changes), Requirement(MIRROR, commit.version))


def _files_with_changes(commit: Actions, changes: Changes | None) -> Iterable[str]:
    """Return the files of a commit from which its changes are read (reference `delta` §1)."""
    data_files = _paths((*commit.added, *commit.removed))
    change_files = [file.path for file in commit.change_files]
    changes_data = bool(commit.data_added or commit.data_removed)
    if changes is Changes.APPEND_ONLY:
        return _paths(commit.added) if changes_data else ()
    # A slice compares the versions at its ends, which may be any commits.
    if changes is not None and changes.compares_versions:
        return data_files
    if changes is None:
        return (*change_files, *data_files)
    if not changes_data:
        return change_files
    return change_files or data_files


def hours(seconds: float) -> str:
    """Return a duration in hours."""
    return f"{seconds / 3600:,.1f} hours"


def hours_at_least(seconds: float) -> str:
    """Return a duration in hours, rounded up: a shorter retention would not be safe."""
    return hours(math.ceil(seconds / _STEP_SECONDS) * _STEP_SECONDS)
