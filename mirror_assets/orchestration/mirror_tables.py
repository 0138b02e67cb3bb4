"""Mirrors several tables at a time on one Spark session; a table that fails stops itself only."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import dagster as dg

from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.publish import Published
from mirror_assets.orchestration.asset_names import Kind, asset_key, partitions_name
from mirror_assets.orchestration.assets import source_observation
from mirror_assets.orchestration.materialize import landed_metadata, staged_metadata
from mirror_assets.orchestration.partitions import Surplus, delete_keys
from mirror_assets.orchestration.resources import LandingZone, SourceTables, SparkSessions, project
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TableBusy, unexpected
from mirror_assets.pipeline.process import ProcessedSlice
from mirror_assets.pipeline.rebuild import MirrorWait, mirror_wait
from mirror_assets.pipeline.run import mirror_table
from mirror_assets.pipeline.table_lease import leased
from mirror_assets.source.ranges import EVERYTHING, Range

_TABLES_AT_ONCE = 4


def mirror_tables(
    context: dg.OpExecutionContext,
    settings: Config,
    tables: Sequence[TableSettings],
    zone: LandingZone,
    sources: SourceTables,
    spark: SparkSessions,
    requested: Range = EVERYTHING,
) -> list[TableReport]:
    """Mirror the tables, several at a time; return a report of each, in order. Errors are in the reports."""
    events = SliceEvents(context)

    def one(table: TableSettings) -> TableReport:
        report = TableReport(str(table.name))
        try:
            composed = project(settings, zone, sources, spark)
            table_context, wait = composed.table(table), mirror_wait(composed.mirror(), table.name)
        except MirrorError as error:
            return _failed(context, report, error)
        except Exception as error:
            context.log.exception(f"{table.name} failed")
            return report.failed(unexpected(report.table, error))
        return _mirrored(context, table_context, wait, requested, events, report)

    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        return list(pool.map(one, tables))


def _mirrored(
    context: dg.OpExecutionContext,
    table_context: TableContext,
    wait: MirrorWait,
    requested: Range,
    events: SliceEvents,
    report: TableReport,
) -> TableReport:
    """Mirror the table under its lease and return its report; leave it to another run that has the lease."""

    def rebuilt(published: Published) -> None:
        nonlocal report
        report = report.with_rebuild(published)

    manifest: Manifest | None = None
    try:
        with leased(table_context.store, table_context.name, context.run_id):
            for mirrored in mirror_table(table_context, wait, context.log.info, requested, rebuilt):
                events.log(table_context, mirrored)
                report, manifest = report.with_slice(mirrored), mirrored.published.manifest
    except TableBusy as busy:
        context.log.info(busy.what)
        return report.left_to(busy)
    except MirrorError as error:
        if requested.is_everything:  # that a range can't be had is no fault of the table's
            note_failure(table_context, error, context.log.warning)
        return _failed(context, report, error)
    except Exception as error:
        context.log.exception(f"{table_context.name} failed")
        failed = unexpected(report.table, error)
        note_failure(table_context, failed, context.log.warning)
        return report.failed(failed)
    if manifest is not None:
        events.forget_oldest(table_context, manifest)
    return report


def _failed(context: dg.OpExecutionContext, report: TableReport, error: MirrorError) -> TableReport:
    context.log.error(str(error))  # it says what to do; where it was raised says nothing more
    return report.failed(error)


class SliceEvents:
    """Logs a slice as the events of its assets, for runs that are no asset runs; several tables may log at once."""

    def __init__(self, context: dg.OpExecutionContext) -> None:
        """Log into the run of this context."""
        self._context = context
        self._lock = threading.Lock()

    def log(self, table_context: TableContext, mirrored: ProcessedSlice) -> None:
        """Log one slice: its partition, then source, change_feed with its checks, and landing_zone.

        A snapshot in chunks is logged with its last chunk.
        """
        if mirrored.published.manifest.loading is not None:
            return
        key = mirrored.record.slice
        feed, zone = asset_key(Kind.CHANGE_FEED, table_context.name), asset_key(Kind.LANDING_ZONE, table_context.name)
        observed = source_observation(table_context.name, mirrored.source, mirrored.planned)
        staged = dg.AssetMaterialization(feed, partition=key, metadata=staged_metadata(table_context, mirrored.record))
        landed = dg.AssetMaterialization(
            zone, partition=key, metadata=landed_metadata(table_context, mirrored.published)
        )
        with self._lock:
            self._context.instance.add_dynamic_partitions(partitions_name(table_context.name), [key])
            self._context.log_event(observed)
            self._context.log_event(staged)
            for result in mirrored.results:
                evaluation = dg.AssetCheckEvaluation(
                    feed, result.check, passed=result.passed, metadata=dict(result.figures)
                )
                self._context.log_event(evaluation)  # type: ignore[arg-type]  # it is recorded; the annotation lags
            self._context.log_event(landed)

    def forget_oldest(self, table_context: TableContext, landed: Manifest) -> None:
        """Delete the table's oldest partitions beyond `partitions.keep`."""
        surplus = Surplus(table_context.name, table_context.table.partitions.keep)
        with self._lock:
            old = surplus.keys(self._context.instance, 0, landed.epoch, landed.covered)
            delete_keys(self._context.instance, table_context.name, old)
