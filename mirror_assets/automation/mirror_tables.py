"""Mirrors several tables at a time on one Spark session; a table that fails stops itself only."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import dagster as dg

from mirror_assets.automation.events import SliceEvents
from mirror_assets.automation.report import TableReport
from mirror_assets.automation.waiting import mirror_wait
from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.publish import Published
from mirror_assets.mirroring.errors import TableBusy, Unexpected
from mirror_assets.mirroring.failures import note_failure
from mirror_assets.mirroring.lease import leased
from mirror_assets.mirroring.rebuild import MirrorWait
from mirror_assets.mirroring.run import mirror_table
from mirror_assets.mirroring.work import TableWork
from mirror_assets.resources.catalog import mirror_of, table_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables
from mirror_assets.resources.spark import SparkSessions
from mirror_assets.source.ranges import EVERYTHING, Range

_TABLES_AT_ONCE = 4


def mirror_tables(
    context: dg.OpExecutionContext,
    settings: Config,
    tables: Sequence[TableSettings],
    zone: LandingZone,
    sources: SourceTables,
    spark: SparkSessions,
    asked: Range = EVERYTHING,
) -> list[TableReport]:
    """A report of every table, in order; errors are in the reports."""
    events = SliceEvents(context)

    def one(table: TableSettings) -> TableReport:
        report = TableReport(str(table.name))
        try:
            work = table_work(settings, table, zone, sources, spark)
            wait = mirror_wait(mirror_of(settings, zone), table.name)
        except MirrorError as error:
            return _failed(context, report, error)
        except Exception as error:
            context.log.exception(f"{table.name} failed")
            return report.failed(Unexpected(report.table, error))
        return _mirrored(context, work, wait, asked, events, report)

    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        return list(pool.map(one, tables))


def _mirrored(
    context: dg.OpExecutionContext,
    work: TableWork,
    wait: MirrorWait,
    asked: Range,
    events: SliceEvents,
    report: TableReport,
) -> TableReport:
    """The report of the table, mirrored under its lease; at once where another run has it, which does the work."""

    def rebuilt(published: Published) -> None:
        nonlocal report
        report = report.with_rebuild(published)

    manifest: Manifest | None = None
    try:
        with leased(work.store, work.name, context.run_id):
            for mirrored in mirror_table(work, wait, context.log.info, asked, rebuilt):
                events.log(work, mirrored)
                report, manifest = report.with_slice(mirrored), mirrored.published.manifest
    except TableBusy as busy:
        context.log.info(busy.what)
        return report.left_to(busy)
    except MirrorError as error:
        if asked.is_everything:  # that a range can't be had is no fault of the table's
            note_failure(work, error, context.log.warning)
        return _failed(context, report, error)
    except Exception as error:
        context.log.exception(f"{work.name} failed")
        unexpected = Unexpected(report.table, error)
        note_failure(work, unexpected, context.log.warning)
        return report.failed(unexpected)
    if manifest is not None:
        events.forget_oldest(work, manifest)
    return report


def _failed(context: dg.OpExecutionContext, report: TableReport, error: MirrorError) -> TableReport:
    context.log.error(str(error))  # it says what to do; where it was raised says nothing more
    return report.failed(error)
