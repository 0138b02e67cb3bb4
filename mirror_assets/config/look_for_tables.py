"""Puts the tables that `discover` finds into the configuration: from what is remembered, or by looking."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath

from mirror_assets.config.catalogs import CatalogAddress
from mirror_assets.config.discover_rule import DiscoverRule
from mirror_assets.config.discovered import FoundState, RuleFinding, decide
from mirror_assets.config.locate import last_address
from mirror_assets.config.model import Config
from mirror_assets.config.rule_places import place_of
from mirror_assets.config.setting_values import is_uri
from mirror_assets.config.table_settings import TableDefaults
from mirror_assets.discovery.cache import FindingCache
from mirror_assets.discovery.finder import Look, RulePlace
from mirror_assets.discovery.finding import PlaceFinding
from mirror_assets.errors import MirrorError
from mirror_assets.storage.lake.address import LakeAddress

_LOG = logging.getLogger(__name__)


class When(Enum):
    """When places are scanned: never, if nothing is known of them, when they are due, or in any case.

    `now` also reads again what was no table a moment ago; `accept` does so, and drops all tables that are not listed,
    however many they are.
    """

    NEVER = "never"
    UNKNOWN = "unknown"
    REFRESH = "refresh"
    NOW = "now"
    ACCEPT = "accept"


def with_found_tables(config: Config, when: When = When.UNKNOWN, environment: Mapping[str, str] = os.environ) -> Config:
    """Return the configuration with the tables that its rules find, in place of those that they found before.

    A place that can't be scanned keeps its known tables; `Config.discovered` says why. Nothing is raised for it.
    """
    if not config.discover:
        return config
    around, cache = _Around(config), FindingCache.of(config.file, environment)
    findings = [_finding(around, number, rule, cache, when) for number, rule in enumerate(config.discover)]
    found, tables = decide(around, findings)
    for row in found.tables:
        if row.state is FoundState.NAME_TAKEN:
            _LOG.warning("%s: %s is not mirrored as %s: %s", config.file, row.address, row.name, row.reason)
    return config.with_found(found, tables)


def _finding(around: _Around, number: int, rule: DiscoverRule, cache: FindingCache, when: When) -> RuleFinding:
    """Scan the rule's place if it is due; keep what is known if the scan fails."""
    place = around.place(rule)
    finder = place.finder()
    known = cache.read(finder.place)
    if when is When.NEVER or (when is When.UNKNOWN and known is not None and known.listed_at > 0):
        return RuleFinding(number, rule, finder.place, known)
    look = Look(
        lambda path: not rule.excludes(place.whole_path(path)),
        all_others=when in (When.NOW, When.ACCEPT),
        accepts_loss=when is When.ACCEPT,
    )
    was = known.trouble if known else ""
    try:
        finding = look.at(finder, known, time.time())
    except MirrorError as error:
        update = {"trouble": str(error), "code": error.code.value}
        finding = (known or PlaceFinding(place=finder.place, listed_at=0)).model_copy(update=update)
    if finding.trouble and finding.trouble != was:
        _LOG.warning("%s: the tables stay as they were: %s", around.config.place(f"discover.{number}"), finding.trouble)
    cache.write(finding)
    return RuleFinding(number, rule, finder.place, finding)


@dataclass(frozen=True)
class _Around:
    """The configuration as `decide` asks it."""

    config: Config

    @property
    def defaults(self) -> TableDefaults:
        return self.config.defaults

    @cached_property
    def named(self) -> dict[str, str]:
        return {name: self.config.table(name).source for name in self.config.named_tables}

    def place(self, rule: DiscoverRule) -> RulePlace:
        return place_of(self.config, rule)

    def lies_at(self, address: str) -> str:
        return last_address(address, self.config.catalogs) or address

    def own_place(self, address: str) -> str | None:
        lies_at = self.lies_at(address)
        return next((what for what, folder in self._own if _holds(folder, lies_at)), None)

    @cached_property
    def _own(self) -> list[tuple[str, str]]:
        """The places that this project writes, in words, and their addresses."""
        config, zone = self.config, self.config.landing_zone
        found = [("the folder of the histories", config.history.path)]
        found += [("the landing zone", str(zone.path))] if zone.path else []
        found += [("the landing zone", zone.onelake.address.abfss)] if zone.onelake else []
        fabric = config.mirror.fabric
        mirror = str(config.mirror.path) if fabric is None else fabric.tables(zone.onelake).abfss
        return [*found, ("the mirror", mirror)]


def _holds(folder: str, address: str) -> bool:
    if is_uri(folder) != is_uri(address) or CatalogAddress.parse(address) is not None:
        return False
    if is_uri(folder):
        return LakeAddress.parse(folder).holds(LakeAddress.parse(address))
    return PurePosixPath(address).is_relative_to(folder)
