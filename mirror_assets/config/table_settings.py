"""The settings of one table, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator, ValidationInfo
from pydantic_core import PydanticKnownError

from mirror_assets.config.catalogs import CatalogAddress
from mirror_assets.config.setting_values import (
    Bytes,
    Changes,
    Columns,
    Compression,
    Count,
    HistoryMode,
    KeepHistory,
    Keys,
    LocalFile,
    OnBreak,
    OnDropColumn,
    Owners,
    Seconds,
    Section,
    SparkValue,
    Tags,
    Text,
    address_of,
)
from mirror_assets.landing.names import TableName
from mirror_assets.markers import ROW_ID
from mirror_assets.source.ranges import TimePoint, VersionPoint, parse_point, parse_time

# Delta's options for reading a change feed as a stream.
STREAM_OPTIONS = ("maxFilesPerTrigger", "maxBytesPerTrigger", "excludeRegex")
# Fabric's capacities with limits for Direct Lake, which direct_lake/guardrails.py has; some have several names.
CAPACITIES = (
    *("F2", "F4", "F8", "F16", "F32", "F64", "FT1", "P1", "F128", "P2", "F256", "P3", "F512", "P4", "F1024", "P5"),
    "F2048",
)


class Start(str, Enum):
    """What a new mirror starts with, unless it is a version or a time."""

    SNAPSHOT = "snapshot"
    LATEST = "latest"


class HistoryStart(str, Enum):
    """What a new history starts with, unless it is a version or a time."""

    SNAPSHOT = "snapshot"
    EARLIEST = "earliest"


class DirectLakeMode(str, Enum):
    """The kinds of Direct Lake. They differ in what happens when a table exceeds a limit."""

    ONELAKE = "onelake"
    SQL = "sql"
    SQL_ONLY = "sql_only"


class Maintenance(str, Enum):
    """What the job `maintenance` may do to a source. VACUUM deletes no file that a frame or the mirror needs."""

    OPTIMIZE = "optimize"
    PURGE = "purge"
    VACUUM = "vacuum"


class FramesOf(str, Enum):
    """Which of the two tables a model reads."""

    SOURCE = "source"
    MIRROR = "mirror"


def _start(value: object, named: type[Start | HistoryStart] = Start) -> Start | HistoryStart | VersionPoint | TimePoint:
    if isinstance(value, named | VersionPoint | TimePoint):
        return value
    if isinstance(value, str) and value in list(named):
        return named(value)
    value = dict(value) if isinstance(value, tuple) else value
    (name, point), *more = list(value.items()) if isinstance(value, dict) and value else [("", None)]
    if name == "version" and isinstance(point, int) and not isinstance(point, bool) and point >= 0 and not more:
        return VersionPoint(point)
    if name == "timestamp" and isinstance(point, str) and not more:
        return parse_time(point)
    names = ", ".join(repr(start.value) for start in named)
    expected = f"expected {names}, {{version: N}} or {{timestamp: yyyy-MM-dd HH:mm:ss}}"
    raise ValueError(f"{expected}, got {_shown_start(value)}")


def _history_start(value: object) -> Start | HistoryStart | VersionPoint | TimePoint:
    return _start(value, HistoryStart)


def _shown_start(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {below}' for name, below in value.items())}}}"
    return "nothing" if value is None else repr(value)


def _dump_start(
    start: Start | HistoryStart | VersionPoint | TimePoint,
) -> Start | HistoryStart | tuple[tuple[str, int | str]]:
    """Return no mapping: a table's own start replaces that of the defaults, mappings would be merged."""
    if isinstance(start, VersionPoint):
        return (("version", start.version),)
    return (("timestamp", str(start)),) if isinstance(start, TimePoint) else start


def _sku(value: object) -> object:
    if value is None or (isinstance(value, str) and value.upper() in CAPACITIES):
        return value.upper() if isinstance(value, str) else None
    raise ValueError(f"expected a capacity ({', '.join(CAPACITIES)}) or null, got {value!r}")


def _stream_option(name: str) -> str:
    if name not in STREAM_OPTIONS:
        raise ValueError(f"expected one of {', '.join(STREAM_OPTIONS)}")
    return name


def _frame(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"expected a version or a time like 'yyyy-MM-dd HH:mm:ss', got {value!r}")  # noqa: TRY004 pydantic wants ValueError
    parse_point(value)
    return value


def _source(value: object, info: ValidationInfo) -> object:
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


def _effective(value: object, info: ValidationInfo) -> object:
    is_of_catalog = isinstance(value, str) and CatalogAddress.parse(value) is not None
    return value if is_of_catalog else address_of(value, info)


HowToStart = Annotated[Start | VersionPoint | TimePoint, BeforeValidator(_start), PlainSerializer(_dump_start)]
HowHistoryStarts = Annotated[
    HistoryStart | VersionPoint | TimePoint, BeforeValidator(_history_start), PlainSerializer(_dump_start)
]
Frame = Annotated[str, BeforeValidator(_frame)]
StreamOption = Annotated[str, AfterValidator(_stream_option)]
Sku = Annotated[str | None, BeforeValidator(_sku)]


class SliceLimits(Section):
    """How commits are divided into slices: a slice ends before the commit that would exceed a limit."""

    max_commits: Count = Field(default=1000, description="Most commits in one slice.")
    max_rows: Count = Field(default=20_000_000, description="Most changed rows in one slice.")
    max_bytes: Bytes = Field(default=16 << 30, description="Most bytes of source files in one slice.")


class FileSettings(Section):
    """How landing files are written."""

    target_rows: Count = Field(
        default=1_000_000, description="Rows that a landing file should hold, fewer in wide tables."
    )
    compression: Compression = Field(default=Compression.ZSTD, description="Compression of the Parquet files.")


class LagLimits(Section):
    """How long a commit may wait until it lands; null switches a limit off."""

    warn_seconds: Seconds | None = Field(default=900, description="Age of the oldest waiting commit that warns.")
    error_seconds: Seconds | None = Field(default=None, description="Age of the oldest waiting commit that fails.")


class RetentionLimits(Section):
    """How soon the source may delete a waiting commit; null switches a limit off."""

    warn_seconds: Seconds | None = Field(default=172_800, description="Time left to read it that warns.")
    error_seconds: Seconds | None = Field(default=21_600, description="Time left to read it that fails.")


class ReplicationLimits(Section):
    """How long landing files may wait while the mirror applies nothing; null switches a limit off."""

    warn_seconds: Seconds | None = Field(default=3_600, description="Time without progress that warns.")
    error_seconds: Seconds | None = Field(default=14_400, description="Time without progress that fails.")


class DirectLakeSettings(Section):
    """The semantic model that reads the table, or its mirror, through Direct Lake."""

    sku: Sku = Field(default=None, description="The capacity whose limits count; null: none, checks only tell.")
    mode: DirectLakeMode = Field(default=DirectLakeMode.ONELAKE, description="The kind of Direct Lake.")
    frames_of: FramesOf = Field(default=FramesOf.SOURCE, description="Whether models read the source or its mirror.")
    frames: tuple[Frame, ...] = Field(default=(), description="Versions, or times, at which models are framed.")
    exports: tuple[LocalFile, ...] = Field(default=(), description="Files of a model's answers to DAX INFO queries.")
    model_table: Text | None = Field(default=None, description="The table's name in the exports, if they have several.")


@dataclass(frozen=True)
class StorePath:
    """A table by its path below the root of a store; `store` is its name in `stores`."""

    store: str
    path: str


@dataclass(frozen=True)
class CatalogTable:
    """A table by its name in a catalog, `<schema>.<table>`; `catalog` is the catalog's name in `catalogs`."""

    catalog: str
    table: str


def _dump_source(source: StorePath | CatalogTable | str) -> object:
    return source


# Without a serializer of its own, pydantic dumps it twice, and warns about what it has made of it.
Source = Annotated[StorePath | CatalogTable | str, PlainValidator(_source), PlainSerializer(_dump_source)]


class TableDefaults(Section):
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
        default=HistoryMode.OFF, description="Retain the change feed: slice by slice, or by a stream."
    )
    history_start: HowHistoryStarts = Field(
        default=HistoryStart.SNAPSHOT, description="What a new history starts with."
    )
    history_stream: dict[StreamOption, SparkValue] = Field(
        default_factory=dict, description="Delta's options for `history: stream`, by their own names."
    )
    slices: SliceLimits = Field(default_factory=SliceLimits, description="How commits are cut into slices.")
    files: FileSettings = Field(default_factory=FileSettings, description="How landing files are written.")
    lag: LagLimits = Field(default_factory=LagLimits, description="When the lag check warns and fails.")
    retention: RetentionLimits = Field(
        default_factory=RetentionLimits, description="When the retention check warns and fails."
    )
    replication: ReplicationLimits = Field(
        default_factory=ReplicationLimits, description="When the replicating check warns and fails."
    )
    direct_lake: DirectLakeSettings = Field(
        default_factory=DirectLakeSettings, description="What reads the table through Direct Lake."
    )
    maintenance: tuple[Maintenance, ...] = Field(
        default=(), description="What the job maintenance may do to the source: optimize, purge, vacuum."
    )
    owners: Owners = Field(default=(), description="Who answers for the table: `team:NAME` or an e-mail address.")
    tags: Tags = Field(default_factory=dict, description="Tags of the table's assets in Dagster.")


class TableConfig(TableDefaults):
    """One table as mirror.yaml writes it; `Config.table` adds the defaults."""

    source: Source = Field(description="The Delta table: a path, an address, or its place in a store or catalog.")


class TableSettings(TableConfig):
    """One table's effective settings: its own over the defaults."""

    name: TableName = Field(description="The table's name in the mirror.")
    source: Annotated[str, BeforeValidator(_effective)] = Field(
        description="Path or address of the Delta table as Spark reads it, or its address by a catalog."
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
    def keeps_history(self) -> bool:
        """Whether the change data feed is kept forever."""
        return self.history is not HistoryMode.OFF

    @property
    def is_net(self) -> bool:
        """Whether a slice has one net change per key, instead of one per key and commit."""
        return self.changes is Changes.ROW_TRACKING or (self.compact and self.changes is Changes.FEED)

    def mirrors(self, column: str) -> bool:
        """Return whether the column is mirrored: all are, unless some are chosen; keys always are."""
        return self.columns is None or column in self.columns or column in self.keys
