"""The settings of one table."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from mirror_assets.config.setting_values import Bytes, LocalFile, Percent, Text
from mirror_assets.delta.points import TimePoint, VersionPoint, parse_point, parse_time
from mirror_assets.direct_lake.guardrails.modes import Mode
from mirror_assets.direct_lake.guardrails.skus import SKUS
from mirror_assets.direct_lake.maintenance.sizes import FileSizes

_EXPECTED = "expected 'snapshot', 'latest', {version: N} or {timestamp: yyyy-MM-dd HH:mm:ss}"


class Start(str, Enum):
    """A start that needs no number."""

    SNAPSHOT = "snapshot"
    LATEST = "latest"


def _start(value: object) -> Start | VersionPoint | TimePoint:
    if isinstance(value, Start | VersionPoint | TimePoint):
        return value
    if isinstance(value, str) and value in list(Start):
        return Start(value)
    value = dict(value) if isinstance(value, tuple) else value
    (name, point), *more = list(value.items()) if isinstance(value, dict) and value else [("", None)]
    if name == "version" and isinstance(point, int) and not isinstance(point, bool) and point >= 0 and not more:
        return VersionPoint(point)
    if name == "timestamp" and isinstance(point, str) and not more:
        return parse_time(point)
    raise ValueError(f"{_EXPECTED}, got {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {below}' for name, below in value.items())}}}"
    return "nothing" if value is None else repr(value)


def _dumped(start: Start | VersionPoint | TimePoint) -> Start | tuple[tuple[str, int | str]]:
    """The setting as one value and no mapping: a table's start takes the place of the default's, they don't merge."""
    if isinstance(start, VersionPoint):
        return (("version", start.version),)
    return (("timestamp", str(start)),) if isinstance(start, TimePoint) else start


HowToStart = Annotated[Start | VersionPoint | TimePoint, BeforeValidator(_start), PlainSerializer(_dumped)]


_DEFAULT_FILE_BYTES = 1 << 30


class DirectLakeMode(str, Enum):
    """The kinds of Direct Lake, which differ in what happens over a limit."""

    ONELAKE = "onelake"
    SQL = "sql"
    SQL_ONLY = "sql_only"

    @property
    def kind(self) -> Mode:
        """The kind, as guardrails know it."""
        return Mode[self.name]


class FramesOf(str, Enum):
    """Which of the two tables the model reads."""

    SOURCE = "source"
    MIRROR = "mirror"


def _sku(value: object) -> object:
    names = [name for sku in SKUS for name in sku.names]
    if value is None or (isinstance(value, str) and value.upper() in names):
        return value.upper() if isinstance(value, str) else None
    raise ValueError(f"expected a capacity ({', '.join(names)}) or null, got {value!r}")


def _frame(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"expected a version or a time like 'yyyy-MM-dd HH:mm:ss', got {value!r}")  # noqa: TRY004 pydantic wants ValueError
    parse_point(value)
    return value


Frame = Annotated[str, BeforeValidator(_frame)]
Sku = Annotated[str | None, BeforeValidator(_sku)]


class DirectLakeSettings(BaseModel):
    """The model that reads the table, or its mirror, through Direct Lake."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sku: Sku = Field(default=None, description="The capacity whose limits count; null: none, checks only tell.")
    mode: DirectLakeMode = Field(default=DirectLakeMode.ONELAKE, description="The kind of Direct Lake.")
    frames_of: FramesOf = Field(default=FramesOf.SOURCE, description="Whether models read the source or its mirror.")
    frames: tuple[Frame, ...] = Field(default=(), description="Versions, or times, at which models are framed.")
    exports: tuple[LocalFile, ...] = Field(default=(), description="Files of a model's answers to DAX INFO queries.")
    model_table: Text | None = Field(default=None, description="The table's name in the exports, if they have several.")
    min_headroom_percent: Percent = Field(default=10, description="Share of a limit that is to stay free.")


class MaintenanceSettings(BaseModel):
    """What the job `maintenance` may do to the source; nothing unless it is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimize: bool = Field(default=False, description="Put small files together, where it pays.")
    purge: bool = Field(default=False, description="Rewrite files with many hidden rows or dropped columns.")
    vacuum: bool = Field(default=False, description="Delete old files, none that a frame or the mirror needs.")
    target_file_bytes: Bytes = Field(default=_DEFAULT_FILE_BYTES, description="Bytes that a file should have at most.")

    @property
    def sizes(self) -> FileSizes:
        """What OPTIMIZE goes by: files below the target are put together."""
        return FileSizes(self.target_file_bytes, self.target_file_bytes)

    @property
    def is_on(self) -> bool:
        """Whether anything is asked for."""
        return self.optimize or self.purge or self.vacuum
