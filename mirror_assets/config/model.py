"""mirror.yaml as a typed model: every setting with its meaning and default."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, PrivateAttr

from mirror_assets.config.discovered import Discovered
from mirror_assets.config.errors import TABLE_UNKNOWN, Problem, config_invalid, did_you_mean
from mirror_assets.config.sections import AutomationConfig, MetricsConfig, MirrorConfig, SparkConfig
from mirror_assets.config.setting_values import PythonName, TableKey
from mirror_assets.config.table_settings import StorePath, TableConfig, TableDefaults, TableSettings
from mirror_assets.config.unset import NOTHING_UNSET, UnsetVariables
from mirror_assets.errors import SettingError
from mirror_assets.feature import Feature, MirrorPlace, SliceCheck, features, own_feature
from mirror_assets.lakes.access import Access, Located, access_to, store_of
from mirror_assets.lakes.catalogs import CatalogConfig, CatalogTable, InSpark, locate
from mirror_assets.lakes.lake_store import LakeStore
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.landing.names import TableName
from mirror_assets.settings import Origin, Section, Text, with_settings
from mirror_assets.zones.landing_zone import LandingZoneConfig, Zone

_WILD = re.compile(r"[*?\[]")


class CoreSections(Section):
    """The settings of mirror.yaml without those of features."""

    landing_zone: LandingZoneConfig = Field(description="Place of the landing files.")
    mirror: MirrorConfig = Field(default={}, validate_default=True, description="Place of the mirrored tables.")
    spark: SparkConfig = Field(default_factory=SparkConfig, description="Additions to the Spark session.")
    automation: AutomationConfig = Field(default_factory=AutomationConfig, description="Sensors and schedules.")
    metrics: MetricsConfig = Field(default_factory=MetricsConfig, description="Export of metrics and traces.")
    stores: dict[Text, StoreConfig] = Field(default_factory=dict, description="Stores of source tables, by name.")
    catalogs: dict[Text, CatalogConfig] = Field(default_factory=dict, description="Catalogs of source tables, by name.")
    defaults: TableDefaults = Field(default_factory=TableDefaults, description="Settings for every table.")
    tables: dict[TableKey, TableConfig] = Field(default_factory=dict, description="Tables by their name in the mirror.")
    features: tuple[PythonName, ...] = Field(default=(), description="Your own checks and features, as `module:name`.")


if TYPE_CHECKING:

    class Sections(CoreSections):
        """The settings of mirror.yaml."""
else:
    Sections = with_settings(CoreSections, [feature.settings() for feature in features()])


class Config(Sections):
    """mirror.yaml, and the tables that its rules have found."""

    _origin: Origin = PrivateAttr(default_factory=Origin)
    # Merging and validating hundreds of tables at each tick would cost more than the tick.
    _merged: dict[str, TableSettings] = PrivateAttr(default_factory=dict)
    _discovered: Discovered = PrivateAttr(default_factory=Discovered)
    _own: tuple[Feature, ...] = PrivateAttr(default=())
    _is_checked: bool = PrivateAttr(default=False)
    _unset: UnsetVariables = PrivateAttr(default=NOTHING_UNSET)

    def model_post_init(self, context: object, /) -> None:
        """Store the file, and the line of each setting."""
        if isinstance(context, Origin):
            self._origin = context

    @property
    def file(self) -> Path:
        """The file that was read."""
        return self._origin.file

    @property
    def is_checked(self) -> bool:
        """Whether all rules were applied, as for each configuration that was read, and for none made in Python."""
        return self._is_checked

    def checked(self, unset: UnsetVariables = NOTHING_UNSET) -> Config:
        """Return the configuration as a checked one, in which other values stand for variables that are not set."""
        copied = self.model_copy()
        copied._is_checked, copied._unset = True, unset  # noqa: SLF001 its own
        return copied

    @property
    def unset(self) -> UnsetVariables:
        """The variables that were not set when it was read; other values stand for them."""
        return self._unset

    def require_variables(self) -> None:
        """Raise MISTAKES if variables were not set when it was read, except those of conditions and expressions."""
        if self._unset.problems:
            raise config_invalid(self.file, self._unset.problems)

    @property
    def discovered(self) -> Discovered:
        """The result of the rules of `discover`; `tables` has the tables that are mirrored."""
        return self._discovered

    @property
    def named_tables(self) -> dict[str, TableConfig]:
        """The tables that are listed in the file."""
        found = self._rule_of
        return {name: table for name, table in self.tables.items() if name not in found}

    def with_found(self, discovered: Discovered, tables: Mapping[str, TableConfig]) -> Config:
        """Return the configuration with these discovered tables, after those of the file and in place of others."""
        copied = self.model_copy(update={"tables": {**self.named_tables, **dict(sorted(tables.items()))}})
        copied._merged, copied._discovered = {}, discovered  # noqa: SLF001 its own
        return copied

    def with_features(self, own: Sequence[Feature | type[Feature] | SliceCheck]) -> Config:
        """Return the configuration with these features of the project, beside those that it has."""
        copied = self.model_copy()
        copied._own = (*self._own, *map(own_feature, own))  # noqa: SLF001 its own
        return copied

    @property
    def own_features(self) -> tuple[Feature, ...]:
        """The features of the project."""
        return self._own

    @property
    def all_features(self) -> tuple[Feature, ...]:
        """The features of this package, and those of the project."""
        return (*features(), *self._own)

    @property
    def _rule_of(self) -> dict[str, int]:
        """The rules of the discovered tables, by name."""
        return {found.name: found.rule for found in self._discovered.tables if found.state.is_mirrored}

    @property
    def names(self) -> tuple[TableName, ...]:
        """Names of all tables, in the file's order."""
        return tuple(TableName.parse(name) for name in self.tables)

    def table(self, name: TableName | str) -> TableSettings:
        """Return the table's own settings over the defaults, field by field. Raises TABLE_UNKNOWN."""
        name = str(name)
        if name in self._merged:
            return self._merged[name]
        own = self.tables.get(name)
        if own is None:
            raise TABLE_UNKNOWN(file=self.file, name=name, meant=did_you_mean(name, tuple(self.tables)))
        merged = _merge(
            self.defaults.model_dump(exclude_unset=True), own.model_dump(exclude_unset=True, exclude={"source"})
        )
        source = own.source
        address = self.stores[source.store].table(source.path) if isinstance(source, StorePath) else str(source)
        found = merged | {"name": TableName.parse(name), "source": address}
        return self._merged.setdefault(name, TableSettings.model_validate(found))

    def access(self, uri: str) -> Access:
        """Return the access to the Delta table at an address, with the identity of its store."""
        return self.locate(uri).access if self.is_of_catalog(uri) else access_to(uri, self._stores)

    def locate(self, source: str, in_spark: InSpark | None = None, *, is_fresh: bool = False) -> Located:
        """Return the location of a source; a catalog's table is resolved by its catalog. Raises as `locate`."""
        return locate(source, self.catalogs, self._stores, in_spark, is_fresh=is_fresh)

    @staticmethod
    def is_of_catalog(source: str) -> bool:
        """Whether a source is a table by its name in a catalog, which has to resolve its location."""
        return CatalogTable.parse(source) is not None

    def lake_stores(self) -> tuple[LakeStore, ...]:
        """Return the stores of the sources and histories, once per bucket and identity.

        The tables of a catalog that issues no credentials may be in any store of the file.
        """
        uris = [table.source for table in self.all_tables()]
        uris += [uri for feature in self.all_features for uri in feature.reads(self)]
        found = [store_of(uri, self._stores) for uri in uris]
        if any(not catalog.is_vending for catalog in self.catalogs.values()):
            found += [store.store for store in self.stores.values()]
        return tuple(dict.fromkeys(store for store in found if store is not None))

    def catalog_packages(self, find: Callable[[str], str | None]) -> tuple[str, ...]:
        """Return the packages that Spark needs for the tables of catalogs; `find` returns the location of a source."""
        sources = (table.source for table in self.all_tables() if self.is_of_catalog(table.source))
        stores = (store_of(uri, self._stores) for source in sources if (uri := find(source)) is not None)
        return tuple(dict.fromkeys(package for store in stores if store is not None for package in store.packages))

    @property
    def _stores(self) -> tuple[StoreConfig, ...]:
        """The stores of the file, and the mirrored tables of a feature."""
        place = self.mirror_place
        if place is None:
            return tuple(self.stores.values())
        return (*self.stores.values(), StoreConfig(root=place.tables, credential=place.credential))

    @property
    def zone(self) -> Zone:
        """The landing zone."""
        return self.landing_zone.zone

    @property
    def mirror_place(self) -> MirrorPlace | None:
        """The mirror of a feature; None for the local stand-in."""
        return next((place for feature in self.all_features if (place := feature.mirror(self)) is not None), None)

    def all_tables(self) -> tuple[TableSettings, ...]:
        """Return the effective settings of every table, in the file's order."""
        return tuple(self.table(name) for name in self.names)

    def chosen(self, names: Sequence[str]) -> tuple[TableSettings, ...]:
        """Return the tables with these names or patterns such as `sales.*`, each once, or all for none.

        Raises TABLE_UNKNOWN, also for a pattern that matches no table.
        """
        found = dict.fromkeys(name for text in names for name in self._matching(text))
        return tuple(map(self.table, found)) if names else self.all_tables()

    def _matching(self, text: str) -> Sequence[str]:
        if text in self.tables or not _WILD.search(text):
            return [text]
        found = [name for name in self.tables if fnmatchcase(name, text)]
        if not found:
            schemas = (f"{name.schema}.*" for name in self.names if name.schema)
            raise TABLE_UNKNOWN(file=self.file, name=text, meant=did_you_mean(text, (*schemas, *self.tables)))
        return found

    def line_of(self, path: str) -> int | None:
        """Return the line of a setting by its dotted path, or of the nearest setting above it."""
        return self._origin.line_of(self._written(path))

    def place(self, path: str) -> str:
        """Return `mirror.yaml:12` for a setting's dotted path."""
        return self._origin.place(self._written(path))

    def _written(self, path: str) -> str:
        """Return the path under which a setting is written: for a discovered table, that of its rule."""
        rules = ((name, rule) for name, rule in self._rule_of.items() if f"{path}.".startswith(f"tables.{name}."))
        return next((f"discover.{rule}" for _, rule in rules), path)

    def invalid(self, problems: tuple[Problem, ...]) -> SettingError:
        """Return the error for mistakes that only the source or Fabric can show, each with its setting's line."""
        placed = (
            Problem(of.path, of.message, self.line_of(of.path) if of.line is None else of.line) for of in problems
        )
        return config_invalid(self.file, tuple(placed))


def _merge(defaults: dict[str, object], own: dict[str, object]) -> dict[str, object]:
    """Return `own` over `defaults`, mapping by mapping."""
    merged = defaults | own
    for name, below in defaults.items():
        mine = own.get(name)
        if isinstance(below, dict) and isinstance(mine, dict):
            merged[name] = _merge(below, mine)
    return merged
