"""Finds tables: `init` surveys a lake and writes a first mirror.yaml, the rules of `discover` add tables to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirror_assets.feature import Feature

if TYPE_CHECKING:
    import click

    from mirror_assets.config.discovered import When
    from mirror_assets.config.model import Config
    from mirror_assets.config.rules import Rule
    from mirror_assets.settings import Section


class _Init(Feature):
    def settings(self) -> type[Section]:
        from mirror_assets.features.init.discover_rule import DiscoverSettings

        return DiscoverSettings

    def rules(self) -> Sequence[Rule]:
        from mirror_assets.features.init.discover_rule import useful_rules

        return (useful_rules,)

    def reads(self, config: Config) -> Sequence[str]:
        from mirror_assets.features.init.discover_rule import DiscoverSettings, FromStore

        places = (rule.place for rule in DiscoverSettings.of(config).discover)
        return [config.stores[place.store].root for place in places if isinstance(place, FromStore)]

    def with_found_tables(self, config: Config, when: When) -> Config:
        from mirror_assets.features.init.discover_rule import DiscoverSettings

        if not DiscoverSettings.of(config).discover:
            return config
        from mirror_assets.features.init.find_tables import find_tables

        return find_tables(config, when)

    def commands(self) -> Sequence[click.Command]:
        from mirror_assets.features.init.commands import discover, init

        return (init, discover)


FEATURE = _Init()
