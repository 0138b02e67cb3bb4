"""What a VACUUM would do to a table's readers, and what keeps them safe (seed 003, "Delta table maintenance")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mirror_assets.direct_lake.guard.errors import FrameRefused
from mirror_assets.direct_lake.guard.frames import Frame
from mirror_assets.direct_lake.guard.needs import MIRROR, Mirror, Need, Needs, needs_of, paths_of
from mirror_assets.direct_lake.guard.readable import oldest_readable
from mirror_assets.direct_lake.guard.vacuum import Expiring, effective_retention, expiring_files
from mirror_assets.source.actions import Metadata
from mirror_assets.source.log_paths import is_absolute
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.source_files import StoredFile
from mirror_assets.source.table_log import TableLog
from mirror_assets.source.table_properties import Retention

# The statement holds for a day at least: nobody runs it the moment that it is printed.
_MARGIN_SECONDS = 86_400


@dataclass(frozen=True)
class NeededFile:
    """A file by its path in the table's folder, and who needs it."""

    path: str
    needed_by: tuple[Need, ...]


@dataclass(frozen=True)
class VacuumPlan:
    """What VACUUM would delete from a table at `now`, and what that takes from whom. Times: seconds since 1970.

    `deleted` are the files that go; `threatened` those among them that someone needs; `lost` needed files that are gone
    already; `gone` needs that the log no longer tells the files of. `safe_until` is when the first needed file would go
    (None while none can); `resume_until` until when the mirror can read the next commit (None while none waits, or it
    is gone). `statement` has the table keep all that is needed for a day at least; None where its properties do that
    now: if files are threatened all the same, it is by RETAIN 0.
    """

    uri: str
    version: int
    now: float
    retention_seconds: float
    deleted: tuple[StoredFile, ...]
    threatened: tuple[NeededFile, ...]
    lost: tuple[NeededFile, ...]
    gone: tuple[Need, ...]
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
        """Whether VACUUM would take nothing that anyone needs, as far as frames go whose files are known."""
        return not self.threatened and not self.untold

    @property
    def untold(self) -> tuple[Need, ...]:
        """The frames among `gone`: VACUUM may take what is left of them. The mirror begins anew, and needs nothing."""
        return tuple(need for need in self.gone if need.reader != MIRROR)

    def keeping(self, metadata: Metadata) -> str:
        """The statement after which what is needed has as long to go as a new version has now, or twice as long.

        `metadata` is the table's. Raises PropertyUnreadable.
        """
        kept = Retention.of(self.uri, metadata)
        return self.statement or kept.prolonged(self.min_safe_retention_seconds)


def plan_vacuum(
    log: TableLog,
    now: float,
    frames: Iterable[Frame] = (),
    mirror: Mirror | None = None,
    retain_hours: float | None = None,
) -> VacuumPlan:
    """The plan at `now` (seconds since 1970), for `VACUUM` or `VACUUM ... RETAIN retain_hours HOURS`. Deletes nothing.

    Raises FrameRefused for a frame or a mirror ahead of the table, PropertyUnreadable, and what the log raises.
    """
    frames = tuple(frames)
    _refuse_ahead(log, frames, mirror)
    snapshot, stored = log.snapshot(), frozenset(file.path for file in log.listing(hidden=True))
    needs = needs_of(log, frames, mirror, stored)
    lost = _needed(needs, (path for path in needs.files if path not in stored and not is_absolute(path)))
    expiring = expiring_files(snapshot, log.listing())
    _add_live(needs, snapshot, expiring)
    retention = effective_retention(snapshot, retain_hours)
    before_ms = _ms(now) - _ms(retention)
    deleted = tuple(one.file for one in expiring if one.since_ms < before_ms)
    least = _least_retention(expiring, needs, now)
    kept = Retention.of(log.uri, snapshot.metadata)
    committed = _next_commit(log, mirror, lost)
    return VacuumPlan(
        uri=log.uri,
        version=snapshot.version,
        now=now,
        retention_seconds=retention,
        deleted=deleted,
        threatened=_needed(needs, (file.path for file in deleted)),
        lost=lost,
        gone=tuple(sorted(needs.gone)),
        oldest_reconstructable=min(log.versions(), default=None),
        oldest_readable=oldest_readable(log, stored),
        oldest_needed=_oldest_needed(log, frames, mirror),
        min_safe_retention_seconds=least or 0.0,
        safe_until=None if least is None else now + retention - least,
        resume_until=None if committed is None else committed + kept.first.seconds,
        statement=_statement(kept, max(least or 0.0, now - (committed or now))),
    )


def _add_live(needs: Needs, snapshot: Snapshot, expiring: Iterable[Expiring]) -> None:
    """What VACUUM takes for no file of the table, though it is one: everybody needs that."""
    live = frozenset(paths_of(snapshot.files))
    needs.add((one.file.path for one in expiring if one.file.path in live), Need("table", snapshot.version))


def _refuse_ahead(log: TableLog, frames: Iterable[Frame], mirror: Mirror | None) -> None:
    named = [(frame.reader, frame.version) for frame in frames]
    for reader, version in [*named, *([(MIRROR, mirror.covered)] if mirror else [])]:
        if version > log.newest():
            raise FrameRefused(log.uri, f"{reader} v{version}", f"its newest version is {log.newest()}")


def _needed(needs: Needs, paths: Iterable[str]) -> tuple[NeededFile, ...]:
    """Those of the paths that someone needs."""
    return tuple(NeededFile(path, tuple(sorted(needs.files[path]))) for path in sorted(paths) if path in needs.files)


def _least_retention(expiring: Iterable[Expiring], needs: Needs, now: float) -> float | None:
    """The seconds with which VACUUM just takes nothing needed; None when nothing needed can expire."""
    clocks = [one.since_ms for one in expiring if one.file.path in needs.files]
    return max(0, _ms(now) - min(clocks)) / 1000 if clocks else None


def _next_commit(log: TableLog, mirror: Mirror | None, lost: Iterable[NeededFile]) -> float | None:
    """When the commit was made that the mirror reads next; None when none waits, or it can't be read any more."""
    if mirror is None or mirror.covered + 1 not in log.logged():
        return None
    need = Need(MIRROR, mirror.covered + 1)
    return None if any(need in file.needed_by for file in lost) else log.time_ms(need.version) / 1000


def _oldest_needed(log: TableLog, frames: Iterable[Frame], mirror: Mirror | None) -> int | None:
    waits = mirror is not None and mirror.covered < log.newest()
    needed = [frame.version for frame in frames]
    return min([*needed, *([mirror.covered + 1] if mirror and waits else [])], default=None)


def _statement(kept: Retention, age: float) -> str | None:
    """What keeps files and commits of this age, for a day at least; None where the properties do so now."""
    return None if age <= kept.first.seconds else kept.keeping(age + _MARGIN_SECONDS)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
