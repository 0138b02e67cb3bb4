"""mirror.yaml as a typed model: every setting, what it means and its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import Field, PrivateAttr, model_validator

from mirror_assets.config.access import access_to, store_of
from mirror_assets.config.alerts import AlertsConfig
from mirror_assets.config.automation import AutomationConfig
from mirror_assets.config.catalogs import CatalogAddress, CatalogConfig
from mirror_assets.config.discover_rule import DiscoverRule, FromStore
from mirror_assets.config.discovered import Discovered
from mirror_assets.config.document import Origin
from mirror_assets.config.errors import ConfigInvalid, Problem, TableUnknown
from mirror_assets.config.locate import InSpark, last_address, locate
from mirror_assets.config.metrics import MetricsConfig
from mirror_assets.config.places import (
    HISTORY_PATH,
    MIRROR_PATH,
    STAGING_PATH,
    HistoryConfig,
    LandingZoneConfig,
    MirrorConfig,
)
from mirror_assets.config.setting_values import Folder, Section, SparkName, SparkValue, TableKey, Text, is_uri
from mirror_assets.config.stores import StoreConfig
from mirror_assets.config.table_settings import (
    CatalogTable,
    StorePath,
    TableConfig,
    TableDefaults,
    TableSettings,
)
from mirror_assets.landing.names import TableName
from mirror_assets.source.access import Access, Located
from mirror_assets.storage.lake.lake_store import LakeStore


class SparkConfig(Section):
    """Additions to the Spark session. `${NAME}` stays as it is written and is replaced when a session opens."""

    settings: dict[SparkName, SparkValue] = Field(default_factory=dict, description="Spark settings by name.")
    jars_folder: Folder | None = Field(
        default=None, description="Folder with the JARs of all packages; null: Spark downloads them once."
    )


class Config(Section):
    """mirror.yaml."""

    landing_zone: LandingZoneConfig = Field(description="Where landing files go.")
    mirror: MirrorConfig = Field(default_factory=MirrorConfig, description="Where the tables are replicated.")
    history: HistoryConfig = Field(default_factory=HistoryConfig, description="Where change feeds are retained.")
    spark: SparkConfig = Field(default_factory=SparkConfig, description="Additions to the Spark session.")
    automation: AutomationConfig = Field(default_factory=AutomationConfig, description="How Dagster mirrors by itself.")
    alerts: AlertsConfig = Field(default_factory=AlertsConfig, description="Receivers of alerts.")
    metrics: MetricsConfig = Field(default_factory=MetricsConfig, description="Where runs tell metrics and traces.")
    stores: dict[Text, StoreConfig] = Field(default_factory=dict, description="Where source tables lie, by name.")
    catalogs: dict[Text, CatalogConfig] = Field(
        default_factory=dict, description="Catalogs that source tables are in, by name."
    )
    defaults: TableDefaults = Field(default_factory=TableDefaults, description="Settings of every table.")
    discover: tuple[DiscoverRule, ...] = Field(default=(), description="Rules that find tables.")
    tables: dict[TableKey, TableConfig] = Field(default_factory=dict, description="Tables by their name in the mirror.")
    _origin: Origin = PrivateAttr(default_factory=Origin)
    # To merge and validate hundreds of tables at each tick would cost more than the tick.
    _merged: dict[str, TableSettings] = PrivateAttr(default_factory=dict)
    _discovered: Discovered = PrivateAttr(default_factory=Discovered)

    @model_validator(mode="before")
    @classmethod
    def _place_defaults(cls, data: object) -> object:
        """Write out default paths, so that they too are relative to the file's folder."""
        if not isinstance(data, dict):
            return data
        settings = {"mirror": {}, "history": {}, **data}
        settings = _with_default(settings, STAGING_PATH, "landing_zone", "onelake", "staging_path")
        settings = _with_default(settings, HISTORY_PATH, "history", "path")
        mirror = settings["mirror"]
        in_fabric = isinstance(mirror, dict) and "fabric" in mirror
        return settings if in_fabric else _with_default(settings, MIRROR_PATH, "mirror", "path")

    def model_post_init(self, context: object, /) -> None:
        """Remember the file, and the line of each setting."""
        if isinstance(context, Origin):
            self._origin = context

    @property
    def file(self) -> Path:
        """The file that was read."""
        return self._origin.file

    @property
    def discovered(self) -> Discovered:
        """What the rules of `discover` have found; `tables` has those that are mirrored."""
        return self._discovered

    @property
    def named_tables(self) -> dict[str, TableConfig]:
        """The tables that are written in the file."""
        found = self._rule_of
        return {name: table for name, table in self.tables.items() if name not in found}

    def with_found(self, discovered: Discovered, tables: Mapping[str, TableConfig]) -> Config:
        """Return the configuration with these found tables in place of others, behind those of the file."""
        copied = self.model_copy(update={"tables": {**self.named_tables, **dict(sorted(tables.items()))}})
        copied._merged, copied._discovered = {}, discovered  # noqa: SLF001 its own
        return copied

    @property
    def _rule_of(self) -> dict[str, int]:
        """The rules of the found tables, by name."""
        return {found.name: found.rule for found in self._discovered.tables if found.state.is_mirrored}

    @property
    def names(self) -> tuple[TableName, ...]:
        """Names of all tables, in the file's order."""
        return tuple(TableName.parse(name) for name in self.tables)

    def table(self, name: TableName | str) -> TableSettings:
        """Return the table's own settings over the defaults, field by field. Raises TableUnknown."""
        known = self._merged.get(str(name))
        if known is None:
            known = self._merged[str(name)] = self._table(str(name))
        return known

    def _table(self, name: str) -> TableSettings:
        own = self.tables.get(name)
        if own is None:
            raise TableUnknown(self.file, name, tuple(self.tables))
        merged = _merge(
            self.defaults.model_dump(exclude_unset=True), own.model_dump(exclude_unset=True, exclude={"source"})
        )
        source = self._address(own.source)
        return TableSettings.model_validate(merged | {"name": TableName.parse(name), "source": source})

    def _address(self, source: StorePath | CatalogTable | str) -> str:
        """Return the address of a source; `load_config` has refused stores and catalogs that are not there."""
        if isinstance(source, CatalogTable):
            return str(CatalogAddress(source.catalog, source.table))
        return source if isinstance(source, str) else self.stores[source.store].table(source.path)

    def access(self, uri: str) -> Access:
        """Return the way to the Delta table at an address, with the identity of its store."""
        return self.locate(uri).access if self.is_of_catalog(uri) else access_to(uri, self._stores)

    def locate(self, source: str, in_spark: InSpark | None = None) -> Located:
        """Return where a source lies; for a table of a catalog, ask that. Raises what `config.locate` raises."""
        return locate(source, self.catalogs, self._stores, in_spark)

    @staticmethod
    def is_of_catalog(source: str) -> bool:
        """Whether a source is a table by its name in a catalog, which has to be asked where it lies."""
        return CatalogAddress.parse(source) is not None

    def lake_stores(self) -> tuple[LakeStore, ...]:
        """Return the stores that the sources and histories lie in, those of one bucket and identity once.

        Tables of a catalog that hands out no credentials may lie in any store of the file, and so may those to come.
        """
        tables, places = self.all_tables(), (rule.place for rule in self.discover)
        roots = (self.stores[place.store].root for place in places if isinstance(place, FromStore))
        uris = [*(table.source for table in tables), *roots]
        if any(table.keeps_history for table in tables):
            uris.append(self.history.path)
        found = [store_of(uri, self._stores) for uri in uris]
        if any(not catalog.is_vending for catalog in self.catalogs.values()):
            found += [store.store for store in self.stores.values()]
        return tuple(dict.fromkeys(store for store in found if store is not None))

    def catalog_packages(self, find: Callable[[str], str | None] | None = None) -> tuple[str, ...]:
        """Return the packages that Spark needs for the tables of catalogs; `find` returns where a source lies.

        By default where it was last known to lie.
        """
        where = find or (lambda source: last_address(source, self.catalogs))
        stores = (store_of(uri, self._stores) for of in self._of_catalogs() if (uri := where(str(of))) is not None)
        return tuple(dict.fromkeys(package for store in stores if store is not None for package in store.packages))

    def _of_catalogs(self) -> tuple[CatalogAddress, ...]:
        """The tables that are named by a catalog."""
        return tuple(of for table in self.all_tables() if (of := CatalogAddress.parse(table.source)) is not None)

    @property
    def _stores(self) -> tuple[StoreConfig, ...]:
        """The stores of the file, and the mirrored tables in Fabric."""
        fabric = self.mirror.fabric
        if fabric is None:
            return tuple(self.stores.values())
        tables = fabric.tables(self.landing_zone.onelake)
        return (*self.stores.values(), StoreConfig(root=tables.abfss, credential=fabric.credential.value))

    def all_tables(self) -> tuple[TableSettings, ...]:
        """Return the effective settings of every table, in the file's order."""
        return tuple(self.table(name) for name in self.names)

    def chosen(self, names: Sequence[str]) -> tuple[TableSettings, ...]:
        """Return the tables of these names, each once, or all where none is named. Raises TableUnknown."""
        return tuple(self.table(name) for name in dict.fromkeys(names)) if names else self.all_tables()

    def history_uri(self, name: TableName) -> str:
        """Return the address of the table's history; its path below `history.path` is that below the landing zone."""
        return f"{self.history.path}/{name.folder}"

    def history_checkpoints(self, name: TableName) -> Path:
        """Return the folder of the stream that keeps the history: beside it, or this file where it is in a store."""
        near = self.file.absolute().parent / "history" if is_uri(self.history.path) else Path(self.history.path)
        return near / "_checkpoints" / name.folder

    def line_of(self, path: str) -> int | None:
        """Return the line of a setting by its dotted path, or of the nearest setting above it."""
        return self._origin.line_of(self._written(path))

    def place(self, path: str) -> str:
        """Return `mirror.yaml:12` for a setting's dotted path."""
        return self._origin.place(self._written(path))

    def _written(self, path: str) -> str:
        """Return where the setting of a found table is written: in the rule that has found it."""
        rules = ((name, rule) for name, rule in self._rule_of.items() if f"{path}.".startswith(f"tables.{name}."))
        return next((f"discover.{rule}" for _, rule in rules), path)

    def invalid(self, problems: tuple[Problem, ...]) -> ConfigInvalid:
        """Return the error for mistakes that only the source or Fabric can show; each gets its setting's line."""
        placed = (
            Problem(of.path, of.message, self.line_of(of.path) if of.line is None else of.line) for of in problems
        )
        return ConfigInvalid(self.file, tuple(placed))


def _with_default(data: dict[str, object], value: str, *steps: str) -> dict[str, object]:
    """Return `data` with the value at these steps, unless it has one, or no mapping to hold it."""
    first, *rest = steps
    if not rest:
        return {first: value} | data
    below = data.get(first)
    return data | {first: _with_default(below, value, *rest)} if isinstance(below, dict) else data


def _merge(defaults: dict[str, object], own: dict[str, object]) -> dict[str, object]:
    """Return `own` over `defaults`, mapping by mapping."""
    merged = defaults | own
    for name, below in defaults.items():
        mine = own.get(name)
        if isinstance(below, dict) and isinstance(mine, dict):
            merged[name] = _merge(below, mine)
    return merged
