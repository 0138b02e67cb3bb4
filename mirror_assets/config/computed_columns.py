"""The setting `columns`: the columns to mirror, and the SQL expressions of those that are computed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from mirror_assets.column_types import LANDING_TYPES, MOST_DIGITS, decimal_digits
from mirror_assets.config.errors import did_you_mean
from mirror_assets.config.setting_values import distinct_columns
from mirror_assets.settings import Section, Text


def _landing_type(text: str) -> str:
    kind = re.sub(r"\s+", "", text).lower()
    if kind in LANDING_TYPES:
        return kind
    precision, scale = decimal_digits(kind) or (0, 0)
    if not (1 <= precision <= MOST_DIGITS and scale <= precision):
        raise ValueError(f"{text!r} can't land; it must be one of {', '.join(LANDING_TYPES)}, decimal(p,s)")
    return f"decimal({precision},{scale})"  # as Spark writes it: 05 is 5


LandingType = Annotated[str, AfterValidator(_landing_type)]


class ComputedColumn(Section):
    """A column whose values are computed from other columns of the same row: a mask, or a new column."""

    sql: Text = Field(description="Spark SQL expression over the source's columns.")
    type: LandingType | None = Field(
        default=None, description="Type in the mirror; null: that of the source's column with this name."
    )
    comment: str = Field(default="", description="Comment of the column in Dagster.")


def _from_sql(value: object) -> object:
    """Accept the expression alone in place of the mapping."""
    if isinstance(value, str):
        return {"sql": value}
    known = ComputedColumn.model_fields
    if isinstance(value, dict) and (unknown := [name for name in value if name not in known]):
        raise ValueError(f"unknown setting {unknown[0]!r}{did_you_mean(str(unknown[0]), known)}")
    return value


_Computed = dict[Text, Annotated[ComputedColumn, BeforeValidator(_from_sql)]]
_Entry: TypeAlias = Annotated[
    Annotated[Text, Tag("[name]")] | Annotated[_Computed, Field(min_length=1), Tag("[computed]")],
    Discriminator(lambda entry: "[computed]" if isinstance(entry, dict) else "[name]"),
]
_Listed: TypeAlias = tuple[_Entry, ...]
ColumnChoice: TypeAlias = _Computed | tuple[str | _Computed, ...]
"""Computed columns by name, which land with all columns of the source; or a list of the only columns that land."""


def computed_in(choice: ColumnChoice | None) -> dict[str, ComputedColumn]:
    """Return the computed columns by name."""
    return dict(_computed(choice or {}))


def listed_in(choice: ColumnChoice | None) -> tuple[str, ...] | None:
    """Return the names of the source's columns in a list; None if all columns land."""
    return tuple(entry for entry in choice if isinstance(entry, str)) if isinstance(choice, tuple) else None


def _distinct(choice: ColumnChoice) -> ColumnChoice:
    if not choice:
        raise ValueError("it must not be empty")
    distinct_columns([*(listed_in(choice) or ()), *(name for name, _ in _computed(choice))])
    return choice


def _computed(choice: ColumnChoice) -> Iterator[tuple[str, ComputedColumn]]:
    for entry in [choice] if isinstance(choice, dict) else choice:
        yield from entry.items() if isinstance(entry, dict) else ()


Columns = Annotated[
    Annotated[_Computed, Tag("[computed]")] | Annotated[_Listed, Tag("[list]")],
    Discriminator(lambda choice: "[computed]" if isinstance(choice, dict) else "[list]"),
    AfterValidator(_distinct),
]
