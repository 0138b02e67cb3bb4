"""The mirrored database in Fabric: its REST API, its tables and their states, and commands to create and start it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mirror_assets.feature import Feature

if TYPE_CHECKING:
    import click

    from mirror_assets.config.model import Config
    from mirror_assets.config.rules import Rule
    from mirror_assets.feature import MirrorPlace
    from mirror_assets.landing.names import TableName
    from mirror_assets.orchestration.asset_check import Check
    from mirror_assets.settings import Section


class _Fabric(Feature):
    def mirror_settings(self) -> type[Section]:
        from mirror_assets.features.fabric.fabric_settings import FabricMirrorSettings

        return FabricMirrorSettings

    def mirror(self, config: Config) -> MirrorPlace | None:
        from mirror_assets.features.fabric.fabric_settings import FabricMirrorSettings

        if FabricMirrorSettings.of(config.mirror).fabric is None:
            return None
        from mirror_assets.features.fabric.fabric_mirror import fabric_place

        return fabric_place(config)

    def mirror_changed(self, config: Config, tables: Sequence[TableName], warn: Callable[[str], None]) -> None:
        from mirror_assets.features.fabric.fabric_settings import FabricMirrorSettings

        fabric = FabricMirrorSettings.of(config.mirror).fabric
        if fabric is not None and fabric.refresh_sql_endpoint:
            from mirror_assets.features.fabric.fabric_mirror import refresh_changed

            refresh_changed(config, tables, warn)

    def rules(self) -> Sequence[Rule]:
        from mirror_assets.features.fabric.fabric_settings import zone_of_fabric

        return (zone_of_fabric,)

    def checks(self) -> Sequence[Check]:
        from mirror_assets.features.fabric.with_dagster.fabric_checks import FABRIC_CHECKS

        return FABRIC_CHECKS

    def commands(self) -> Sequence[click.Command]:
        from mirror_assets.features.fabric.commands import fabric

        return (fabric,)


FEATURE = _Fabric()
