"""Builds the place of each rule of `discover`: how to list it, and the address of each path in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mirror_assets.config.model import Config
from mirror_assets.features.init.discover_rule import DiscoverRule, FromCatalog
from mirror_assets.lakes.catalogs import table_problem, unity_client
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.settings import ESCAPE, is_uri

if TYPE_CHECKING:
    from mirror_assets.features.init.found_places import Place


def place_of(config: Config, rule: DiscoverRule) -> Place:
    """Return the place of a rule; it makes no request yet."""
    # These load deltalake, which a file without rules does not need.
    from mirror_assets.features.init.found_places import Place, list_catalog, list_folders

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
