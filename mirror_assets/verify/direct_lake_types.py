"""Column types that Direct Lake can't load (Microsoft, Direct Lake overview, considerations and limitations)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mirror_assets.source.schema import Field


@dataclass(frozen=True)
class UnloadableColumn:
    """A column that Direct Lake can't load; `message` continues a sentence that begins with the column."""

    column: str
    message: str


def unloadable_columns(fields: Iterable[Field]) -> Iterator[UnloadableColumn]:
    """Yield the columns whose type Direct Lake can't load."""
    for field in fields:
        if field.is_nested:
            message = "is complex: store its members as columns, or as JSON text, or leave it out of the model"
            yield UnloadableColumn(field.name, message)
        elif field.type == "binary":  # Delta has no GUIDs: writers store them as binary or text
            message = "is binary, as a GUID may be: store it as text, or leave it out of the model"
            yield UnloadableColumn(field.name, message)
