"""What each table of a lake is: its state, its statistics, and what of it can be mirrored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

import pydantic

from mirror_assets.composition import source_log
from mirror_assets.config import Changes, Config, SourceColumn, TableSettings, source_problems
from mirror_assets.errors import MirrorError
from mirror_assets.init.lake import Lake, LakeTable, lake_config, unwritable
from mirror_assets.init.name_tables import name_tables
from mirror_assets.landing.names import TableName
from mirror_assets.source.column_statistics import ColumnStatistics
from mirror_assets.source.errors import ColumnUnfit
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.schema import Field, landing_type
from mirror_assets.source.source_state import SourceState, source_columns
from mirror_assets.source.store_faults import translated
from mirror_assets.verify.direct_lake_types import UnloadableColumn, unloadable_columns

_THREADS = 16
_APPEND_ONLY = "delta.appendOnly"


@dataclass(frozen=True)
class Survey:
    """A table that can be read, at its newest version. `settings` are those of a table that mirrors all columns."""

    settings: TableSettings
    log: DeltaLog
    state: SourceState
    statistics: tuple[ColumnStatistics, ...]

    @property
    def append_only(self) -> bool:
        """Whether the table refuses to change or delete rows."""
        return self.state.metadata.configuration.get(_APPEND_ONLY, "false").lower() == "true"

    @property
    def switched_on(self) -> str:
        """Whether the change data feed, row tracking, both or neither is on, as a clause."""
        feed, tracking = self.state.feed_enabled, self.state.metadata.row_tracking
        if feed and tracking:
            return "the change data feed and row tracking are on"
        if feed or tracking:
            return f"{'the change data feed' if feed else 'row tracking'} is on"
        return "neither the change data feed nor row tracking is on"

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns that a landing file can hold."""
        unfit = {error.column for error in self.unfit}
        return tuple(field for field in self.state.schema.fields if field.name not in unfit)

    @cached_property
    def unfit(self) -> tuple[ColumnUnfit, ...]:
        """The columns that a landing file can't hold."""
        return tuple(_unfit(self.state.schema.fields))

    def problems(self, changes: Changes, keys: Sequence[str]) -> tuple[str, ...]:
        """Return what keeps the source from being mirrored like this."""
        columns = tuple(SourceColumn(name, type_) for name, type_ in source_columns(self.state))
        chosen = tuple(field.name for field in self.fields) if self.unfit else None
        table = self.settings.model_copy(update={"changes": changes, "keys": tuple(keys), "columns": chosen})
        return tuple(problem.message for problem in source_problems(table, columns))

    @cached_property
    def direct_lake(self) -> tuple[UnloadableColumn, ...]:
        """The columns that Direct Lake can't load."""
        return tuple(unloadable_columns(self.state.schema.fields))


@dataclass(frozen=True)
class SurveyedTable:
    """A table of the lake, its name in the mirror, and its survey; `error` says why there is none."""

    table: LakeTable
    name: TableName
    survey: Survey | None = None
    error: str | None = None


def survey_lake(lake: Lake, file: Path) -> tuple[SurveyedTable, ...]:
    """Survey all tables, in threads; one that can't be read stops no other. `file` is the mirror.yaml to come."""
    names = name_tables(table.parts for table in lake.tables)
    with ThreadPoolExecutor(_THREADS) as pool:
        return tuple(pool.map(partial(_surveyed, lake, file), lake.tables, names))


def config_of(lake: Lake, file: Path, tables: Sequence[tuple[TableName, LakeTable]]) -> Config:
    """Return a configuration that reaches these tables. Raises pydantic.ValidationError."""
    return lake_config(
        lake,
        file,
        {str(name): {"source": asdict(table.source), "changes": Changes.APPEND_ONLY.value} for name, table in tables},
    )


def _surveyed(lake: Lake, file: Path, table: LakeTable, name: TableName) -> SurveyedTable:
    refused = unwritable(table.path)
    if refused or table.hindrance:
        return SurveyedTable(table, name, error=refused.what if refused else table.hindrance)
    try:
        return SurveyedTable(table, name, _survey(config_of(lake, file, [(name, table)]), name))
    except MirrorError as error:
        return SurveyedTable(table, name, error=error.what)
    except pydantic.ValidationError as error:
        return SurveyedTable(table, name, error=error.errors(include_url=False)[0]["msg"])
    except ValueError as error:  # the path's rules
        return SurveyedTable(table, name, error=str(error))


def _survey(config: Config, name: TableName) -> Survey:
    """Read one table. Raises what DeltaLog raises."""
    settings = config.table(name)
    log = source_log(config, settings)
    with translated(settings.source):
        state = log.state()
        _ = state.schema
        return Survey(settings, log, state, log.column_statistics(state))


def _unfit(fields: Sequence[Field]) -> Iterator[ColumnUnfit]:
    for field in fields:
        try:
            landing_type(field)
        except ColumnUnfit as error:
            yield error
