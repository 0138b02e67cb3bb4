"""The settings of one table, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, ValidationInfo
from pydantic_core import PydanticKnownError

from mirror_assets.column_types import NtzLanding
from mirror_assets.config.setting_values import (
    Changes,
    Columns,
    ComputedColumn,
    Keys,
    OnBreak,
    OnDropColumn,
    Owners,
    Tags,
    computed_in,
    dump_start,
    listed_in,
    start_among,
)
from mirror_assets.feature import features
from mirror_assets.lakes.catalogs import CatalogTable
from mirror_assets.lakes.stores import address_of
from mirror_assets.landing.names import TableName
from mirror_assets.markers import ROW_ID
from mirror_assets.settings import Bytes, Count, Seconds, Section, Text, with_settings
from mirror_assets.source.ranges import TimePoint, VersionPoint


class Start(str, Enum):
    """The content of a new mirror, unless a version or a time is set."""

    SNAPSHOT = "snapshot"
    LATEST = "latest"


@dataclass(frozen=True)
class StorePath:
    """A table by its path below the root of a store; `store` is its name in `stores`."""

    store: str
    path: str


def _source(value: object, info: ValidationInfo) -> object:
    if isinstance(value, StorePath | CatalogTable):
        return value
    if not isinstance(value, str | dict):
        raise PydanticKnownError("string_type")
    if isinstance(value, str):
        return address_of(value, info)
    is_text = all(isinstance(text, str) and text for text in value.values())
    if set(value) == {"store", "path"} and is_text:
        return StorePath(**value)
    if set(value) == {"catalog", "table"} and is_text:
        return CatalogTable(**value)
    raise ValueError(
        "expected a path, an address, {store: <name in stores>, path: <path below its root>}, "
        "or {catalog: <name in catalogs>, table: <schema>.<table>}"
    )


def _effective_source(value: object, info: ValidationInfo) -> object:
    is_of_catalog = isinstance(value, str) and CatalogTable.parse(value) is not None
    return value if is_of_catalog else address_of(value, info)


HowToStart = Annotated[Start | VersionPoint | TimePoint, start_among(Start), PlainSerializer(dump_start)]
# Without its own serializer, pydantic dumps it twice, and warns about the result.
Source = Annotated[StorePath | CatalogTable | str, PlainValidator(_source), PlainSerializer(lambda source: source)]


class SliceLimits(Section):
    """The limits of a slice: it ends before the commit that would exceed one."""

    max_commits: Count = Field(default=1000, description="Maximum number of commits in one slice.")
    max_rows: Count = Field(default=20_000_000, description="Maximum number of changed rows in one slice.")
    max_bytes: Bytes = Field(default=16 << 30, description="Maximum bytes of source files to read for one slice.")


class FileSettings(Section):
    """The landing files."""

    target_rows: Count = Field(default=1_000_000, description="Maximum rows of a landing file; fewer in wide tables.")


class LagLimits(Section):
    """The limits of the check `lag`, for the age of the oldest uncovered commit; null: never."""

    warn_seconds: Seconds | None = Field(default=900, description="Age at which it warns.")
    error_seconds: Seconds | None = Field(default=None, description="Age at which it fails.")


class RetentionLimits(Section):
    """The limits of the check `retention`, for the time left to read the oldest uncovered commit; null: never."""

    warn_seconds: Seconds | None = Field(default=172_800, description="Time left at which it warns.")
    error_seconds: Seconds | None = Field(default=21_600, description="Time left at which it fails.")


class ReplicationLimits(Section):
    """The limits of the check `replicating`, for the time without progress while landing files wait; null: never."""

    warn_seconds: Seconds | None = Field(default=3_600, description="Time without progress after which it warns.")
    error_seconds: Seconds | None = Field(default=14_400, description="Time without progress after which it fails.")


class CoreSettings(Section):
    """The settings of a table, except its source and those of features."""

    keys: Keys = Field(default=(), description="Columns that identify a row; required for `changes: feed`.")
    columns: Columns | None = Field(default=None, description="Columns to mirror, besides the keys; null: all.")
    where: Text | None = Field(default=None, description="Condition in Spark SQL for the rows to mirror; null: all.")
    changes: Changes = Field(default=Changes.FEED, description="How changes are read.")
    timestamp_ntz: NtzLanding = Field(default=NtzLanding.UTC, description="Form in which `timestamp_ntz` columns land.")
    compact: bool = Field(default=False, description="Land one net change per key and slice, not one per commit.")
    start: HowToStart = Field(default=Start.SNAPSHOT, description="Content of a new mirror.")
    on_break: OnBreak = Field(default=OnBreak.REBUILD, description="Action at a commit that can't be followed.")
    on_drop_column: OnDropColumn = Field(
        default=OnDropColumn.KEEP, description="Action when a mirrored column is dropped."
    )
    slices: SliceLimits = Field(default_factory=SliceLimits, description="Limits of a slice.")
    files: FileSettings = Field(default_factory=FileSettings, description="Landing files.")
    lag: LagLimits = Field(default_factory=LagLimits, description="Limits of the check `lag`.")
    retention: RetentionLimits = Field(default_factory=RetentionLimits, description="Limits of the check `retention`.")
    replication: ReplicationLimits = Field(
        default_factory=ReplicationLimits, description="Limits of the check `replicating`."
    )
    owners: Owners = Field(default=(), description="Owners of the table: `team:NAME` or an e-mail address.")
    tags: Tags = Field(default_factory=dict, description="Tags of the table's assets in Dagster.")
    source_asset: Text | None = Field(
        default=None, description="Key of your own Dagster asset that writes the source, with {schema} and {table}."
    )


if TYPE_CHECKING:

    class TableDefaults(CoreSettings):
        """The settings of a table, except its source."""
else:
    TableDefaults = with_settings(CoreSettings, [feature.table_settings() for feature in features()])


class TableConfig(TableDefaults):
    """One table as mirror.yaml declares it; `Config.table` adds the defaults."""

    source: Source = Field(description="The Delta table: a path, an address, or its place in a store or catalog.")


class TableSettings(TableConfig):
    """One table's effective settings: its own over the defaults."""

    name: TableName = Field(description="The table's name in the mirror.")
    source: Annotated[str, BeforeValidator(_effective_source)] = Field(
        description="Path or address of the Delta table as Spark reads it, or its address in a catalog."
    )

    @property
    def is_keyless(self) -> bool:
        """Whether the row id is the mirror's key, because no key columns are set."""
        return not self.keys and self.changes is Changes.ROW_TRACKING

    @property
    def mirror_keys(self) -> tuple[str, ...]:
        """The key columns of the mirror."""
        return (ROW_ID,) if self.is_keyless else self.keys

    @property
    def is_net(self) -> bool:
        """Whether a slice has one net change per key, instead of one per key and commit."""
        return self.changes.compares_versions or (self.compact and self.changes is Changes.FEED)

    @property
    def computed(self) -> dict[str, ComputedColumn]:
        """The columns with an expression, by name."""
        return dict(computed_in(self.columns or {}))

    @property
    def listed_columns(self) -> tuple[str, ...] | None:
        """The source's columns to mirror besides the keys; None: all."""
        return listed_in(self.columns)

    def mirrors(self, column: str) -> bool:
        """Return whether the source's column is mirrored: by default all are, keys always."""
        listed = self.listed_columns
        return listed is None or column in listed or column in self.keys
