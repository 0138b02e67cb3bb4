"""The lake that `init` surveys: a store, a folder or (in `catalog_lake`) a catalog, and the tables found in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pydantic

from mirror_assets.config import Config
from mirror_assets.config.access import access_to
from mirror_assets.config.catalogs import CatalogConfig
from mirror_assets.config.document import Origin
from mirror_assets.config.setting_values import is_uri
from mirror_assets.config.stores import StoreConfig
from mirror_assets.config.table_settings import CatalogTable, StorePath
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.init.errors import lake_unfit, no_tables
from mirror_assets.source.access import Access
from mirror_assets.source.find_tables import find_tables

STORE = "lake"
_LAST = re.compile(r"[/\\]+")
# Folders that the file written beside them names, so that they are no part of the lake.
_OURS = ("landing", "mirror", "history", "staging")


@dataclass(frozen=True)
class LakeTable:
    """A table that was found. `parts` are its path's names, for its name in the mirror.

    `declared_keys` are the primary key that a catalog declares. `hindrance` is why it is unknown whether it is a table.
    `sql_name` is its name in the catalog as SQL writes it; None of a table that SQL names by its address.
    """

    path: str
    source: StorePath | CatalogTable
    parts: tuple[str, ...]
    declared_keys: tuple[str, ...] = ()
    hindrance: str | None = None
    sql_name: str | None = None


@dataclass(frozen=True)
class Lake:
    """The stores, catalogs and Spark settings as mirror.yaml has them, and the tables in order of their paths."""

    root: str
    stores: Mapping[str, StoreConfig]
    tables: tuple[LakeTable, ...]
    catalogs: Mapping[str, CatalogConfig] = field(default_factory=dict)
    spark_settings: Mapping[str, str] = field(default_factory=dict)


def open_lake(place: str, settings: Mapping[str, object], depth: int, beside: Path | None = None) -> Lake:
    """Return the tables at most `depth` folders below a folder or a store's address.

    `settings` are those of a store but its root. What a mirror.yaml in the folder `beside` writes is no part of it.
    Raises SettingError for settings that don't fit the store, and where no table is; what `find_tables` raises.
    """
    store = open_store(place, settings)
    found = find_tables(_access(store), depth)
    root = str(store.root)
    parts = tuple(filter(None, _LAST.split(store.address.path if store.address else root)))
    tables = tuple(
        LakeTable(
            table.path,
            StorePath(STORE, table.path),
            (*parts[-1:], *filter(None, table.path.split("/"))),
            hindrance=table.hindrance,
        )
        for table in found
        if not _is_ours(root, table.path, beside)
    )
    if any(table.path == "" for table in found):
        raise lake_unfit(place, "it is a table itself", f"name the folder that holds it, {_above(place)}.")
    if not tables:
        raise no_tables(place, depth)
    return Lake(root, {STORE: store}, tables)


def lake_config(lake: Lake, file: Path, tables: Mapping[str, object] | None = None) -> Config:
    """Return a configuration at `file` that reaches these tables of the lake. Raises pydantic.ValidationError."""
    written = {
        "landing_zone": {"path": "./landing"},
        "stores": {name: store.model_dump(exclude_unset=True) for name, store in lake.stores.items()},
        "catalogs": {name: catalog.model_dump(exclude_unset=True) for name, catalog in lake.catalogs.items()},
        "spark": {"settings": dict(lake.spark_settings)},
        "tables": dict(tables or {}),
    }
    return Config.model_validate(written, context=Origin(file))


def open_store(place: str, settings: Mapping[str, object]) -> StoreConfig:
    """Return the store at an address, or a folder, with these settings. Raises lake_unfit."""
    root = place if is_uri(place) else str(Path(place).absolute())
    given = {name: value for name, value in settings.items() if value is not None}
    if "${" in root:
        raise lake_unfit(place, "mirror.yaml takes `${` for an environment variable", "rename the folder.")
    try:
        return StoreConfig.model_validate({"root": root, **given})
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = str(first.get("ctx", {}).get("error", first["msg"]))
        raise lake_unfit(place, why, "correct the address or the options.") from error


def _access(store: StoreConfig) -> Access:
    return access_to(str(store.root), (store,))


def _above(place: str) -> str:
    return place.rstrip("/").rpartition("/")[0] or "."


def _is_ours(root: str, path: str, beside: Path | None) -> bool:
    """Whether the table is in a folder that a mirror.yaml in `beside` writes, and the lake is not named within it."""
    if beside is None or is_uri(root):
        return False
    folder, table = Path(root).resolve(), (Path(root) / path).resolve()
    ours = (beside.resolve() / name for name in _OURS)
    return any(table.is_relative_to(own) and not folder.is_relative_to(own) for own in ours)


def unwritable(path: str) -> SettingError | None:
    """Return why mirror.yaml can't name the path, or None."""
    if "${" in path:
        why = "mirror.yaml takes `${` for an environment variable"
    elif any("\ud800" <= character <= "\udfff" for character in path):
        why = "its name is no UTF-8"
    else:
        return None
    what = f"{path.encode('utf-8', 'backslashreplace').decode()} can't be named: {why}."
    return SettingError(what, "rename the folder.", code=ErrorCode.PATH_REFUSED)
