"""Find the readers of older versions of a table: models by their frames, the mirror, and the history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.feature import read_by_features
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeTable, FramesOf
from mirror_assets.features.direct_lake.errors import FRAMES_UNREADABLE
from mirror_assets.features.direct_lake.framing import committed_by
from mirror_assets.features.direct_lake.model_frames import Frame, exported_frames, frame_at
from mirror_assets.features.direct_lake.vacuum import MIRROR, MirrorNeeds, RetentionConsumers
from mirror_assets.landing.format import Manifest
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import TimePoint, VersionPoint


def source_consumers(
    config: Config, table: TableSettings, log: DeltaLog, manifest: Manifest | None
) -> RetentionConsumers:
    """Return the readers of the source: its frames, a first load that isn't complete, and commits still to read.

    Before the mirror's first run, its covered version is the one before `start`. A covered version newer than the
    source's newest one belongs to an earlier table at this address, and is ignored.
    Raises SettingError (frames_unreadable, frame_refused), and what the history's log raises.
    """
    frames, loading = table_frames(table, FramesOf.SOURCE, log), manifest.loading if manifest else None
    if manifest is not None:
        mirrored = loading.key.last if loading else manifest.covered
    elif isinstance(table.start, VersionPoint):
        mirrored = table.start.version - 1
    elif isinstance(table.start, TimePoint):
        before = committed_by(log, table.start.time_ms - 1)
        mirrored = -1 if before is None else before
    else:
        mirrored = None
    if loading is not None and loading.key.last <= log.newest():
        frames = (*frames, Frame(MIRROR, loading.key.last))
    kept = read_by_features(config, table)
    covered = [version for version in (mirrored, kept) if version is not None and version <= log.newest()]
    changes = table.changes if kept is None else None
    return RetentionConsumers(frames, MirrorNeeds(min(covered), changes) if covered else None)


def table_frames(table: TableSettings, of: FramesOf, log: DeltaLog) -> tuple[Frame, ...]:
    """Return the frames in the settings, if they are frames of this table; reads exports on each call.

    Raises SettingError (frames_unreadable, frame_refused).
    """
    settings = DirectLakeTable.of(table).direct_lake
    if settings.frames_of is not of:
        return ()
    return named_frames(log, settings.frames, settings.exports, settings.model_table)


def named_frames(
    log: DeltaLog, points: Sequence[str], exports: Sequence[Path], model_table: str | None
) -> tuple[Frame, ...]:
    """Return the frames at `points` (versions or times) and in `exports` (files with results of the DAX query).

    Raises SettingError (frames_unreadable, frame_refused).
    """
    frames = tuple(frame_at(log, point) for point in points)
    texts = {}
    for path in exports:
        try:
            texts[str(path)] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FRAMES_UNREADABLE(source=str(path), why=f"it can't be read ({error})") from error
    return (*frames, *exported_frames(texts, model_table)) if texts else frames
