"""mirror.yaml as a typed model: every setting, what it means and its default."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from typing_extensions import Self

from mirror_assets.config.direct_lake import DirectLakeSettings, MaintenanceSettings
from mirror_assets.config.errors import ConfigInvalid, Problem, TableUnknown
from mirror_assets.config.fabric import FabricConfig
from mirror_assets.config.onelake import OneLakeConfig
from mirror_assets.config.origin import Origin
from mirror_assets.config.start import HowToStart, Start
from mirror_assets.config.values import (
    Bytes,
    Changes,
    Columns,
    Compression,
    Count,
    Folder,
    History,
    KeepHistory,
    Keys,
    OnBreak,
    OnDropColumn,
    Seconds,
    SparkName,
    SparkValue,
    TableKey,
    TableSource,
    Text,
)
from mirror_assets.landing.names import TableName
from mirror_assets.markers import ROW_ID

_DEFAULT_MIRROR = "./mirror"
_MIRROR_PATH = (_DEFAULT_MIRROR, "mirror", "path")
_HISTORY_PATH = ("./history", "history", "path")
_STAGING_PATH = ("./staging", "landing_zone", "onelake", "staging_path")


class Part(BaseModel):
    """A mapping of mirror.yaml: unknown settings are mistakes, values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LandingZoneConfig(Part):
    """Where landing files go: a folder of this machine, or a mirrored database on OneLake."""

    path: Folder | None = Field(default=None, description="Folder of the landing zone on this machine.")
    onelake: OneLakeConfig | None = Field(default=None, description="The landing zone on OneLake.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.onelake is None):
            raise ValueError("give either `path` or `onelake`")
        return self


class PartnerConfig(Part):
    """What the landing zone says about us, in `_partnerEvents.json`."""

    name: Text = Field(default="mirror_assets", description="partnerName; Fabric wants it constant.")
    source_type: str = Field(default="Delta Lake", description="sourceType: the kind of system mirrored.")
    source_version: str = Field(default="", description="sourceVersion: that system's version.")


class MirrorConfig(Part):
    """The replicated tables: of the local stand-in for Fabric's replicator, or of a mirrored database in Fabric."""

    path: Folder = Field(default=Path(_DEFAULT_MIRROR), description="Folder of the stand-in's Delta tables.")
    fabric: FabricConfig | None = Field(default=None, description="The mirrored database, in place of the stand-in.")

    @model_validator(mode="after")
    def _one_mirror(self) -> Self:
        if self.fabric is not None and "path" in self.model_fields_set:
            raise ValueError("give either `path` or `fabric`")
        return self


class HistoryConfig(Part):
    """Where the change feeds are kept that `history` is set for."""

    path: Folder = Field(default=Path("./history"), description="Folder of the histories' Delta tables.")


class HistoryStream(Part):
    """Delta's options for reading the change feed by a stream, for `history: stream`."""

    max_files_per_trigger: Count | None = Field(default=None, description="Most source files in a batch; null: all.")
    max_bytes_per_trigger: Bytes | None = Field(default=None, description="About the most bytes in a batch; null: all.")
    exclude_regex: Text | None = Field(default=None, description="Leave out files whose path matches; null: none.")


class SliceLimits(Part):
    """How commits are cut into slices; a slice ends before the commit that would pass a limit."""

    max_commits: Count = Field(default=1000, description="Most commits in one slice.")
    max_rows: Count = Field(default=20_000_000, description="Most changed rows in one slice.")
    max_bytes: Bytes = Field(default=16 << 30, description="Most bytes of source files in one slice.")
    max_per_run: Count = Field(default=100, description="Most slices of a table in one run.")


class PartitionSettings(Part):
    """How many of a table's slices stay registered in Dagster as partitions."""

    keep: Count = Field(default=10_000, description="Newest slices that stay partitions in Dagster; older ones go.")


class FileSettings(Part):
    """How landing files are written."""

    target_rows: Count = Field(default=1_000_000, description="Rows that a landing file should hold.")
    compression: Compression = Field(default=Compression.ZSTD, description="Compression of the Parquet files.")


class LagLimits(Part):
    """How long a commit may wait for its landing; null switches a limit off."""

    warn_seconds: Seconds | None = Field(default=900, description="Age of the oldest waiting commit that warns.")
    error_seconds: Seconds | None = Field(default=None, description="Age of the oldest waiting commit that fails.")


class RetentionLimits(Part):
    """How soon a waiting commit may be gone from its source; null switches a limit off."""

    warn_seconds: Seconds | None = Field(default=172_800, description="Time left to read it that warns.")
    error_seconds: Seconds | None = Field(default=21_600, description="Time left to read it that fails.")


class TableDefaults(Part):
    """Settings that every table has unless it sets its own."""

    keys: Keys = Field(default=(), description="Columns that identify a row; needed for `changes: feed`.")
    columns: Columns | None = Field(default=None, description="Columns to mirror beside the keys; null: all.")
    changes: Changes = Field(default=Changes.FEED, description="How changes are found.")
    compact: bool = Field(default=False, description="Land one net change per key and slice, not one per commit.")
    start: HowToStart = Field(default=Start.SNAPSHOT, description="What a new mirror starts with.")
    on_break: OnBreak = Field(
        default=OnBreak.REBUILD, description="Rebuild by itself, or hold for approval, when the source breaks."
    )
    on_drop_column: OnDropColumn = Field(
        default=OnDropColumn.KEEP, description="Keep a dropped column, NULL from then on, or rebuild without it."
    )
    history: KeepHistory = Field(
        default=History.OFF, description="Keep the change feed for ever: slice by slice, or by a stream."
    )
    history_stream: HistoryStream = Field(
        default_factory=HistoryStream, description="How `history: stream` reads the change feed."
    )
    slices: SliceLimits = Field(default_factory=SliceLimits, description="How commits are cut into slices.")
    partitions: PartitionSettings = Field(
        default_factory=PartitionSettings, description="How many slices stay partitions in Dagster."
    )
    files: FileSettings = Field(default_factory=FileSettings, description="How landing files are written.")
    lag: LagLimits = Field(default_factory=LagLimits, description="When the lag check warns and fails.")
    retention: RetentionLimits = Field(
        default_factory=RetentionLimits, description="When the retention check warns and fails."
    )
    direct_lake: DirectLakeSettings = Field(
        default_factory=DirectLakeSettings, description="What reads the table through Direct Lake."
    )
    maintenance: MaintenanceSettings = Field(
        default_factory=MaintenanceSettings, description="What the job maintenance may do to the source."
    )


class TableConfig(TableDefaults):
    """One table as mirror.yaml writes it; `Config.table` adds the defaults."""

    source: TableSource = Field(description="Path or URI of the Delta table, as Spark and deltalake read it.")


class TableSettings(TableConfig):
    """One table's effective settings: its own over the defaults."""

    name: TableName = Field(description="The table's name in the mirror.")

    @property
    def is_keyless(self) -> bool:
        """Whether the mirror's key is the row id, for want of another."""
        return not self.keys and self.changes is Changes.ROW_TRACKING

    @property
    def mirror_keys(self) -> tuple[str, ...]:
        """The mirror's key columns."""
        return (ROW_ID,) if self.is_keyless else self.keys

    @property
    def keeps_history(self) -> bool:
        """Whether the change feed is kept for ever."""
        return self.history is not History.OFF

    @property
    def is_net(self) -> bool:
        """Whether a slice of changes has one net change per key, and not one per commit."""
        return self.changes is Changes.ROW_TRACKING or (self.compact and self.changes is Changes.FEED)

    def mirrors(self, column: str) -> bool:
        """Whether the column is mirrored: it is chosen, or a key."""
        return self.columns is None or column in self.columns or column in self.keys


class SparkConfig(Part):
    """Additions to the Spark session. They keep `${NAME}` as it is written: it is filled in when a session opens."""

    settings: dict[SparkName, SparkValue] = Field(default_factory=dict, description="Spark settings by name.")


class Config(Part):
    """mirror.yaml."""

    landing_zone: LandingZoneConfig = Field(description="Where landing files go.")
    partner: PartnerConfig = Field(default_factory=PartnerConfig, description="What the landing zone says about us.")
    mirror: MirrorConfig = Field(default_factory=MirrorConfig, description="Where the tables are replicated.")
    history: HistoryConfig = Field(default_factory=HistoryConfig, description="Where change feeds are kept for ever.")
    spark: SparkConfig = Field(default_factory=SparkConfig, description="Additions to the Spark session.")
    defaults: TableDefaults = Field(default_factory=TableDefaults, description="Settings of every table.")
    tables: dict[TableKey, TableConfig] = Field(min_length=1, description="Tables by their name in the mirror.")
    _origin: Origin = PrivateAttr(default_factory=Origin)

    @model_validator(mode="before")
    @classmethod
    def _place_defaults(cls, data: object) -> object:
        """Write out default paths, so that they too are seen from the file's folder."""
        if not isinstance(data, dict):
            return data
        settings = _with_default({"mirror": {}, "history": {}, **data}, *_STAGING_PATH)
        settings = _with_default(settings, *_HISTORY_PATH)
        mirror = settings["mirror"]
        in_fabric = isinstance(mirror, dict) and "fabric" in mirror
        return settings if in_fabric else _with_default(settings, *_MIRROR_PATH)

    def model_post_init(self, context: object, /) -> None:
        """Keep where the settings were read."""
        if isinstance(context, Origin):
            self._origin = context

    @property
    def file(self) -> Path:
        """The file that was read."""
        return self._origin.file

    @property
    def names(self) -> tuple[TableName, ...]:
        """Names of all tables, in the file's order."""
        return tuple(TableName.parse(name) for name in self.tables)

    def table(self, name: TableName | str) -> TableSettings:
        """The table's effective settings: defaults, overridden field by field. Raises TableUnknown."""
        own = self.tables.get(str(name))
        if own is None:
            raise TableUnknown(self.file, str(name), tuple(self.tables))
        merged = _over(self.defaults.model_dump(exclude_unset=True), own.model_dump(exclude_unset=True))
        return TableSettings.model_validate(merged | {"name": TableName.parse(str(name))})

    def all_tables(self) -> tuple[TableSettings, ...]:
        """Effective settings of every table, in the file's order."""
        return tuple(self.table(name) for name in self.names)

    def history_folder(self, name: TableName) -> Path:
        """Where the table's change feed is kept for ever, in folders like the landing zone's."""
        return self.history.path / name.folder

    def line_of(self, path: str) -> int | None:
        """Line of a setting by its dotted path, or of what it would stand under."""
        return self._origin.line_of(path)

    def place(self, path: str) -> str:
        """`mirror.yaml:12` for a setting's dotted path."""
        return self._origin.place(path)

    def invalid(self, problems: tuple[Problem, ...]) -> ConfigInvalid:
        """The error that reports these problems at their lines, for checks that need more than the file."""
        placed = (
            Problem(of.path, of.message, self.line_of(of.path) if of.line is None else of.line) for of in problems
        )
        return ConfigInvalid(self.file, tuple(placed))


def _with_default(data: dict[str, object], value: str, *steps: str) -> dict[str, object]:
    """`data` with the value at these steps, unless there is one, or no mapping to hold it."""
    first, *rest = steps
    if not rest:
        return {first: value} | data
    below = data.get(first)
    return data | {first: _with_default(below, value, *rest)} if isinstance(below, dict) else data


def _over(defaults: dict[str, object], own: dict[str, object]) -> dict[str, object]:
    """`own` over `defaults`, mapping by mapping."""
    merged = defaults | own
    for name, below in defaults.items():
        mine = own.get(name)
        if isinstance(below, dict) and isinstance(mine, dict):
            merged[name] = _over(below, mine)
    return merged
