"""Logs what happened to a slice as the events of its assets, for runs that are no asset runs."""

from __future__ import annotations

import threading

import dagster as dg

from mirror_assets.assets.metadata import landed_metadata, staged_metadata
from mirror_assets.assets.names import Kind, asset_key, partitions_name
from mirror_assets.assets.source import source_observation
from mirror_assets.automation.partitions import Surplus, delete_keys
from mirror_assets.landing.format import Manifest
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
            self._context.instance.add_dynamic_partitions(partitions_name(work.name), [key])
            self._context.log_event(observed)
            self._context.log_event(staged)
            for finding in mirrored.findings:
                evaluation = dg.AssetCheckEvaluation(
                    feed, finding.check, passed=finding.passed, metadata=dict(finding.figures)
                )
                self._context.log_event(evaluation)  # type: ignore[arg-type]  # it is recorded; the annotation lags
            self._context.log_event(landed)

    def forget_oldest(self, work: TableWork, landed: Manifest) -> None:
        """Delete the oldest of the table's keys beyond those that are to be kept."""
        surplus = Surplus(work.name, work.table.partitions.keep)
        with self._lock:
            old = surplus.keys(self._context.instance, 0, landed.life, landed.covered)
            delete_keys(self._context.instance, work.name, old)
