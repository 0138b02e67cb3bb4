"""Mirrors several tables at a time on one Spark session; a table that fails stops itself only."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import dagster as dg

from mirror_assets.automation.events import SliceEvents
from mirror_assets.automation.report import TableReport
from mirror_assets.automation.waiting import mirror_wait
from mirror_assets.config import Config, TableSettings
from mirror_assets.delta.ranges import EVERYTHING, Range
from mirror_assets.errors import MirrorError
from mirror_assets.landing.publish import Published
from mirror_assets.mirroring.errors import Unexpected
from mirror_assets.mirroring.run import mirror_table
from mirror_assets.resources.catalog import mirror_of, table_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables
from mirror_assets.resources.spark import SparkSessions

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

        def rebuilt(published: Published) -> None:
            nonlocal report
            report = report.with_rebuild(published)

        try:
            work = table_work(settings, table, zone, sources, spark)
            wait = mirror_wait(mirror_of(settings, zone), table.name)
            for mirrored in mirror_table(work, wait, context.log.info, asked, rebuilt):
                events.log(work, mirrored)
                report = report.with_slice(mirrored)
        except MirrorError as error:
            context.log.error(str(error))  # noqa: TRY400 it says what to do; where it was raised says nothing more
            return report.failed(error)
        except Exception as error:
            context.log.exception(f"{table.name} failed")
            return report.failed(Unexpected(report.table, error))
        return report

    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        return list(pool.map(one, tables))
