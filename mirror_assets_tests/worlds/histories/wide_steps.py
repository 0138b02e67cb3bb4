"""Steps of wide histories: statements, changes of features, other tables in its place, and commits by delta-rs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from mirror_assets_tests.worlds.histories.wide_table import WideTable

Do = Callable[[WideTable], None]


@dataclass(frozen=True)
class Step:
    """A step. Delta may refuse it, which changes nothing. `appends`: it adds rows, or changes none."""

    name: str
    do: Do
    weight: int = 2
    appends: bool = False


def sql(*statements: str) -> Do:
    """Run statements; {t} is the table, {ids} some ids, {new} columns and a query for rows with other ids."""

    def do(table: WideTable) -> None:
        for statement in statements:
            filled = statement.replace("{ids}", ", ".join(map(str, table.ids())))
            if "{new}" in filled:
                filled = filled.replace("{new}", table.new_rows(table.ids()))
            table.sql(filled)

    return do


def _set(**values: str) -> str:
    listed = ", ".join(f"'delta.{name.replace('__', '.')}' = '{value}'" for name, value in values.items())
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ({listed})"


_VECTORS, _NO_VECTORS = (_set(enableDeletionVectors=value) for value in ("true", "false"))
_FEED, _NO_FEED = (_set(enableChangeDataFeed=value) for value in ("true", "false"))
_TRACKED, _UNTRACKED = (_set(enableRowTracking=value) for value in ("true", "false"))
_WIDENING = _set(enableTypeWidening="true")
_INSERT, _DELETE = "INSERT INTO {t} {new}", "DELETE FROM {t} WHERE id IN ({ids})"
_UPDATE = "UPDATE {t} SET name = concat(coalesce(name, ''), 'u') WHERE id IN ({ids})"


def _rotate(table: WideTable) -> None:
    ring = sorted({*table.ids(), *table.ids()})
    cases = " ".join(f"WHEN {old} THEN {new}" for old, new in zip(ring, [*ring[1:], ring[0]], strict=True))
    table.sql(f"UPDATE {{t}} SET id = CASE id {cases} END WHERE id IN ({', '.join(map(str, ring))})")


def _merge(table: WideTable) -> None:
    columns, ids = table.writable, table.ids(6)
    ops = ", ".join(f"({id_}, '{table.rng.choice('udi')}')" for id_ in ids)
    values = ", ".join(f"{table.expression(name, 'm')} AS {name}" for name in columns)
    source = f"(SELECT op, {values} FROM (SELECT * FROM VALUES {ops} AS v(id, op)) s)"
    given = ", ".join(f"s.{name}" for name in columns)
    table.sql(
        f"MERGE INTO {{t}} t USING {source} s ON t.id = s.id WHEN MATCHED AND s.op = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET name = concat(coalesce(t.name, ''), 'm'), amount = t.amount + 1 "
        f"WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({', '.join(columns)}) VALUES ({given})"
    )


def _update_partition(table: WideTable) -> None:
    if table.shape.partition:
        ids = ", ".join(map(str, table.ids()))
        table.sql(f"UPDATE {{t}} SET p = {table.odd_partition()} WHERE id IN ({ids})")


def _overwrite(table: WideTable) -> None:
    table.sql(f"INSERT OVERWRITE {{t}} {table.rows(table.ids(8), 'o')}")


def _replace_where(table: WideTable) -> None:
    """`id` has no two rows: all of an id are replaced."""
    ids = table.ids()
    wanted, listed = f"id IN ({', '.join(map(str, ids))})", ", ".join(table.log.names)
    kept = table.rng.sample(ids, max(1, len(ids) - 1))
    if set(table.log.names) == set(table.writable):
        query = table.rows(kept, "r", table.log.names).partition(") ")[2]
        table.sql(f"INSERT INTO {{t}} REPLACE WHERE {wanted} SELECT {listed} FROM ({query})")


def _restore(table: WideTable) -> None:
    version = table.log.version
    table.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {max(1, version - table.rng.randint(1, 5))}")


def _add_column(table: WideTable) -> None:
    missing = [name for name in ("extra0", "extra1", "extra2") if name not in table.log.names]
    if missing:
        table.sql(f"ALTER TABLE {{t}} ADD COLUMNS ({table.rng.choice(missing)} STRING)")


def _of_extras(statement: str) -> Do:
    def do(table: WideTable) -> None:
        names = table.log.names
        extras = [name for name in names if name.startswith("extra")]
        free = [name for name in ("extra0", "extra1", "extra2") if name not in names]
        if not extras:
            _add_column(table)
        elif free:
            table.sql(statement.format(t="{t}", extra=table.rng.choice(extras), free=table.rng.choice(free)))

    return do


def _add_member(table: WideTable) -> None:
    member = f"c{table.rng.randrange(3)}"
    table.sql(
        f"ALTER TABLE {{t}} ADD COLUMNS (info.{member} INT)",
        f"UPDATE {{t}} SET info.{member} = 5 WHERE id IN ({', '.join(map(str, table.ids()))})",
    )


def _widen(table: WideTable) -> None:
    wider = (
        ("n", "BIGINT"),
        ("f", "DOUBLE"),
        ("amount", "DECIMAL(14, 3)"),
        ("id", "BIGINT"),
        ("d", "TIMESTAMP_NTZ"),
        ("p", "BIGINT"),
        ("info.a", "BIGINT"),
    )
    column, kind = table.rng.choice(wider)
    table.sql(_WIDENING, f"ALTER TABLE {{t}} ALTER COLUMN {column} TYPE {kind}")


def _optional(statement: str) -> Do:
    """A statement before which some rows may be deleted and after which some may be added."""

    def do(table: WideTable) -> None:
        if table.rng.random() < 0.5:
            sql(_DELETE)(table)
        table.sql(statement)
        if table.rng.random() < 0.5:
            sql(_INSERT)(table)

    return do


def _base(table: WideTable) -> Path:
    """A path for another table."""
    return table.path.parent / f"base{len(table.steps)}"


def _make_base(table: WideTable) -> Path:
    path = _base(table)
    properties = ", ".join(
        f"'{name}' = '{value}'" for name, value in table.shape.properties.items() if "columnMapping" not in name
    )
    query = table.rows(table.ids(8), "k", _plain_columns(table)).partition(") ")[2]
    table.sql(f"CREATE TABLE delta.`{path}` USING delta TBLPROPERTIES ({properties}) AS {query}")
    if table.rng.random() < 0.5:
        table.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0")
    return path


def _plain_columns(table: WideTable) -> list[str]:
    """The columns that a table has at first, without generated ones and identities."""
    return ["id", *(["p"] if table.shape.partition else []), "name", "amount", "n", "f", "d", "ts", "info", "tags"]


def _clone_into_place(table: WideTable) -> None:
    base = _make_base(table)
    table.note("the folder is deleted")
    table.create_again(lambda: table.sql(f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{base}`"))


def _replace_by_clone(table: WideTable) -> None:
    table.sql(f"CREATE OR REPLACE TABLE {{t}} SHALLOW CLONE delta.`{_make_base(table)}`")


def _replace_by_query(table: WideTable) -> None:
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in table.shape.properties.items())
    query = table.rows(table.ids(8), "b", _plain_columns(table)).partition(") ")[2]
    table.sql(f"CREATE OR REPLACE TABLE {{t}} USING delta TBLPROPERTIES ({properties}) AS {query}")


def _create_again(table: WideTable) -> None:
    """With as many versions as before, or one more or less: the newest version says nothing about the table."""
    version = table.log.version + table.rng.choice((-1, 0, 0, 0, 1))

    def make() -> None:
        table.create(range(100, 100 + table.rng.randint(1, 9)))
        # New ids: an INSERT of no row makes no commit.
        while table.log.version < version:
            table.sql(f"INSERT INTO {{t}} {table.rows([1000 + table.log.version])}")

    table.note("the folder is deleted")
    table.create_again(make)


def _convert(table: WideTable) -> None:
    query = table.rows(table.ids(8), "q", _plain_columns(table)).partition(") ")[2]

    def make() -> None:
        rows = table.spark.sql(query)
        table.note(f"Parquet files of {query}")
        writer = rows.write.mode("overwrite")
        (writer.partitionBy("p") if table.shape.partition else writer).parquet(str(table.path))
        partition = f" PARTITIONED BY (p {table.shape.partition})" if table.shape.partition else ""
        table.sql(f"CONVERT TO DELTA parquet.`{table.writers_path}`{partition}")
        table.changed_by_others()
        properties = ", ".join(
            f"'{name}' = '{value}'" for name, value in table.shape.properties.items() if "columnMapping" not in name
        )
        table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({properties})")

    table.note("the folder is deleted")
    table.create_again(make)


def _by_rust(what: Callable[[WideTable, DeltaTable], object], text: str) -> Do:
    def do(table: WideTable) -> None:
        if "DECIMAL" in (table.shape.partition or ""):
            return  # delta-rs writes -1.500 as `-1.-500`
        what(table, DeltaTable(str(table.path)))
        table.note(text)
        table.changed_by_others()

    return do


def _rust_delete(table: WideTable, opened: DeltaTable) -> None:
    opened.delete(f"id in ({', '.join(map(str, table.ids()))})")


def _rust_update(table: WideTable, opened: DeltaTable) -> None:
    opened.update({"name": "concat(name, 'R')"}, predicate=f"id in ({', '.join(map(str, table.ids()))})")


def _rust_append(table: WideTable, _: DeltaTable) -> None:
    from deltalake import write_deltalake

    rows = table.spark.sql(table.rows([1000 + len(table.steps)], "rust").partition(") ")[2]).toArrow()
    schema = DeltaTable(str(table.path)).to_pyarrow_dataset().schema
    write_deltalake(str(table.path), rows.cast(schema), mode="append")


def _change_files_are_lost(table: WideTable) -> None:
    files = list((table.path / "_change_data").rglob("*.parquet"))
    table.note(f"{len(files)} change files are deleted")
    for file in files:
        file.unlink()


_ROWS = (
    Step("insert", sql(_INSERT), 8, appends=True),
    Step("update", sql(_UPDATE), 7),
    Step("delete", sql(_DELETE), 7),
    Step("merge", _merge, 6),
    Step("keys moved round", _rotate, 4),
    Step("update of every row", sql("UPDATE {t} SET amount = amount + 1"), 2),
    Step("update of a member", sql("UPDATE {t} SET info.a = coalesce(info.a, 0) + 1 WHERE id IN ({ids})"), 2),
    Step("update that changes nothing", sql("UPDATE {t} SET name = name WHERE id IN ({ids})"), 1),
    Step("update of the partition", _update_partition, 3),
    Step("overwrite", _overwrite, 2),
    Step("replaceWhere", _replace_where, 2),
    Step("truncate", sql("TRUNCATE TABLE {t}"), 1),
    Step("delete of many rows", sql("DELETE FROM {t} WHERE n % 2 = 0"), 2),
)
_FEATURES = (
    Step("vectors enabled", sql(_VECTORS), 2, appends=True),
    Step("vectors enabled and used", sql(_VECTORS, _DELETE), 4),
    Step("vectors used twice", sql(_VECTORS, _DELETE, _UPDATE, _DELETE), 3),
    Step("vectors disabled", sql(_NO_VECTORS, _DELETE), 2),
    Step("vectors dropped", _optional("ALTER TABLE {t} DROP FEATURE deletionVectors"), 4),
    Step("feed disabled", sql(_NO_FEED, _UPDATE), 2),
    Step("feed enabled", sql(_FEED, _UPDATE), 2),
    Step("feed off and on", sql(_NO_FEED, _DELETE, _FEED, _UPDATE), 2),
    Step("row tracking enabled", sql(_TRACKED, _UPDATE), 2),
    Step("row tracking disabled", sql(_UNTRACKED, _UPDATE), 1),
    Step("row tracking off and on", sql(_UNTRACKED, _UPDATE, _TRACKED, _UPDATE), 1),
    Step("row tracking dropped", _optional("ALTER TABLE {t} DROP FEATURE rowTracking"), 1),
    Step("column mapping enabled", sql(_set(columnMapping__mode="name"), _UPDATE), 3),
    Step("column mapping removed", sql(_set(columnMapping__mode="none"), _UPDATE), 1),
    Step("column added", _add_column, 2, appends=True),
    Step("column renamed", _of_extras("ALTER TABLE {t} RENAME COLUMN {extra} TO {free}"), 2, appends=True),
    Step("column dropped", _of_extras("ALTER TABLE {t} DROP COLUMN {extra}"), 2, appends=True),
    Step("member added", _add_member, 1),
    Step("type widened", _widen, 4, appends=True),
    Step("type widening dropped", _optional("ALTER TABLE {t} DROP FEATURE typeWidening"), 1),
    Step("clustered", sql("ALTER TABLE {t} CLUSTER BY (id, name)", _INSERT, "OPTIMIZE {t} FULL"), 2, appends=True),
    Step("not clustered", sql("ALTER TABLE {t} CLUSTER BY NONE", _INSERT), 1, appends=True),
    Step("in-commit timestamps", sql(_set(enableInCommitTimestamps="true"), _INSERT), 1, appends=True),
    Step(
        "checkpoints of version 2", sql(_set(checkpointPolicy="v2", checkpointInterval="2"), _INSERT), 1, appends=True
    ),
    Step("comment", sql("ALTER TABLE {t} ALTER COLUMN name COMMENT 'c'"), 1, appends=True),
)
_FILES = (
    Step("OPTIMIZE", sql("OPTIMIZE {t}"), 3, appends=True),
    Step("REORG", sql(_VECTORS, _DELETE, "REORG TABLE {t} APPLY (PURGE)"), 3),
    Step("RESTORE", _restore, 5),
    Step("VACUUM", sql("VACUUM {t}"), 1, appends=True),
    Step("change files lost", _change_files_are_lost, 2, appends=True),
)
_OTHERS = (
    Step("another table with the same version", _create_again, 2),
    Step("clone into place", _clone_into_place, 1),
    Step("replaced by a clone", _replace_by_clone, 1),
    Step("replaced by a query", _replace_by_query, 1),
    Step("converted", _convert, 1),
)
_RUST = (
    Step("delete by delta-rs", _by_rust(_rust_delete, "delete by delta-rs"), 2),
    Step("update by delta-rs", _by_rust(_rust_update, "update by delta-rs"), 2),
    Step("append by delta-rs", _by_rust(_rust_append, "append by delta-rs"), 2, appends=True),
    Step(
        "optimize by delta-rs",
        _by_rust(lambda _, opened: opened.optimize.compact(), "optimize by delta-rs"),
        1,
        appends=True,
    ),
)
STEPS: Sequence[Step] = (*_ROWS, *_FEATURES, *_FILES, *_OTHERS, *_RUST)
