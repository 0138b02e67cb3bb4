"""The projection of a table: checked against its source by Spark's analyzer, and shown by some landing rows."""

from __future__ import annotations

from mirror_assets.config.errors import Problem
from mirror_assets.config.source_fit import setting_of, source_problems
from mirror_assets.encode.columns import inserted_row, projected
from mirror_assets.encode.private.expressions import expression_problems
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.shown_rows import as_json
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.pipeline.context import TableContext, reading
from mirror_assets.pipeline.source_check import table_columns, table_projection, unread_projection
from mirror_assets.source.losses import SourceRead
from mirror_assets.source.projection import ALL_ROWS, Projection
from mirror_assets.source.scan_builder import scan_version
from mirror_assets.source.schema import parse_schema
from mirror_assets.source.source_state import source_columns


def checked_projection(context: TableContext, schema_string: str) -> Projection:
    """Return the rows and values that land of a source with this schema; starts Spark if a setting has an expression.

    Raises ConfigInvalid, with all mistakes and their lines, and what `table_projection` raises.
    """
    table, schema = context.table, parse_schema(schema_string)
    unread = unread_projection(table, schema)
    if unread == ALL_ROWS:
        return unread
    found = expression_problems(context.spark(), schema_string, unread, table.keys)
    if found:
        raise context.config.invalid(
            tuple(
                Problem(f"tables.{table.name}.where" if x.column is None else setting_of(table, x.column), x.message)
                for x in found
            )
        )
    return table_projection(context.config, table, schema)


def landing_rows(context: TableContext, limit: int) -> tuple[str, ...]:
    """Return up to `limit` rows of the newest version as they would land, as JSON objects; write nothing.

    The source needs no change data feed yet. Raises what `checked_projection` raises, ConfigInvalid for other mistakes,
    and what reading the source raises.
    """
    state = context.log.state()
    if problems := source_problems(context.table, source_columns(state)):
        raise context.config.invalid(problems)
    projection, at = checked_projection(context, state.schema_string), state.version
    place = f"{context.name}, reading version {at} of {context.log.uri}"
    with reading(context, SourceRead(at, at, versions=(at,))), spark_errors(place):
        columns = table_columns(context.table, state.schema)
        scan, is_keyless = scan_version(context.log, at), context.table.is_keyless
        rows = projected(read_scan(context.spark(), scan, row_ids=is_keyless), projection)
        return as_json(rows.select(*inserted_row(rows, columns, {})).limit(limit))
