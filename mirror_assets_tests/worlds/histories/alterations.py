"""Statements that change a table's schema, its properties or its files, and no row."""

from __future__ import annotations

from mirror_assets_tests.worlds.histories.statement import Pick, Run, Statement, of, of_kind, sql
from mirror_assets_tests.worlds.operations import layout, overwrites
from mirror_assets_tests.worlds.operations.operation import NOTHING, Trait
from mirror_assets_tests.worlds.operations.source import Source, texts

_MAPPED = frozenset({Trait.MAPPED})
_EXTRAS = ("extra0", "extra1", "extra2")
# A constraint by this name can be added but once.
_ONCE = ("constraint", "constraint dropped")


def _add_column(source: Source, pick: Pick) -> None:
    """One that may have been there before."""
    missing = [name for name in _EXTRAS if name not in source.columns]
    if missing:
        source.sql(f"ALTER TABLE {{t}} ADD COLUMNS ({missing[pick.n % len(missing)]} STRING)")


def _add_member(source: Source, pick: Pick) -> None:
    """To a struct, which is added first."""
    if "info" not in source.columns:
        source.sql("ALTER TABLE {t} ADD COLUMNS (info STRUCT<a: INT, b: STRING>)")
    elif f"c{pick.n % 2}" not in source.members("info"):
        source.sql(f"ALTER TABLE {{t}} ADD COLUMNS (info.c{pick.n % 2} INT)")


def _update_members(source: Source, pick: Pick) -> None:
    """Each member that is a number, if there is a struct."""
    members = [name for name in source.members("info") if name != "b"]
    if members:
        listed = ", ".join(f"info.{name} = coalesce(info.{name}, 0) + {pick.n}" for name in members)
        pick.sql(source, f"UPDATE {{t}} SET {listed} WHERE id IN ({{ids}})")


def _drop_column(source: Source, pick: Pick) -> None:
    """If there is one that was added; else one is added."""
    if names := texts(source):
        source.sql(f"ALTER TABLE {{t}} DROP COLUMN {names[pick.n % len(names)]}")
    else:
        _add_column(source, pick)


def _drop_member(source: Source, _: Pick) -> None:
    if "b" in source.members("info"):
        source.sql("ALTER TABLE {t} DROP COLUMN info.b")


def _rename_column(source: Source, pick: Pick) -> None:
    """If there is one that was added; else one is added."""
    names, free = texts(source), [name for name in _EXTRAS if name not in source.columns]
    if not names:
        _add_column(source, pick)
    elif free:
        source.sql(f"ALTER TABLE {{t}} RENAME COLUMN {names[pick.n % len(names)]} TO {free[pick.n % len(free)]}")


def _off_and_on(name: str) -> Run:
    """With rows that come in between."""
    switch = f"ALTER TABLE {{t}} SET TBLPROPERTIES (delta.{name} = "
    return sql(f"{switch}false)", "INSERT INTO {t} ({columns}) {new}", f"{switch}true)")


def _constrain(source: Source, pick: Pick) -> None:
    name = f"positive{source.version}"
    # NULL passes: a later step may write rows without a key, for a run to refuse.
    source.sql(f"ALTER TABLE {{t}} ADD CONSTRAINT {name} CHECK (id IS NULL OR id >= 0)")
    if pick.n % 2:
        source.sql(f"ALTER TABLE {{t}} DROP CONSTRAINT {name}")


_WIDEN = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"

SCHEMA = of_kind(
    "schema",
    Statement("column added", _add_column, appends=True, weight=4, breaks=True),
    Statement("struct or member added", _add_member, appends=True, weight=2),
    Statement("update of a struct's members", _update_members, weight=2),
    Statement("column dropped", _drop_column, appends=True, needs=_MAPPED, weight=5, breaks=True),
    Statement("member dropped", _drop_member, appends=True, needs=_MAPPED, breaks=True),
    Statement("column renamed", _rename_column, appends=True, needs=_MAPPED, weight=4, breaks=True),
    Statement("NOT NULL dropped", sql("ALTER TABLE {t} ALTER COLUMN name DROP NOT NULL"), appends=True),
    Statement(
        "update to NULL",
        sql("ALTER TABLE {t} ALTER COLUMN name DROP NOT NULL", "UPDATE {t} SET name = NULL WHERE id IN ({ids})"),
    ),
    Statement("comment", sql("ALTER TABLE {t} ALTER COLUMN name COMMENT 'c{n}'"), appends=True),
    Statement("column moved", sql("ALTER TABLE {t} ALTER COLUMN amount AFTER id"), appends=True),
    Statement("column moved first", sql("ALTER TABLE {t} ALTER COLUMN name FIRST"), appends=True),
    Statement(
        "decimal widened",
        sql(_WIDEN, "ALTER TABLE {t} ALTER COLUMN amount TYPE DECIMAL(12, 2)"),
        appends=True,
        breaks=True,
    ),
    Statement(
        "integer widened", sql(_WIDEN, "ALTER TABLE {t} ALTER COLUMN part TYPE BIGINT"), appends=True, breaks=True
    ),
    Statement(
        "column mapping switched on",
        sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
        appends=True,
        never_with=_MAPPED,
    ),
)

OTHERS = of_kind(
    "properties and files",
    Statement("feed off and on", _off_and_on("enableChangeDataFeed"), appends=True, needs=frozenset({Trait.FEED})),
    Statement(
        "row tracking off and on",
        _off_and_on("enableRowTracking"),
        appends=True,
        needs=frozenset({Trait.TRACKED}),
        breaks=True,
    ),
    Statement("constraint", _constrain, appends=True),
    Statement("rewrite that says it changes no data", lambda source, _: overwrites.rearrange(source), appends=True),
    *(of(operation) for operation in layout.OPERATIONS if operation.lands == NOTHING and operation.name not in _ONCE),
)
