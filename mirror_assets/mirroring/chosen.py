"""The columns that mirror.yaml chooses against those that have landed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mirror_assets.config import OnDropColumn, TableSettings
from mirror_assets.mirroring.before import Before
from mirror_assets.mirroring.columns import table_columns
from mirror_assets.source.breaks import Break, BreakKind
from mirror_assets.source.schema import parse_schema


@dataclass(frozen=True)
class Chosen:
    """Columns that the mirror keeps though they no longer land, and the break that another choice makes, if any."""

    dropped: frozenset[str]
    stop: Break | None = None


def chosen_columns(table: TableSettings, before: Before) -> Chosen:
    """What becomes of a choice that is not the one with which the slice before landed.

    A column that is taken out is like one that the source drops. One that is put in has values in the source that no
    commit to come will show: only a rebuild brings them.
    """
    wanted = {column.name for column in table_columns(table, parse_schema(before.schema_string))}
    put_in, taken_out = wanted - before.columns, before.columns - wanted
    if put_in:
        return _break(before, f"`columns` now has {_listed(put_in)}, whose values have not landed")
    if taken_out and table.on_drop_column is OnDropColumn.REBUILD:
        return _break(before, f"`columns` no longer has {_listed(taken_out)}, and on_drop_column is rebuild")
    return Chosen(before.dropped | taken_out)


def _break(before: Before, message: str) -> Chosen:
    return Chosen(before.dropped, Break(before.covered + 1, BreakKind.COLUMNS_CHANGED, message))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
