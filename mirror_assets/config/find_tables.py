"""Adds the tables that the rules of `discover` find to the configuration: from the cache, or by a scan."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mirror_assets.config.catalogs import table_problem
from mirror_assets.config.choose_tables import RuleFinding, choose_tables
from mirror_assets.config.discover_rule import DiscoverRule, FromCatalog
from mirror_assets.config.discovered import FoundState
from mirror_assets.config.locate import unity_client
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import ESCAPE, is_uri
from mirror_assets.discovery.cache import FindingCache
from mirror_assets.discovery.finding import PlaceFinding, scan
from mirror_assets.errors import MirrorError
from mirror_assets.storage.lake.address import LakeAddress

if TYPE_CHECKING:
    from mirror_assets.discovery.places import Place

_LOG = logging.getLogger(__name__)


class When(Enum):
    """When places are scanned: never, if nothing is cached, or in any case.

    `now` also reads folders again that were no tables a moment ago. `accept` does the same, and removes all tables that
    are not listed, however many.
    """

    NEVER = "never"
    UNKNOWN = "unknown"
    REFRESH = "refresh"
    NOW = "now"
    ACCEPT = "accept"


def with_found_tables(config: Config, when: When = When.UNKNOWN, environment: Mapping[str, str] = os.environ) -> Config:
    """Return the configuration with the tables that its rules find, in place of those that they found before.

    A place that can't be scanned retains its cached tables; `Config.discovered` has the reason. Raises nothing for it.
    """
    if not config.discover:
        return config
    cache = FindingCache.of(config.file, environment)
    findings = [_finding(config, number, rule, cache, when) for number, rule in enumerate(config.discover)]
    found, tables = choose_tables(config, findings)
    for row in found.tables:
        if row.state is FoundState.NAME_TAKEN:
            _LOG.warning("%s: %s is not mirrored as %s: %s", config.file, row.address, row.name, row.reason)
    return config.with_found(found, tables)


def _finding(config: Config, number: int, rule: DiscoverRule, cache: FindingCache, when: When) -> RuleFinding:
    """Scan the rule's place if it is due; use the cached finding if the scan fails."""
    place = _place(config, rule)
    known = cache.read(place.name)
    if when is When.NEVER or (when is When.UNKNOWN and known is not None and known.listed_at > 0):
        return RuleFinding(number, rule, place, known)
    try:
        finding = scan(
            place,
            known,
            time.time(),
            wanted=lambda path: not rule.excludes(PurePosixPath(place.label, path)),
            all_others=when in (When.NOW, When.ACCEPT),
            accepts_loss=when is When.ACCEPT,
        )
    except MirrorError as error:
        update = {"trouble": str(error), "code": error.code.value}
        finding = (known or PlaceFinding(place=place.name, listed_at=0)).model_copy(update=update)
    if finding.trouble and finding.trouble != (known.trouble if known else ""):
        _LOG.warning("%s: the set of tables is unchanged: %s", config.place(f"discover.{number}"), finding.trouble)
    cache.write(finding)
    return RuleFinding(number, rule, place, finding)


def _place(config: Config, rule: DiscoverRule) -> Place:
    """Return the place of a rule."""
    # These load deltalake, which a file without rules does not need.
    from mirror_assets.discovery.places import Place, list_catalog, list_folders

    if isinstance(rule.place, FromCatalog):
        place, label, pattern = rule.place, rule.place.catalog, rule.place.schema_name
        catalog = config.catalogs[label]
        client = unity_client(label, catalog)

        def table_address(path: str) -> str:
            found = place.source(path)
            # A path without a table is a schema that can't be listed.
            problem = table_problem(catalog.type.value, found.table) if "/" in path else None
            if problem:
                raise ValueError(problem)
            return str(found)

        name = f"the catalog {client.catalog} of {client.server}, schema {pattern}"

        def names(schema: str) -> Iterator[str]:
            return (table.name for table in client.tables(schema))

        listing = partial(list_catalog, client.schemas, names, pattern)
        return Place(name, label, table_address, config.access, listing)

    store, pattern = config.stores[rule.place.store], rule.place.path
    root = store.address

    def folder_address(path: str) -> str:
        address = store.table(path)
        if ESCAPE.search(path) or (is_uri(address) and LakeAddress.parse(address).uri != address):
            raise ValueError(f"readers of Delta tables take {path!r} for another path; rename its folder")
        return address

    own = PurePosixPath(store.root) if root is None else PurePosixPath(root.container, root.path)
    listing = partial(list_folders, config.access(store.root), pattern)
    return Place(f"{store.root} {pattern}", own.name, folder_address, config.access, listing)
