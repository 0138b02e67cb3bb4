"""Report how Direct Lake reads a Delta table: guardrails, layout, columns, framing, VACUUM and maintenance.

Only the checks and the job use Dagster, and only the job uses Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mirror_assets.feature import Feature, Timetable

if TYPE_CHECKING:
    import click

    from mirror_assets.config.rules import Rule
    from mirror_assets.orchestration.asset_check import Check
    from mirror_assets.orchestration.dagster_internals import Job
    from mirror_assets.orchestration.mirror_assets import MirrorAssets
    from mirror_assets.settings import Section

MAINTENANCE = "maintenance"


class _DirectLake(Feature):
    def table_settings(self) -> type[Section]:
        from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeTable

        return DirectLakeTable

    def rules(self) -> Sequence[Rule]:
        from mirror_assets.features.direct_lake.direct_lake_settings import no_vended_maintenance

        return (no_vended_maintenance,)

    def commands(self) -> Sequence[click.Command]:
        from mirror_assets.features.direct_lake.commands import direct_lake

        return (direct_lake,)

    def checks(self) -> Sequence[Check]:
        from mirror_assets.features.direct_lake.with_dagster.direct_lake_checks import DIRECT_LAKE_CHECKS

        return DIRECT_LAKE_CHECKS

    def jobs(self, assets: MirrorAssets) -> Sequence[Job]:
        from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeTable

        tables = [table for table in assets.config.all_tables() if DirectLakeTable.of(table).maintenance]
        if not tables:
            return ()
        from mirror_assets.features.direct_lake.with_dagster.maintenance_job import maintenance_job

        return (maintenance_job(assets, tables),)

    def timetables(self) -> Mapping[str, Timetable]:
        # Sundays, after the histories: models reload rewritten files, so rarely is better (reference `direct-lake` §4).
        return {MAINTENANCE: Timetable("0 5 * * 0")}


FEATURE = _DirectLake()
