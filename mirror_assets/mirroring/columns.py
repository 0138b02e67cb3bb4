"""From the source's schema to the landed columns."""

from __future__ import annotations

from mirror_assets.config import TableSettings
from mirror_assets.delta.columns import LandedColumn
from mirror_assets.delta.schema import Schema, landing_type
from mirror_assets.markers import ROW_ID

_ROW_ID = LandedColumn(ROW_ID, "bigint", nullable=False, is_row_id=True)


def landed_columns(table: TableSettings, schema: Schema) -> tuple[LandedColumn, ...]:
    """The landed columns, in source order, behind the row id where that is the key.

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
    )
    return (_ROW_ID, *columns) if table.is_keyless else columns
