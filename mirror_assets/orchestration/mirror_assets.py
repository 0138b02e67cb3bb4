"""The assets of a configuration: their keys and specs, and the names of everything else."""

from __future__ import annotations

from dataclasses import dataclass, field

import dagster as dg

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.feature import assets_of_features
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.errors import KEY_TAKEN
from mirror_assets.orchestration.translator import ASSET_KINDS, AssetKind, MirrorTranslator, MirrorTranslatorData, safe

# The job whose runs mirror all tables, before the mirror's prefix.
MIRROR_ALL = "mirror_all"
# Resources, before the mirror's prefix.
LANDING_ZONE, SPARK, TABLES, OUTPUTS = "landing_zone", "spark", "tables", "outputs"
_SENSOR = "mirror"
# All other assets are made of the source.
_UPSTREAM = {AssetKind.LANDING: AssetKind.CHANGES, AssetKind.MIRROR: AssetKind.LANDING}


def step_name(key: dg.AssetKey) -> str:
    """Return the name of the step that materializes the asset."""
    return "__".join(safe(part) for part in key.path)


def partitions_name(landing: dg.AssetKey) -> str:
    """Return the name of the dynamic partitions of the table whose landing asset has this key.

    An instance has one set of partitions for each name, so that of an asset is unique.
    """
    return f"slices_{step_name(landing)}"


@dataclass(frozen=True, eq=False)
class MirrorAssets:
    """The assets of a configuration, as the translator defines them.

    `name` is the prefix of jobs, sensors, schedules and resources, so that several mirrors, and the project's own
    definitions, can share a code location. `spark` is the key of the project's own PySpark resource, or None.
    """

    config: Config
    translator: MirrorTranslator = field(default_factory=MirrorTranslator)
    name: str = ""
    spark: str | None = None
    _translated: dict[tuple[AssetKind, TableName], dg.AssetSpec] = field(default_factory=dict, init=False, repr=False)

    def key(self, kind: AssetKind, table: TableName) -> dg.AssetKey:
        """Return the key of the table's asset. Raises TABLE_UNKNOWN."""
        if (kind, table) not in self._translated:
            own = self.config.table(table).source_asset if kind == AssetKind.SOURCE else None
            if own is None:
                data = MirrorTranslatorData(self.config, self.config.table(table), kind)
                spec = self.translator.get_asset_spec(data)
            else:  # the asset of the project that writes the source
                named = own.replace("{schema}", table.schema or "").replace("{table}", table.table)
                spec = dg.AssetSpec(dg.AssetKey.from_user_string(named))
            self._translated[kind, table] = spec
        return self._translated[kind, table].key

    def spec(self, kind: AssetKind, table: TableName) -> dg.AssetSpec:
        """Return the translator's spec with the dependencies and partitions that the pipeline requires."""
        self.key(kind, table)
        spec = self._translated[kind, table]
        deps = list(spec.deps)
        if kind != AssetKind.SOURCE:
            upstream = _UPSTREAM.get(kind, AssetKind.SOURCE)
            # The project's own asset has no slices as partitions.
            mapping = dg.AllPartitionMapping() if self._is_own(upstream, table) else None
            deps.append(dg.AssetDep(self.key(upstream, table), partition_mapping=mapping))
        if kind.is_delta_table:
            spec = spec.with_io_manager_key(self.full_name(TABLES))
        return spec.replace_attributes(deps=deps, partitions_def=self.partitions(table) if kind.has_slices else None)

    def checked(self, kind: AssetKind, table: TableName) -> dg.AssetKey:
        """Return the key of the asset that has the checks of this kind.

        Dagster runs the checks of an asset with it, and the runs of the project's own assets are not to depend on the
        mirror: checks of a source that such an asset writes are those of landing.
        """
        return self.key(AssetKind.LANDING if self._is_own(kind, table) else kind, table)

    def _is_own(self, kind: AssetKind, table: TableName) -> bool:
        """Return whether it is an asset of the project that writes the source."""
        return kind == AssetKind.SOURCE and self.config.table(table).source_asset is not None

    @property
    def out(self) -> dg.Out:
        """Where the outputs of ops go: memory. Dagster's default and the project's IO manager would store them."""
        return dg.Out(io_manager_key=self.full_name(OUTPUTS))

    @property
    def groups(self) -> list[str]:
        """The groups of the assets of all tables."""
        specs = (self.spec(AssetKind.LANDING, name) for name in self.config.names)
        return sorted({spec.group_name for spec in specs if spec.group_name})

    def own_keys(self) -> frozenset[dg.AssetKey]:
        """Return the keys of the assets of all tables, without the project's own assets that write sources."""
        tables = self.config.all_tables()
        return frozenset(
            self.key(kind, table.name)
            for table in tables
            for kind in self.kinds(table)
            if not self._is_own(kind, table.name)
        )

    def kinds(self, table: TableSettings) -> list[AssetKind]:
        """Return the kinds of asset that the table has."""
        return [*ASSET_KINDS, *map(AssetKind, assets_of_features(self.config, table))]

    def partitions(self, table: TableName) -> dg.DynamicPartitionsDefinition:
        """Return the table's slices as partitions, shared by source, changes and landing.

        An unpartitioned source would turn every past slice stale at each commit.
        """
        return dg.DynamicPartitionsDefinition(name=self.partitions_name(table))

    def partitions_name(self, table: TableName) -> str:
        """Return the name of the table's dynamic partitions."""
        return partitions_name(self.key(AssetKind.LANDING, table))

    def full_name(self, base: str) -> str:
        """Return the name of a job, sensor, schedule or resource: `mirror_all` is `sales_all` in the mirror `sales`."""
        if not self.name:
            return base
        return self.name + base.removeprefix(_SENSOR) if base.startswith(_SENSOR) else f"{self.name}_{base}"

    def require_distinct_keys(self) -> None:
        """Raise SettingError if the translator gives two assets one key."""
        known = dict[dg.AssetKey, str]()
        for table in self.config.all_tables():
            for kind in self.kinds(table):
                if self._is_own(kind, table.name):  # it may write the sources of several tables
                    continue
                this, key = f"{kind.value} of {table.name}", self.key(kind, table.name)
                if key in known:
                    raise KEY_TAKEN(key=key.to_user_string(), known=known[key], this=this)
                known[key] = this
