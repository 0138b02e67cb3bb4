"""Surveys the tables of a lake: reads the state and the statistics of each from its log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import pydantic

from mirror_assets.column_types import Family
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.features.init.name_tables import name_tables
from mirror_assets.features.init.surveyed_lake import Lake, LakeTable
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.project import source_log
from mirror_assets.source.column_statistics import ColumnStatistics
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.read_errors import translated
from mirror_assets.source.schema import Field
from mirror_assets.source.source_state import SourceState

_THREADS = 16


@dataclass(frozen=True)
class Survey:
    """A table at its newest version, and its name in the mirror; `settings` mirror all of its columns."""

    table: LakeTable
    settings: TableSettings
    log: DeltaLog
    state: SourceState
    statistics: tuple[ColumnStatistics, ...]

    @property
    def name(self) -> TableName:
        """The table's name in the mirror."""
        return self.settings.name

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns that a landing file can hold."""
        return tuple(field for field in self.state.schema.fields if field not in self.unfit)

    @cached_property
    def unfit(self) -> tuple[Field, ...]:
        """The columns that a landing file can't hold."""
        return tuple(field for field in self.state.schema.fields if field.kind.family is Family.REFUSED)


@dataclass(frozen=True)
class Unreadable:
    """A table that can't be read, and the reason."""

    path: str
    why: str


def survey_lake(lake: Lake, file: Path) -> tuple[Survey | Unreadable, ...]:
    """Survey all tables in threads; an unreadable table doesn't affect the others. `file` is the new mirror.yaml."""
    names = name_tables(table.parts for table in lake.tables)
    with ThreadPoolExecutor(_THREADS) as pool:
        return tuple(pool.map(partial(_survey, lake, file), lake.tables, names))


def _survey(lake: Lake, file: Path, table: LakeTable, name: TableName) -> Survey | Unreadable:
    shown = table.path.encode("utf-8", "backslashreplace").decode()
    hindrance = table.hindrance
    if "${" in table.path:
        hindrance = f"{shown} can't be named: mirror.yaml takes `${{` for an environment variable."
    elif shown != table.path:
        hindrance = f"{shown} can't be named: its name is not UTF-8."
    if hindrance:
        return Unreadable(table.path, hindrance)
    try:
        config = lake.config(file, [(name, table)])
        settings = config.table(name)
        log = source_log(config, settings)
        with translated(settings.source):
            state = log.state()
            _ = state.schema  # raises for a schema that can't be read
            return Survey(table, settings, log, state, log.column_statistics(state))
    except MirrorError as error:
        return Unreadable(table.path, error.what)
    except pydantic.ValidationError as error:
        return Unreadable(table.path, error.errors(include_url=False)[0]["msg"])
    except ValueError as error:  # from the rules for paths
        return Unreadable(table.path, str(error))
