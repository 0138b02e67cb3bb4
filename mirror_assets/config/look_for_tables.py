"""Puts the tables that `discover` finds into the configuration: from what is remembered, or by looking."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from pathlib import PurePosixPath

from mirror_assets.config.discover_rule import DiscoverRule
from mirror_assets.config.discovered import FoundState, RuleFinding, decide
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import is_uri
from mirror_assets.config.table_settings import TableDefaults
from mirror_assets.discovery.cache import FindingCache
from mirror_assets.discovery.finder import Look, TableFinder
from mirror_assets.errors import MirrorError
from mirror_assets.storage.lake.address import LakeAddress

_LOG = logging.getLogger(__name__)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


class When(Enum):
    """When places are looked at: never, if nothing is known of them, when they are due, or in any case.

    `now` also reads again what was no table a moment ago.
    """

    NEVER = "never"
    UNKNOWN = "unknown"
    REFRESH = "refresh"
    NOW = "now"


def with_found_tables(config: Config, when: When = When.UNKNOWN, environment: Mapping[str, str] = os.environ) -> Config:
    """Return the configuration with the tables that its rules find, in place of those that they found before.

    A place that can't be looked at keeps what is known of it; `Config.discovered` says why. Raises nothing for it.
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
    """Look at the rule's place, if it is time; where nobody can look, what is known stays."""
    finder = around.finder(rule)
    known = cache.read(finder.place)
    if when is When.NEVER or (when is When.UNKNOWN and known is not None):
        return RuleFinding(number, rule, finder.place, known)
    look = Look(lambda path: not rule.excludes(around.whole_path(rule, path)), all_others=when is When.NOW)
    try:
        finding = look.at(finder, known, time.time())
    except MirrorError as error:
        _LOG.warning("%s: tables are not looked for: %s", around.config.place(f"discover.{number}"), error)
        return RuleFinding(number, rule, finder.place, known, str(error))
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

    def finder(self, rule: DiscoverRule) -> TableFinder:
        # It loads deltalake, which a file without rules does not need.
        from mirror_assets.discovery.folders import FolderFinder

        return FolderFinder(self._root(rule), rule.place.path, self.config.access, partial(self.address, rule))

    def address(self, rule: DiscoverRule, path: str) -> str:
        address = self.config.stores[rule.place.store].table(path)
        if _ESCAPE.search(path) or (is_uri(address) and LakeAddress.parse(address).uri != address):
            raise ValueError(f"readers of Delta tables take {path!r} for another path; rename its folder")
        return address

    def whole_path(self, rule: DiscoverRule, path: str) -> PurePosixPath:
        root = self.config.stores[rule.place.store]
        address = root.address
        name = PurePosixPath(root.root).name if address is None else PurePosixPath(address.container, address.path).name
        return PurePosixPath(name, path)

    def own_place(self, address: str) -> str | None:
        return next((what for what, folder in self._own if _holds(folder, address)), None)

    def _root(self, rule: DiscoverRule) -> str:
        return self.config.stores[rule.place.store].root

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
    if is_uri(folder) != is_uri(address):
        return False
    if is_uri(folder):
        return LakeAddress.parse(folder).holds(LakeAddress.parse(address))
    return PurePosixPath(address).is_relative_to(folder)
