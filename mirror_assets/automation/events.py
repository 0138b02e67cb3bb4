"""Logs what happened to a slice as the events of its assets, for runs that are no asset runs."""

from __future__ import annotations

import threading

import dagster as dg

from mirror_assets.assets.metadata import landed_metadata, staged_metadata
from mirror_assets.assets.names import Kind, asset_key, slices_of
from mirror_assets.assets.source import source_observation
from mirror_assets.mirroring.run import MirroredSlice
from mirror_assets.mirroring.work import TableWork


class SliceEvents:
    """Writes a slice's partition, materializations and check results; several tables may log at once."""

    def __init__(self, context: dg.OpExecutionContext) -> None:
        """Log into the run of this context."""
        self._context = context
        self._lock = threading.Lock()

    def log(self, work: TableWork, mirrored: MirroredSlice) -> None:
        """Log one slice: partition first, then its source, then change_feed with its checks, then landing_zone.

        A snapshot in chunks is logged with the last of them.
        """
        if mirrored.published.manifest.loading is not None:
            return
        key = mirrored.record.slice
        feed, zone = asset_key(Kind.CHANGE_FEED, work.name), asset_key(Kind.LANDING_ZONE, work.name)
        observed = source_observation(work.name, mirrored.source, mirrored.planned)
        staged = dg.AssetMaterialization(feed, partition=key, metadata=staged_metadata(work, mirrored.record))
        landed = dg.AssetMaterialization(zone, partition=key, metadata=landed_metadata(work, mirrored.published))
        with self._lock:
            self._context.instance.add_dynamic_partitions(_partitions(work), [key])
            self._context.log_event(observed)
            self._context.log_event(staged)
            for finding in mirrored.findings:
                evaluation = dg.AssetCheckEvaluation(
                    feed, finding.check, passed=finding.passed, metadata=dict(finding.figures)
                )
                self._context.log_event(evaluation)  # type: ignore[arg-type]  # it is recorded; the annotation lags
            self._context.log_event(landed)


def _partitions(work: TableWork) -> str:
    name = slices_of(work.name).name
    if name is None:
        raise TypeError("dynamic partitions without a name")
    return name
