"""A table's settings against its source: the columns and rows that land, and the properties that must be on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from mirror_assets.column_types import NTZ, Family
from mirror_assets.config.errors import Problem
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.source_fit import alike_columns, missing_columns, refused_names, setting_of, source_problems
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.config.variables import fill_sql
from mirror_assets.landing.format import Column
from mirror_assets.markers import NTZ_TEXT, ROW_ID
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import not_recorded
from mirror_assets.source.actions import Metadata
from mirror_assets.source.commits import SourceState, source_columns
from mirror_assets.source.schema import Field, LandedColumn, Projection, Schema, landing_type, parse_schema
from mirror_assets.source.sql_columns import SqlNotParsed, columns_used

_ROW_ID = LandedColumn(ROW_ID, "bigint", nullable=False, is_row_id=True)


def table_columns(table: TableSettings, schema: Schema) -> tuple[LandedColumn, ...]:
    """Return the columns that land: the source's in its order, then new computed ones.

    A table without keys has its row id before them. A computed column without `type` lands while the source has a
    column of its name. Raises COLUMN_UNFIT for a type that can't land, and SettingError for an unset variable.
    """
    new = {name.casefold(): name for name in table.computed}
    columns = [_ROW_ID] if table.is_keyless else []
    for source in schema.fields:
        if name := new.pop(source.name.casefold(), None):
            columns.append(_computed(table, name, source))
        elif table.mirrors(source.name):
            kind, nested = _landing_type(table, source), source.kind.family is Family.NESTED
            # A change of the form is a change of the expression, so a break.
            form = None if kind == source.type or source.type != NTZ else f"{NTZ} as {table.timestamp_ntz.value}"
            columns.append(LandedColumn(source.name, kind, nested=nested, nullable=source.nullable, expression=form))
    columns += [_computed(table, name, None) for name in new.values() if table.computed[name].type]
    return tuple(columns)


def _computed(table: TableSettings, name: str, source: Field | None) -> LandedColumn:
    """Return the column; one that Spark could regard as never NULL is written as OPTIONAL."""
    setting = table.computed[name]
    kind = setting.type or (_landing_type(table, source) if source else "")
    sql = fill_sql(f"tables.{table.name}.columns.{name}", setting.sql, os.environ)
    if setting.type is None and source and source.type == NTZ and kind == "string":
        sql = f"date_format(CAST((\n{sql}\n) AS {NTZ}), '{NTZ_TEXT}')"
    return LandedColumn(name, kind, nullable=False, sql=sql, expression=_fingerprint(f"{kind} {sql}"))


def _landing_type(table: TableSettings, source: Field) -> str:
    return landing_type(source, str(table.name), table.timestamp_ntz)


def table_projection(config: Config, table: TableSettings, schema: Schema) -> Projection:
    """Return the rows and values that land of a source with this schema.

    Raises MISTAKES, with the line of each expression that can't be parsed, and what `table_columns` raises.
    """
    projection = _unread_projection(table, schema)
    texts = [(f"tables.{table.name}.where", projection.where)] if projection.where else []
    texts += [(setting_of(table, column.name), column.sql) for column in projection.computed]
    used, problems = dict[str, None](), list[Problem]()
    for path, sql in texts:
        try:
            used |= dict.fromkeys(columns_used(sql, schema))
        except SqlNotParsed as error:
            problems.append(Problem(path, str(error)))
    if problems:
        raise config.invalid(tuple(problems))
    return replace(projection, uses=tuple(used))


def _unread_projection(table: TableSettings, schema: Schema) -> Projection:
    """Return the projection without the columns that it uses: its expressions may not be parsable."""
    computed = tuple(column for column in table_columns(table, schema) if column.sql)
    return Projection(_condition(table), computed, ntz=table.timestamp_ntz)


def condition_fingerprint(table: TableSettings) -> str | None:
    """Return the fingerprint of the condition; None for all rows. Raises SettingError for an unset variable."""
    return _fingerprint(_condition(table)) if table.where else None


def changed_expressions(
    table: TableSettings, landing: Iterable[LandedColumn], landed: Mapping[str, str | None], where: str | None
) -> str:
    """Return how the settings differ from those by which rows have landed, or an empty text.

    `landed` has the landed columns, each with the fingerprint of its expression, and `where` is that of the condition.
    """
    if where != condition_fingerprint(table):
        return "`where` is not the condition that landed rows have met"
    changed = [f"`{one.name}`" for one in landing if landed.get(one.name, one.expression) != one.expression]
    return f"`columns` or `timestamp_ntz` computes {', '.join(changed)} in another way than landed" if changed else ""


def _condition(table: TableSettings) -> str:
    return fill_sql(f"tables.{table.name}.where", table.where, os.environ) if table.where else ""


@lru_cache(maxsize=1024)
def _fingerprint(text: str) -> str:
    """Return a digest that takes too long for guessing a secret in the text."""
    return hashlib.scrypt(text.encode(), salt=b"mirror_assets", n=1 << 12, r=8, p=1, dklen=16).hex()


def recorded_columns(columns: Iterable[LandedColumn]) -> tuple[Column, ...]:
    """Return the columns as slice records and manifests store them."""
    return tuple(Column(name=column.name, type=column.type, expression=column.expression) for column in columns)


# What a source must record, by how its changes are read; files need nothing.
RECORD = {Changes.FEED: "the change data feed", Changes.ROW_TRACKING: "row tracking"}


def is_recorded(changes: Changes, metadata: Metadata) -> bool:
    """Return whether a source with this metadata records what reading its changes needs."""
    if changes is Changes.ROW_TRACKING:
        return metadata.row_tracking
    return changes is not Changes.FEED or metadata.feed_enabled


def check_source(config: Config, table: TableSettings, state: SourceState) -> None:
    """Check the settings against the source. Raises MISTAKES with their lines, and not_recorded."""
    problems = source_problems(table, source_columns(state))
    if problems:
        raise config.invalid(problems)
    if not is_recorded(table.changes, state.metadata):
        raise not_recorded(str(table.name), state.uri, state.protocol, table.changes)


def check_columns(config: Config, table: TableSettings, state: SourceState, landed: Sequence[str]) -> None:
    """Raise MISTAKES, with their lines, for `columns` that neither the source has nor the mirror ever had.

    And for names that differ in case only, or that Fabric refuses, which a later commit may have brought.
    """
    columns = source_columns(state)
    names = [name for name, _ in columns]
    missing, alike = missing_columns(table, [*names, *landed]), alike_columns(table, names)
    if problems := (*missing, *alike, *refused_names(table, columns)):
        raise config.invalid(problems)


def checked_projection(context: TableContext, schema_string: str) -> Projection:
    """Return the rows and values that land of a source with this schema; starts Spark if a setting has an expression.

    Raises MISTAKES, with all mistakes and their lines, and what `table_projection` raises.
    """
    table, schema = context.table, parse_schema(schema_string)
    unread = _unread_projection(table, schema)
    if not unread.where and not unread.computed:
        return unread
    from mirror_assets.encode.expressions import expression_problems  # plans need no PySpark

    found = expression_problems(context.spark(), schema_string, unread, table.keys)
    if found:
        raise context.config.invalid(
            tuple(
                Problem(f"tables.{table.name}.where" if x.column is None else setting_of(table, x.column), x.message)
                for x in found
            )
        )
    return table_projection(context.config, table, schema)
