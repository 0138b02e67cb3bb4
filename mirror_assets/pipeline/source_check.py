"""A table's settings against its source: the columns that land, and the properties that must be on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mirror_assets.config import Changes, Config, TableSettings, missing_columns, source_problems
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.format import Column
from mirror_assets.markers import ROW_ID
from mirror_assets.source.actions import Metadata, Protocol
from mirror_assets.source.errors import ColumnUnfit
from mirror_assets.source.schema import LandedColumn, Schema, landing_type
from mirror_assets.source.source_state import SourceState, source_columns
from mirror_assets.source.table_properties import ROW_TRACKING_COST, enable_row_tracking, how_to_enable

_ROW_ID = LandedColumn(ROW_ID, "bigint", nullable=False, is_row_id=True)


def landed_columns(
    schema: Schema, wanted: Callable[[str], bool] = lambda _: True, *, keyless: bool = False
) -> tuple[LandedColumn, ...]:
    """Return the columns that land, in source order; a table without keys has its row id before them.

    Raises ColumnUnfit for a type that can't land.
    """
    columns = tuple(
        LandedColumn(
            field.name,
            landing_type(field),
            nested=field.is_nested or field.type == "variant",
            nullable=field.nullable,
        )
        for field in schema.fields
        if wanted(field.name)
    )
    return (_ROW_ID, *columns) if keyless else columns


def table_columns(table: TableSettings, schema: Schema) -> tuple[LandedColumn, ...]:
    """Return the columns that land of a table with these settings. Raises ColumnUnfit."""
    try:
        return landed_columns(schema, table.mirrors, keyless=table.is_keyless)
    except ColumnUnfit as error:
        raise ColumnUnfit(error.column, error.column_type, str(table.name)) from error


def recorded_columns(columns: Iterable[LandedColumn]) -> tuple[Column, ...]:
    """Return the columns as slice records and manifests store them."""
    return tuple(Column(name=column.name, type=column.type) for column in columns)


# What a source must record, by how its changes are read; files need nothing.
RECORD = {Changes.FEED: "the change data feed", Changes.ROW_TRACKING: "row tracking"}


def is_recorded(changes: Changes, metadata: Metadata) -> bool:
    """Return whether a source with this metadata records what reading its changes needs."""
    if changes is Changes.ROW_TRACKING:
        return metadata.row_tracking
    return changes is not Changes.FEED or metadata.feed_enabled


def not_recorded(table: str, uri: str, protocol: Protocol, changes: Changes) -> SettingError:
    """Return the error for a source whose change data feed, or row tracking, is off."""
    if changes is Changes.ROW_TRACKING:
        return SettingError(
            f"{table}: row tracking of {uri} is off, so its changes can't be derived from its files.",
            f"run `{enable_row_tracking(uri)}`, then run again. {ROW_TRACKING_COST}",
            code=ErrorCode.ROW_TRACKING_DISABLED,
        )
    return SettingError(
        f"{table}: the change data feed of {uri} is off, so its changes can't be read.",
        f"{how_to_enable(uri, protocol)} The feed begins with that commit: what is in the table by then lands as a "
        "snapshot. Or set `changes: files`, which needs no property of the source.",
        code=ErrorCode.FEED_DISABLED,
    )


def check_source(config: Config, table: TableSettings, state: SourceState) -> None:
    """Check the settings against the source. Raises ConfigInvalid with their lines, and not_recorded."""
    problems = source_problems(table, source_columns(state))
    if problems:
        raise config.invalid(problems)
    if not is_recorded(table.changes, state.metadata):
        raise not_recorded(str(table.name), state.uri, state.protocol, table.changes)


def check_columns(config: Config, table: TableSettings, state: SourceState, landed: Sequence[str]) -> None:
    """Raise ConfigInvalid, with their lines, for `columns` that neither the source has nor the mirror ever had."""
    problems = missing_columns(table, [*(name for name, _ in source_columns(state)), *landed])
    if problems:
        raise config.invalid(problems)
