"""What a VACUUM would delete, what of that readers need, and the statement that keeps it (seed 003, maintenance).

By the rules of Spark's VACUUM with Delta 4.1 and newer (reference `direct-lake` §3.3). It lists the folder, and deletes
each file that is not hidden, was written before the retention began, and is named neither by a live file nor by a
tombstone that is younger than that. A tombstone that a checkpoint dropped protects nothing, and change files are named
by nobody: both go by age alone. So does a file, even a live one, that the log spells otherwise than Hadoop lists it.

VACUUM LITE goes by the log alone, and is not predicted: it takes removed files and change files whose commits are old
enough however young the files themselves are (a copied table with in-commit timestamps), and in folders that are hidden
since a partition column was renamed.

Where a file has its deletion vector in the log itself, Spark's VACUUM (Delta 4.4) fails and deletes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mirror_assets.delta.actions import Metadata
from mirror_assets.delta.retention import Retention
from mirror_assets.direct_lake.errors import frame_refused
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.paths import is_absolute
from mirror_assets.direct_lake.table.values import LiveFile, Snapshot, StoredFile, Tombstone
from mirror_assets.direct_lake.vacuum.model_frames import Frame
from mirror_assets.direct_lake.vacuum.requirements import (
    MIRROR,
    Mirror,
    Requirement,
    Requirements,
    RetentionConsumers,
    oldest_readable,
    paths_of,
    requirements_of,
)

# The statement holds for a day at least: nobody runs it the moment that it is printed.
_MARGIN_SECONDS = 86_400
# Durations are shown in tenths of an hour.
_STEP_SECONDS = 360


@dataclass(frozen=True)
class NeededFile:
    """A file by its path in the table's folder, and who needs it."""

    path: str
    needed_by: tuple[Requirement, ...]


@dataclass(frozen=True)
class VacuumPlan:
    """What VACUUM would delete from a table at `now`, and who needs that. Times: seconds since 1970.

    `deleted` are the files that VACUUM deletes; `threatened` those among them that someone needs; `lost` needed files
    that are gone already; `gone` requirements whose files the log no longer lists. `safe_until` is when the first
    needed file would go (None while none can); `resume_until` until when the mirror can read the next commit (None
    while none waits, or it is gone). `statement` has the table keep all that is needed for a day at least; None where
    its properties do that now: if files are threatened all the same, it is by RETAIN 0.
    """

    uri: str
    version: int
    now: float
    retention_seconds: float
    deleted: tuple[StoredFile, ...]
    threatened: tuple[NeededFile, ...]
    lost: tuple[NeededFile, ...]
    gone: tuple[Requirement, ...]
    oldest_reconstructable: int | None
    oldest_readable: int | None
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
    def is_safe(self) -> bool:
        """Whether VACUUM would delete nothing that a reader needs, as far as the log lists the files of frames."""
        return not self.threatened and not self.untold

    @property
    def untold(self) -> tuple[Requirement, ...]:
        """The frames among `gone`: VACUUM may delete what is left of them. The mirror starts again."""
        return tuple(one for one in self.gone if one.reader != MIRROR)

    def keeping(self, metadata: Metadata) -> str:
        """Return the statement that keeps what is needed as long as a new version is kept now, or twice as long.

        `metadata` is the table's. Raises PropertyUnreadable.
        """
        kept = Retention.of(self.uri, metadata)
        return self.statement or kept.prolonged(self.min_safe_retention_seconds)


def vacuum_of(log: TableLog, now: float, consumers: RetentionConsumers) -> VacuumPlan:
    """Plan a VACUUM at `now` for these consumers. Raises what `plan_vacuum` raises."""
    return plan_vacuum(log, now, consumers.frames, consumers.mirror, consumers.retain_hours)


def plan_vacuum(
    log: TableLog,
    now: float,
    frames: Iterable[Frame] = (),
    mirror: Mirror | None = None,
    retain_hours: float | None = None,
) -> VacuumPlan:
    """Plan `VACUUM`, or `VACUUM ... RETAIN retain_hours HOURS`, at `now` (seconds since 1970). Deletes nothing.

    Raises SettingError for a frame or a mirror ahead of the table, PropertyUnreadable, and what the log raises.
    """
    frames = tuple(frames)
    _refuse_ahead(log, frames, mirror)
    snapshot, stored = log.snapshot(), frozenset(file.path for file in log.listing(hidden=True))
    needed = requirements_of(log, frames, mirror, stored)
    lost = _needed(needed, (path for path in needed.files if path not in stored and not is_absolute(path)))
    expiring = _expiring_files(snapshot, log.listing())
    # What VACUUM takes for no file of the table, though it is one, everybody needs.
    live = frozenset(paths_of(snapshot.files)).intersection(one.file.path for one in expiring)
    needed.add(live, Requirement("table", snapshot.version))
    retention = effective_retention(snapshot, retain_hours)
    before_ms = _ms(now) - _ms(retention)
    deleted = tuple(one.file for one in expiring if one.since_ms < before_ms)
    least = _least_retention(expiring, needed, now)
    kept = Retention.of(log.uri, snapshot.metadata)
    committed = _next_commit(log, mirror, lost)
    return VacuumPlan(
        uri=log.uri,
        version=snapshot.version,
        now=now,
        retention_seconds=retention,
        deleted=deleted,
        threatened=_needed(needed, (file.path for file in deleted)),
        lost=lost,
        gone=tuple(sorted(needed.gone)),
        oldest_reconstructable=min(log.versions(), default=None),
        oldest_readable=oldest_readable(log, stored),
        oldest_needed=_oldest_needed(log, frames, mirror),
        min_safe_retention_seconds=least or 0.0,
        safe_until=None if least is None else now + retention - least,
        resume_until=None if committed is None else committed + kept.first.seconds,
        statement=_statement(kept, max(least or 0.0, now - (committed or now))),
    )


def _refuse_ahead(log: TableLog, frames: Iterable[Frame], mirror: Mirror | None) -> None:
    named = [(frame.reader, frame.version) for frame in frames]
    for reader, version in [*named, *([(MIRROR, mirror.covered)] if mirror else [])]:
        if version > log.newest():
            why = f"its newest version is {log.newest()}"
            raise frame_refused(log.uri, f"{reader} v{version}", why)


def _needed(needed: Requirements, paths: Iterable[str]) -> tuple[NeededFile, ...]:
    """Those of the paths that someone needs."""
    return tuple(NeededFile(path, tuple(sorted(needed.files[path]))) for path in sorted(paths) if path in needed.files)


def effective_retention(snapshot: Snapshot, retain_hours: float | None = None) -> float:
    """Return the seconds that count: the table's property; `RETAIN n HOURS` counts only if it rounds to zero.

    Raises PropertyUnreadable.
    """
    if retain_hours is not None and math.floor(retain_hours + 0.5) == 0:
        return 0.0
    return Retention.of(snapshot.uri, snapshot.metadata).files.seconds


@dataclass(frozen=True)
class _Expiring:
    """A file that VACUUM deletes when it is older than the retention; its clock began at `since_ms`, since 1970."""

    file: StoredFile
    since_ms: int


def _expiring_files(snapshot: Snapshot, listing: Iterable[StoredFile]) -> tuple[_Expiring, ...]:
    """The files of the listing that no live file keeps; the clock is that of the youngest tombstone."""
    live = set(_protected(snapshot.files))
    removed: dict[str, int] = {}
    for tombstone in snapshot.tombstones:
        for path in _protected([tombstone]):
            removed[path] = max(tombstone.deleted_ms, removed.get(path, 0))
    return tuple(
        _Expiring(file, max(file.modified_ms, removed.get(file.path, 0))) for file in listing if file.path not in live
    )


def _protected(files: Iterable[LiveFile | Tombstone]) -> Iterator[str]:
    """What the actions keep; no deletion vector named by an absolute path: VACUUM takes that for another table's."""
    for file in files:
        if file.as_listed:
            yield file.path
        if file.vector is not None and file.vector.path is not None and file.vector.id.startswith("u"):
            yield file.vector.path


def _least_retention(expiring: Iterable[_Expiring], needed: Requirements, now: float) -> float | None:
    """The seconds with which VACUUM just deletes nothing needed; None when nothing needed can expire."""
    clocks = [one.since_ms for one in expiring if one.file.path in needed.files]
    return max(0, _ms(now) - min(clocks)) / 1000 if clocks else None


def _next_commit(log: TableLog, mirror: Mirror | None, lost: Iterable[NeededFile]) -> float | None:
    """When the commit was made that the mirror reads next; None when none waits, or it can't be read any more."""
    if mirror is None or mirror.covered + 1 not in log.logged():
        return None
    requirement = Requirement(MIRROR, mirror.covered + 1)
    is_lost = any(requirement in file.needed_by for file in lost)
    return None if is_lost else log.time_ms(requirement.version) / 1000


def _oldest_needed(log: TableLog, frames: Iterable[Frame], mirror: Mirror | None) -> int | None:
    waits = mirror is not None and mirror.covered < log.newest()
    needed = [frame.version for frame in frames]
    return min([*needed, *([mirror.covered + 1] if mirror and waits else [])], default=None)


def _statement(kept: Retention, age: float) -> str | None:
    """What keeps files and commits of this age, for a day at least; None where the properties do so now."""
    return None if age <= kept.first.seconds else kept.keeping(age + _MARGIN_SECONDS)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def hours(seconds: float) -> str:
    """Write a duration."""
    return f"{seconds / 3600:,.1f} hours"


def hours_at_least(seconds: float) -> str:
    """Write a duration that something is needed for, rounded up: less would not be safe."""
    return hours(math.ceil(seconds / _STEP_SECONDS) * _STEP_SECONDS)
