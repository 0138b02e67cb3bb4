"""Statements that put rows, tables or versions in the place of others."""

from __future__ import annotations

import shutil
from dataclasses import replace

from mirror_assets_tests.worlds.histories.statement import Pick, Statement, of_kind, sql
from mirror_assets_tests.worlds.operations import overwrites, streams
from mirror_assets_tests.worlds.operations.features import PLAIN
from mirror_assets_tests.worlds.operations.operation import Trait
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, values

_PARTITIONED = frozenset({Trait.PARTITIONED})
_GENERATED = frozenset({Trait.GENERATED})


def _elsewhere(pick: Pick) -> str:
    """Rows of one partition whose ids are in no other."""
    part = pick.n % 2
    rows = values(pick.ids, "p", part=str(part))
    return f"SELECT * FROM ({rows}) WHERE id NOT IN (SELECT id FROM {{t}} WHERE part <> {part})"


def _replace_where(source: Source, pick: Pick) -> None:
    both = ", ".join(map(str, {*pick.ids, *pick.others}))
    source.save(source.fitted(values(pick.ids, "r")), {"replaceWhere": f"id IN ({both})"})


def _replace_partition(source: Source, pick: Pick) -> None:
    source.save(source.fitted(_elsewhere(pick)), {"replaceWhere": f"part = {pick.n % 2}"})


def _overwrite_statically(source: Source, pick: Pick) -> None:
    rows = f"SELECT id, name, amount FROM ({_elsewhere(pick)})"
    source.sql(f"INSERT OVERWRITE {{t}} PARTITION (part = {pick.n % 2}) (id, name, amount) {rows}")


def _insert_replace_where(source: Source, pick: Pick) -> None:
    """It takes all columns, in their order."""
    given = COLUMNS.split(", ")
    columns = ", ".join(name if name in given else f"NULL AS {name}" for name in source.columns)
    rows = f"SELECT {columns} FROM ({values(pick.ids, 'q')}) WHERE id < {pick.n}"
    source.sql(f"INSERT INTO {{t}} REPLACE WHERE id < {pick.n} {rows}")


def _stream_completely(source: Source, pick: Pick) -> None:
    rows = streams.read(source, source.fitted(values(pick.ids, "c")), "complete")
    streams.write(source, streams.summed(rows), "complete")


def _replace_by_path(source: Source, pick: Pick) -> None:
    source.sql(f"CREATE OR REPLACE TABLE {{t}} USING delta {_kept(source)} AS {values(pick.ids, 'b')}")


def _replace_by_name(source: Source, pick: Pick) -> None:
    kept = _kept(source)
    with source.named("replaced") as name:
        source.sql(f"CREATE OR REPLACE TABLE {name} USING delta {kept} AS {values(pick.ids, 'b')}")


def _kept(source: Source) -> str:
    """The properties by which a mirror finds changes, as they are."""
    names = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
    listed = ", ".join(f"'{name}' = '{source.configuration.get(name, 'false')}'" for name in names)
    return f"TBLPROPERTIES ({listed})"


def _overwrite_schema(source: Source, pick: Pick) -> None:
    rows = source.fitted(f"SELECT *, 'x' AS late{pick.n % 2} FROM ({values(pick.ids, 'x')})")
    source.save(rows, {"overwriteSchema": "true"})


def _clone_into_place(source: Source, pick: Pick) -> None:
    """Another table, cloned to where the source was."""
    shutil.rmtree(source.uri)
    base = Source(source.spark, f"{source.uri}-cloned")
    shutil.rmtree(base.uri, ignore_errors=True)
    PLAIN.create(base)
    base.sql(f"INSERT INTO {{t}} ({COLUMNS}) {values(pick.ids, 'k')}")
    source.sql(f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{base.uri}`")


def _restore(source: Source, commits: int) -> None:
    wanted = max(0, source.version - commits)
    before = next(version for version in range(wanted, -1, -1) if version not in source.unfit)
    source.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {before}")


_OVERWRITES = (
    Statement("insert overwrite", sql("INSERT OVERWRITE {t} ({columns}) {rows}")),
    Statement(
        "insert overwrite with rows of its own",
        sql("INSERT OVERWRITE {t} ({columns}) SELECT {columns} FROM {t} WHERE id NOT IN ({ids})"),
    ),
    Statement("overwrite by a DataFrame", lambda source, pick: source.save(source.fitted(values(pick.ids, "w")), {})),
    Statement("replaceWhere on a data column", _replace_where),
    Statement("restore to a version nearby", lambda source, pick: _restore(source, pick.n % 4), breaks=True),
)
# Each may remove a row and add another of its key, and touches most rows: a few of them in one slice are a run of
# paired commits over many parts, with keys that change in several.
CHURN = of_kind(
    "churn",
    *(replace(statement, weight=weight) for statement, weight in zip(_OVERWRITES, (3, 3, 2, 1, 2), strict=True)),
)

STATEMENTS = of_kind(
    "replacements",
    *(replace(statement, weight=weight) for statement, weight in zip(_OVERWRITES, (1, 1, 1, 1, 3), strict=True)),
    Statement("static overwrite of a partition", _overwrite_statically, needs=_PARTITIONED),
    Statement(
        "dynamic overwrite",
        lambda source, pick: source.save(source.fitted(_elsewhere(pick)), {"partitionOverwriteMode": "dynamic"}),
        needs=_PARTITIONED,
    ),
    Statement("replaceWhere on the partition", _replace_partition),
    Statement("INSERT REPLACE WHERE", _insert_replace_where, never_with=_GENERATED),
    Statement("streaming in complete mode", _stream_completely),
    Statement("restore", lambda source, pick: _restore(source, 1 + pick.n), weight=2, breaks=True),
    Statement("REPLACE TABLE by path", _replace_by_path, breaks=True),
    Statement("REPLACE TABLE by name", _replace_by_name, breaks=True),
    Statement("saveAsTable over it", lambda source, pick: overwrites.save_as_table(source, pick.ids)),
    Statement("overwriteSchema by path", _overwrite_schema, breaks=True),
    Statement("clone into place", _clone_into_place, breaks=True),
)
