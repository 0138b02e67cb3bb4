"""Where rules look for tables: the folders of a store, or the schemas of a catalog."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from mirror_assets.config.catalogs import CatalogAddress, table_problem
from mirror_assets.config.discover_rule import DiscoverRule, FromCatalog, FromStore
from mirror_assets.config.locate import unity_client
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import is_uri
from mirror_assets.discovery.finder import RulePlace, TableFinder
from mirror_assets.storage.lake.address import LakeAddress

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


def place_of(config: Config, rule: DiscoverRule) -> RulePlace:
    """Return the place of a rule of the configuration."""
    if isinstance(rule.place, FromCatalog):
        return _Catalog(config, rule.place)
    return _Store(config, rule.place)


@dataclass(frozen=True)
class _Store:
    config: Config
    place: FromStore

    def finder(self) -> TableFinder:
        # It loads deltalake, which a file without rules does not need.
        from mirror_assets.discovery.folders import FolderFinder

        root = self.config.stores[self.place.store].root
        return FolderFinder(root, self.place.path, self.config.access, self.address)

    def address(self, path: str) -> str:
        address = self.config.stores[self.place.store].table(path)
        if _ESCAPE.search(path) or (is_uri(address) and LakeAddress.parse(address).uri != address):
            raise ValueError(f"readers of Delta tables take {path!r} for another path; rename its folder")
        return address

    def whole_path(self, path: str) -> PurePosixPath:
        root = self.config.stores[self.place.store]
        address = root.address
        name = PurePosixPath(root.root).name if address is None else PurePosixPath(address.container, address.path).name
        return PurePosixPath(name, path)


@dataclass(frozen=True)
class _Catalog:
    config: Config
    place: FromCatalog

    def finder(self) -> TableFinder:
        from mirror_assets.discovery.catalog_tables import CatalogFinder

        name = self.place.catalog
        client = unity_client(name, self.config.catalogs[name])
        named = f"the catalog {client.catalog} of {client.server}"
        return CatalogFinder(named, client, self.place.schema_name, self.config.access, self.address)

    def address(self, path: str) -> str:
        table = self.place.source(path)["table"]
        if "/" not in path:  # a schema whose tables are not shown
            return str(CatalogAddress(self.place.catalog, table))
        problem = table_problem(self.config.catalogs[self.place.catalog].type.value, table)
        if problem:
            raise ValueError(problem)
        return str(CatalogAddress(self.place.catalog, table))

    def whole_path(self, path: str) -> PurePosixPath:
        return PurePosixPath(self.place.catalog, path)
