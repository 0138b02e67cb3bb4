"""The change feed of a source, retained in an append-only Delta table (docs/history.md); it needs no landing zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mirror_assets.feature import Feature, FeatureAsset, Timetable

if TYPE_CHECKING:
    import click
    import dagster as dg

    from mirror_assets.config.document import Steps
    from mirror_assets.config.model import Config
    from mirror_assets.config.rules import Rule
    from mirror_assets.config.table_settings import TableSettings
    from mirror_assets.orchestration.asset_check import Check
    from mirror_assets.orchestration.dagster_internals import Job
    from mirror_assets.orchestration.mirror_assets import MirrorAssets
    from mirror_assets.settings import Section

HISTORY = "history"


class _History(Feature):
    def settings(self) -> type[Section]:
        from mirror_assets.features.history.history_settings import HistorySettings

        return HistorySettings

    def table_settings(self) -> type[Section]:
        from mirror_assets.features.history.history_settings import HistoryTable

        return HistoryTable

    def rules(self) -> Sequence[Rule]:
        from mirror_assets.features.history.history_settings import separate_histories

        return (separate_histories,)

    def folders(self) -> Mapping[Steps, str]:
        from mirror_assets.features.history.history_settings import HISTORY_PATH

        return {("history", "path"): HISTORY_PATH}

    def places(self, config: Config) -> Mapping[str, str]:
        from mirror_assets.features.history.history_settings import HistorySettings

        return {"the folder of the histories": HistorySettings.of(config).history.path}

    def reads(self, config: Config) -> Sequence[str]:
        is_kept = any(_keeps(table) for table in config.all_tables())
        return list(self.places(config).values()) if is_kept else ()

    def asset_of(self, config: Config, table: TableSettings) -> FeatureAsset | None:
        if not _keeps(table):
            return None
        from mirror_assets.features.history.history_settings import HistoryTable
        from mirror_assets.features.history.with_dagster.opening import history_uri

        paragraphs = (
            f"Change feed of {table.name}, retained in an append-only Delta table.",
            f"By `{HistoryTable.of(table).history.value}`",
            f"`mirror-assets history --table {table.name}`",
        )
        return FeatureAsset(history_uri(config, table.name), frozenset({"pyspark", "deltalake"}), paragraphs)

    def read_up_to(self, config: Config, table: TableSettings) -> int | None:
        if not _keeps(table):
            return None
        from mirror_assets.features.history.with_dagster.opening import history_log

        newest = history_log(config, table.name).newest()
        return newest.last if newest else None

    def reads_daily(self, table: TableSettings) -> bool:
        return _keeps(table)

    def assets(self, assets: MirrorAssets, table: TableSettings) -> Iterable[dg.AssetsDefinition]:
        if not _keeps(table):
            return ()
        from mirror_assets.features.history.with_dagster.history_asset import history_asset

        return (history_asset(assets, table),)

    def checks(self) -> Sequence[Check]:
        from mirror_assets.features.history.with_dagster.history_check import RETENTION_CHECK

        return (RETENTION_CHECK,)

    def jobs(self, assets: MirrorAssets) -> Sequence[Job]:
        tables = [table for table in assets.config.all_tables() if _keeps(table)]
        if not tables:
            return ()
        from mirror_assets.features.history.with_dagster.history_asset import history_job

        return (history_job(assets, tables),)

    def timetables(self) -> Mapping[str, Timetable]:
        # Every night: the feed of a commit can be read for a week by default, so several nights may be missed.
        return {HISTORY: Timetable("0 3 * * *", hours=24)}

    def commands(self) -> Sequence[click.Command]:
        from mirror_assets.features.history.commands import history

        return (history,)


def _keeps(table: TableSettings) -> bool:
    from mirror_assets.features.history.history_settings import HistoryTable

    return HistoryTable.of(table).keeps_history


FEATURE = _History()
