"""From the source's schema to the landed columns."""

from __future__ import annotations

from collections.abc import Callable

from mirror_assets.delta.columns import LandedColumn
from mirror_assets.delta.schema import Schema, landing_type


def landed_columns(schema: Schema, wanted: Callable[[str], bool] = lambda _: True) -> tuple[LandedColumn, ...]:
    """The landed ones of the columns, in source order. Raises ColumnUnfit for a type that can't land."""
    return tuple(
        LandedColumn(
            field.name,
            landing_type(field),
            nested=field.is_nested or field.type == "variant",
            nullable=field.nullable,
        )
        for field in schema.fields
        if wanted(field.name)
    )
