"""From the source's schema to the landed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mirror_assets.config import TableSettings
from mirror_assets.delta.columns import LandedColumn
from mirror_assets.landing.format import Column
from mirror_assets.markers import ROW_ID
from mirror_assets.source.errors import ColumnUnfit
from mirror_assets.source.schema import Schema, landing_type

_ROW_ID = LandedColumn(ROW_ID, "bigint", nullable=False, is_row_id=True)


def landed_columns(
    schema: Schema, wanted: Callable[[str], bool] = lambda _: True, *, keyless: bool = False
) -> tuple[LandedColumn, ...]:
    """The landed ones of the columns, in source order; where there is no key, behind the row id.

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
    """The landed columns of a table with these settings. Raises ColumnUnfit."""
    try:
        return landed_columns(schema, table.mirrors, keyless=table.is_keyless)
    except ColumnUnfit as error:
        raise ColumnUnfit(error.column, error.column_type, str(table.name)) from error


def recorded_columns(columns: Iterable[LandedColumn]) -> tuple[Column, ...]:
    """The landed columns as slice records and manifests have them."""
    return tuple(Column(name=column.name, type=column.type) for column in columns)
