"""Check that a table's settings fit the schema of its source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mirror_assets.column_types import LANDING_TYPES, column_type
from mirror_assets.config.errors import Problem, did_you_mean
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.landing.names import MAX_NAME
from mirror_assets.markers import ROW_ID, ROW_MARKER
from mirror_assets.spark_names import quoted

# The SQL endpoint or Direct Lake refuses these (reference `landing-zone` §5); T-SQL also ignores blanks at the end.
_REFUSED = re.compile(r"""^\s|["'`#%+:?]|\s$""")
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
# The name and the type of each column, in the notation of Spark's `simpleString`.
SourceColumns: TypeAlias = Sequence[tuple[str, str]]


def source_problems(table: TableSettings, columns: SourceColumns) -> tuple[Problem, ...]:
    """Return the mistakes in mirror.yaml or in the source; `Config.invalid` adds the lines."""
    path = f"tables.{table.name}"
    keys = (Problem(f"{path}.keys", message) for message in _unfit_keys(table, columns))
    reserved = (Problem(f"{path}.source", message) for message in _reserved(table, columns))
    names = [name for name, _ in columns]
    return (
        *keys,
        *missing_columns(table, names),
        *alike_columns(table, names),
        *refused_names(table, columns),
        *reserved,
    )


def refused_names(table: TableSettings, columns: SourceColumns) -> tuple[Problem, ...]:
    """Return a problem for each column that lands under a name which Fabric's SQL endpoint or Direct Lake refuses."""
    found, replaced = list[Problem](), {name.casefold() for name in table.computed}
    for name in table.computed:
        if why := _why_refused(name):
            found.append(Problem(setting_of(table, name), f"the computed column {name!r} {why}; choose another name"))
    for name, kind in columns:
        if table.mirrors(name) and name.casefold() not in replaced and (why := _why_refused(name)):
            sql = f"{{sql: {quoted(name)!r}, type: {kind if kind in LANDING_TYPES else 'string'}}}"
            rename = f"to rename it, list the other columns in `columns`, and {{new_name: {sql}}} in place of this one"
            found.append(Problem(f"tables.{table.name}.columns", f"the source's column {name!r} {why}; {rename}"))
    return tuple(found)


def _why_refused(name: str) -> str:
    if len(name) > MAX_NAME:
        return f"has a name of more than {MAX_NAME} characters, which SQL can't have"
    if found := _REFUSED.search(name):
        shown = "a blank at an end" if found[0].isspace() else found[0]
        return f"has {shown} in its name, which Fabric's SQL endpoint or Direct Lake refuses"
    return ""


def alike_columns(table: TableSettings, names: Sequence[str]) -> tuple[Problem, ...]:
    """Return a problem for each column whose name differs from another's in case only.

    Spark and Fabric ignore case, and can't distinguish two such columns of the source. A
    computed column would land under another name than the source's column that it replaces.
    """
    path, found, first = f"tables.{table.name}", list[Problem](), dict[str, str]()
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name:
            message = f"the source's columns {other!r} and {name!r} differ in case only, which Spark and Fabric ignore"
            found.append(Problem(f"{path}.source", f"{message}; rename one"))
    for name in table.computed:
        other = first.get(name.lower(), name)
        if other != name and name not in names:
            message = f"{name!r} differs from the source's column {other!r} in case only; write {other!r} to replace it"
            found.append(Problem(setting_of(table, name), f"{message}, or another name"))
    return tuple(found)


def missing_columns(table: TableSettings, known: Sequence[str]) -> tuple[Problem, ...]:
    """Return a problem for each column in `columns` that the source does not have, and that isn't computed."""
    path, lower = f"tables.{table.name}.columns", {name.lower() for name in known}
    listed = enumerate(table.columns) if isinstance(table.columns, tuple) else ()
    missing = [
        Problem(f"{path}.{index}", f"the source has no column {name!r}{did_you_mean(name, known)}")
        for index, name in listed
        if isinstance(name, str) and name not in known
    ]
    untyped = [
        Problem(setting_of(table, name), f"set `type`: the source has no column {name!r} whose type it could have")
        for name, column in table.computed.items()
        if column.type is None and name.lower() not in lower
    ]
    return (*missing, *untyped)


def setting_of(table: TableSettings, computed: str) -> str:
    """Return the dotted path of a computed column's setting."""
    path = f"tables.{table.name}.columns"
    places = enumerate(table.columns) if isinstance(table.columns, tuple) else ()
    index = next((index for index, entry in places if isinstance(entry, dict) and computed in entry), None)
    return f"{path}.{computed}" if index is None else f"{path}.{index}.{computed}"


def _unfit_keys(table: TableSettings, columns: SourceColumns) -> Iterator[str]:
    types = dict(columns)
    types |= {name: column.type or types.get(name, "") for name, column in table.computed.items()}
    for key in table.keys:
        if key not in types:
            yield f"the source has no column {key!r}{did_you_mean(key, types)}"
            continue
        if why := column_type(types[key]).why_no_key:
            yield f"{key!r} is {types[key]} and can't be a key: {why}"


def _reserved(table: TableSettings, columns: SourceColumns) -> Iterator[str]:
    uses = {ROW_MARKER.lower(): "of the landing file's row marker"}
    if table.changes is not Changes.APPEND_ONLY:
        uses |= dict.fromkeys(_FEED_COLUMNS, "of a column of Delta's change data feed")
    if table.is_keyless:
        uses[ROW_ID] = "of the mirror's key, the row id"
    for name in table.computed:
        if use := uses.get(name.lower()):
            yield f"the computed column {name!r} has the name {use}; choose another"
    for name, _ in columns:
        use = uses.get(name.lower())
        if use and (table.mirrors(name) or name.lower() in _FEED_COLUMNS):
            yield f"the source's column {name!r} has the name {use}; rename it"
