"""Find the consumers that need older versions of a table: semantic models by their frames, the mirror, the history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mirror_assets.config import Changes, Config, DirectLakeSettings, FramesOf, TableSettings
from mirror_assets.direct_lake.errors import FramesUnreadable
from mirror_assets.direct_lake.log_history import committed_by
from mirror_assets.direct_lake.vacuum.model_frames import Frame, exported_frames, frame_at
from mirror_assets.direct_lake.vacuum.requirements import MIRROR, ChangeSource, Mirror, RetentionConsumers
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan, plan_vacuum, vacuum_of
from mirror_assets.history.history_log import HistoryLog
from mirror_assets.landing.format import Manifest
from mirror_assets.source.ranges import TimePoint, VersionPoint
from mirror_assets.source.table_log import TableLog

_CHANGE_SOURCES = {
    Changes.FEED: ChangeSource.FEED,
    Changes.ROW_TRACKING: ChangeSource.ROW_TRACKING,
    Changes.APPEND_ONLY: ChangeSource.APPEND_ONLY,
}


def source_guard(
    config: Config, table: TableSettings, log: TableLog, manifest: Manifest | None, now: float
) -> VacuumPlan:
    """Return what VACUUM would delete at `now` (seconds since 1970) that frames, the mirror or the history need.

    Raises FramesUnreadable, frame_refused, and what the plan and the logs raise.
    """
    return vacuum_of(log, now, source_consumers(config, table, log, manifest))


def source_consumers(
    config: Config, table: TableSettings, log: TableLog, manifest: Manifest | None
) -> RetentionConsumers:
    """Return the consumers of the source: its frames, a snapshot that is being loaded, and the commits still to read.

    Raises FramesUnreadable and frame_refused.
    """
    frames = named_frames(table.direct_lake, FramesOf.SOURCE, log)
    loading = manifest.loading.key.last if manifest and manifest.loading else None
    if loading is not None and loading <= log.newest():
        frames = (*frames, Frame(MIRROR, loading))
    return RetentionConsumers(frames, _mirror(config, table, log, manifest))


def mirror_guard(table: TableSettings, log: TableLog, now: float) -> VacuumPlan:
    """Return what VACUUM would delete of the mirror's own table that frames need. Raises what `source_guard` raises."""
    return plan_vacuum(log, now, named_frames(table.direct_lake, FramesOf.MIRROR, log))


def named_frames(settings: DirectLakeSettings, of: FramesOf, log: TableLog) -> tuple[Frame, ...]:
    """Return the frames that the settings name, if they are frames of this table; read exported frames on each call.

    Raises FramesUnreadable and frame_refused.
    """
    if settings.frames_of is not of:
        return ()
    return frames_of(log, settings.frames, settings.exports, settings.model_table)


def frames_of(
    log: TableLog, points: Sequence[str], exports: Sequence[Path], model_table: str | None
) -> tuple[Frame, ...]:
    """Return the frames at `points` (versions or times) and in `exports` (files with answers of DAX queries).

    Raises FramesUnreadable and frame_refused.
    """
    named = tuple(frame_at(log, point) for point in points)
    texts = {str(path): _text(path) for path in exports}
    return (*named, *exported_frames(texts, model_table)) if texts else named


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FramesUnreadable(str(path), f"it can't be read ({error})") from error


def _mirror(config: Config, table: TableSettings, log: TableLog, manifest: Manifest | None) -> Mirror | None:
    """Return the oldest version that the mirror or the history has covered; None if neither needs the source's log.

    A covered version newer than the source's newest one belongs to an earlier table at this place, and doesn't count.
    """
    mirrored = _covered_by_mirror(table, log, manifest)
    kept = _covered_by_history(config, table)
    covered = [version for version in (mirrored, kept) if version is not None and version <= log.newest()]
    if not covered:
        return None
    return Mirror(min(covered), _CHANGE_SOURCES[table.changes] if kept is None else ChangeSource.ANY)


def _covered_by_mirror(table: TableSettings, log: TableLog, manifest: Manifest | None) -> int | None:
    """Return the version that the mirror has covered or is loading; before its first run, the one before `start`."""
    if manifest is not None:
        return manifest.loading.key.last if manifest.loading else manifest.covered
    if isinstance(table.start, VersionPoint):
        return table.start.version - 1
    if isinstance(table.start, TimePoint):
        before = committed_by(log, table.start.time_ms - 1)
        return -1 if before is None else before
    return None


def _covered_by_history(config: Config, table: TableSettings) -> int | None:
    if not table.keeps_history:
        return None
    uri = config.history_uri(table.name)
    newest = HistoryLog(str(table.name), uri, config.access(uri)).newest()
    return newest.last if newest else None
