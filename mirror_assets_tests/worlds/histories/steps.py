"""Steps of histories: statements, changes of features, other tables in its place, and commits by delta-rs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.spark_api import arrow_table
from mirror_assets_tests.worlds.histories.table import Table

Do = Callable[[Table], None]


@dataclass(frozen=True)
class Step:
    """A step. Delta may refuse it, which changes nothing.

    `appends`: it adds rows, or changes none. `follows`: a mirror follows it without a rebuild.
    """

    name: str
    do: Do
    weight: int = 2
    appends: bool = False
    follows: bool = False


def sql(*statements: str) -> Do:
    """Run statements; {t} is the table, {ids} some ids, {new} columns and a query for rows with other ids."""

    def do(table: Table) -> None:
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
_FROM_ITSELF = (
    "INSERT INTO {t} SELECT id + 4000 AS id, * EXCEPT (id) FROM {t} "
    "WHERE id IN ({ids}) AND id + 4000 NOT IN (SELECT id FROM {t})"
)
_BY_SOURCE = (
    "MERGE INTO {t} t USING (SELECT explode(array({ids})) AS id) s ON t.id = s.id WHEN MATCHED AND t.id % 2 = 0 THEN "
    "UPDATE SET amount = t.amount + 1 WHEN NOT MATCHED BY SOURCE AND t.id % 5 = 1 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND t.id % 3 = 1 THEN UPDATE SET amount = t.amount + 1"
)


def _rotate(table: Table) -> None:
    ring = sorted({*table.ids(), *table.ids()})
    cases = " ".join(f"WHEN {old} THEN {new}" for old, new in zip(ring, [*ring[1:], ring[0]], strict=True))
    table.sql(f"UPDATE {{t}} SET id = CASE id {cases} END WHERE id IN ({', '.join(map(str, ring))})")


def _merge(table: Table) -> None:
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


def _update_partition(table: Table) -> None:
    if table.shape.partition:
        ids = ", ".join(map(str, table.ids()))
        table.sql(f"UPDATE {{t}} SET p = {table.odd_partition()} WHERE id IN ({ids})")


def _overwrite(table: Table) -> None:
    table.sql(f"INSERT OVERWRITE {{t}} {table.rows(table.ids(8), 'o')}")


def _replace_where(table: Table) -> None:
    """`id` has no two rows: all of an id are replaced."""
    ids = table.ids()
    wanted, listed = f"id IN ({', '.join(map(str, ids))})", ", ".join(table.log.names)
    kept = table.rng.sample(ids, max(1, len(ids) - 1))
    if set(table.log.names) == set(table.writable):
        query = table.rows(kept, "r", table.log.names).partition(") ")[2]
        table.sql(f"INSERT INTO {{t}} REPLACE WHERE {wanted} SELECT {listed} FROM ({query})")


def _restore(table: Table) -> None:
    wanted = table.log.version - table.rng.randint(1, 5)
    fit = [version for version in range(1, max(1, wanted) + 1) if version not in table.unfit]
    table.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {fit[-1] if fit else 1}")


def _query(table: Table, name: str, columns: Sequence[str] | None = None, most: int = 8) -> str:
    return table.rows(table.ids(most), name, columns).partition(") ")[2]


def _save(rows: DataFrame, table: Table, mode: str = "overwrite", **options: str) -> None:
    table.note(f"rows saved by path: {mode}, {options}")
    rows.write.format("delta").mode(mode).options(**options).save(str(table.writers_path))


def _append_a_column(table: Table) -> None:
    """As a job that copies files does; new columns come with them."""
    rows = table.spark.sql(table.rows([2000 + len(table.steps)], "e").partition(") ")[2])
    _save(rows.selectExpr("*", "'e' AS evolved"), table, "append", mergeSchema="true")


def _replace_partition(table: Table) -> None:
    """Partitions with new rows are replaced, the others stay."""
    if table.shape.partition and not table.shape.keyed_by_partition:
        value = table.odd_partition()
        query = _query(table, "p").replace(f"{table.expression('p')} AS p", f"{value} AS p")
        _save(
            table.spark.sql(
                f"SELECT * FROM ({query}) WHERE id NOT IN (SELECT id FROM delta.`{table.writers_path}` "
                f"WHERE NOT p <=> {value})"
            ),
            table,
            partitionOverwriteMode="dynamic",
        )


def _save_as_table(table: Table) -> None:
    name = f"saved{table.rng.getrandbits(48)}"
    table.spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{table.writers_path}'")
    try:
        table.note("saveAsTable over it")
        table.spark.sql(_query(table, "s")).write.format("delta").mode("overwrite").saveAsTable(name)
    finally:
        table.spark.sql(f"DROP TABLE {name}")


def _overwrite_schema(table: Table) -> None:
    rows = table.spark.sql(_query(table, "x", plain_columns(table))).selectExpr("*", "'x' AS late")
    _save(rows, table, overwriteSchema="true")


def _rearrange(table: Table) -> None:
    """A rewrite that says it changes no data, and is right."""
    rows = table.spark.read.format("delta").load(str(table.writers_path))
    _save(table.spark.createDataFrame(rows.collect(), rows.schema), table, dataChange="false")


def _stream(mode: str) -> Do:
    def do(table: Table) -> None:
        folder = table.path.parent / f"stream{len(table.steps)}"
        ids = [3000 + len(table.steps), 3001 + len(table.steps)]
        query = table.rows(ids, "c").partition(") ")[2] if mode == "append" else _query(table, "c")
        rows = table.spark.sql(query)
        rows.write.parquet(str(folder / "rows"))
        read = table.spark.readStream.schema(rows.schema).parquet(str(folder / "rows"))
        if mode == "complete":
            read = read.groupBy("id").agg(*(F.first(name).alias(name) for name in rows.columns if name != "id"))
        table.note(f"stream in mode {mode}: {query}")
        writer = read.writeStream.format("delta").outputMode(mode).option("checkpointLocation", str(folder / "seen"))
        writer.trigger(availableNow=True).start(str(table.writers_path)).awaitTermination()

    return do


def _constrain(table: Table) -> None:
    """NULL passes: a later step may write rows without a key, for a run to refuse."""
    name = f"positive{table.log.version}"
    table.sql(f"ALTER TABLE {{t}} ADD CONSTRAINT {name} CHECK (id IS NULL OR id >= 0)")
    if table.rng.random() < 0.5:
        table.sql(f"ALTER TABLE {{t}} DROP CONSTRAINT {name}")


def _add_column(table: Table) -> None:
    missing = [name for name in ("extra0", "extra1", "extra2") if name not in table.log.names]
    if missing:
        table.sql(f"ALTER TABLE {{t}} ADD COLUMNS ({table.rng.choice(missing)} STRING)")


def _of_extras(statement: str) -> Do:
    def do(table: Table) -> None:
        names = table.log.names
        extras = [name for name in names if name.startswith("extra")]
        free = [name for name in ("extra0", "extra1", "extra2") if name not in names]
        if not extras:
            _add_column(table)
        elif free:
            table.sql(statement.format(t="{t}", extra=table.rng.choice(extras), free=table.rng.choice(free)))

    return do


def _add_member(table: Table) -> None:
    member = f"c{table.rng.randrange(3)}"
    table.sql(
        f"ALTER TABLE {{t}} ADD COLUMNS (info.{member} INT)",
        f"UPDATE {{t}} SET info.{member} = 5 WHERE id IN ({', '.join(map(str, table.ids()))})",
    )


def _widen(table: Table) -> None:
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

    def do(table: Table) -> None:
        if table.rng.random() < 0.5:
            sql(_DELETE)(table)
        table.sql(statement)
        if table.rng.random() < 0.5:
            sql(_INSERT)(table)

    return do


def _make_base(table: Table) -> Path:
    path = table.path.parent / f"base{len(table.steps)}"
    properties = ", ".join(
        f"'{name}' = '{value}'" for name, value in table.shape.properties.items() if "columnMapping" not in name
    )
    query = _query(table, "k", plain_columns(table))
    table.sql(f"CREATE TABLE delta.`{path}` USING delta TBLPROPERTIES ({properties}) AS {query}")
    if table.rng.random() < 0.5:
        table.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0")
    return path


def plain_columns(table: Table) -> list[str]:
    """The columns that a table has at first, without generated ones and identities."""
    return ["id", *(["p"] if table.shape.partition else []), "name", "amount", "n", "f", "d", "ts", "info", "tags"]


def _clone_into_place(table: Table) -> None:
    base = _make_base(table)
    table.note("the folder is deleted")
    table.create_again(lambda: table.sql(f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{base}`"))


def _replace_by_clone(table: Table) -> None:
    table.sql(f"CREATE OR REPLACE TABLE {{t}} SHALLOW CLONE delta.`{_make_base(table)}`")


def _replace_by_query(table: Table) -> None:
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in table.shape.properties.items())
    query = _query(table, "b", plain_columns(table))
    table.sql(f"CREATE OR REPLACE TABLE {{t}} USING delta TBLPROPERTIES ({properties}) AS {query}")


def _create_again(table: Table) -> None:
    """With as many versions as before, or one more or less: the newest version says nothing about the table."""
    version = table.log.version + table.rng.choice((-1, 0, 0, 0, 1))

    def make() -> None:
        table.create(range(100, 100 + table.rng.randint(1, 9)))
        # New ids: an INSERT of no row makes no commit.
        while table.log.version < version:
            table.sql(f"INSERT INTO {{t}} {table.rows([1000 + table.log.version])}")

    table.note("the folder is deleted")
    table.create_again(make)


def _convert(table: Table) -> None:
    query = _query(table, "q", plain_columns(table))

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


def _by_rust(what: Callable[[Table, DeltaTable], object], text: str) -> Do:
    def do(table: Table) -> None:
        if "DECIMAL" in (table.shape.partition or ""):
            return  # delta-rs writes -1.500 as `-1.-500`
        what(table, DeltaTable(str(table.path)))
        table.note(text)
        table.changed_by_others()

    return do


def _rust_delete(table: Table, opened: DeltaTable) -> None:
    opened.delete(f"id in ({', '.join(map(str, table.ids()))})")


def _rust_update(table: Table, opened: DeltaTable) -> None:
    opened.update({"name": "concat(name, 'R')"}, predicate=f"id in ({', '.join(map(str, table.ids()))})")


def _rust_merge(table: Table, opened: DeltaTable) -> None:
    """Delete some rows, update others, insert none, and delete one that is not given."""
    rows = pa.table({"id": pa.array(ids := table.ids(6)), "op": [table.rng.choice("ud") for _ in ids]})
    merge = opened.merge(rows, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_delete("s.op = 'd'").when_matched_update({"name": "concat(t.name, 'M')"})
    merge.when_not_matched_by_source_delete(f"t.id = {table.rng.randrange(9)}").execute()


def _rust_swap(table: Table, opened: DeltaTable) -> None:
    first, last = table.ids()[0], table.ids()[-1]
    opened.update({"id": f"{first + last} - id"}, predicate=f"id in ({first}, {last})")


def _rust_restore(table: Table, opened: DeltaTable) -> None:
    version = max(1, table.log.version - table.rng.randint(1, 3))
    if not table.unfit & {version}:
        opened.restore(version)


def _create_by_rust(table: Table) -> None:
    rows = arrow_table(table.spark.sql(_query(table, "rust", plain_columns(table))))

    def make() -> None:
        write_deltalake(str(table.path), rows, configuration=dict(table.shape.properties))

    table.note("the folder is deleted, and delta-rs makes another table there")
    table.create_again(make)


def _rust_append(table: Table, _: DeltaTable) -> None:
    rows = arrow_table(table.spark.sql(table.rows([1000 + len(table.steps)], "rust").partition(") ")[2]))
    schema = DeltaTable(str(table.path)).to_pyarrow_dataset().schema
    write_deltalake(str(table.path), rows.cast(schema), mode="append")


def _change_files_are_lost(table: Table) -> None:
    files = list((table.path / "_change_data").rglob("*.parquet"))
    table.note(f"{len(files)} change files are deleted")
    for file in files:
        file.unlink()


_CHURN = (
    Step("overwrite", _overwrite, 2),
    Step(
        "overwrite with rows of its own",
        sql("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id NOT IN ({ids})"),
        2,
    ),
    Step("replaceWhere", _replace_where, 2),
    Step("overwrite by a DataFrame", lambda table: _save(table.spark.sql(_query(table, "w")), table), 1),
    Step("update of every row", sql("UPDATE {t} SET amount = amount + 1"), 2),
)
# Each of these may remove a row and add another of its key, and touches most rows: a few of them in one slice are a run
# of paired commits over many parts, with keys that change in several.
CHURN: Sequence[Step] = tuple(replace(step, follows=True) for step in _CHURN)
ROWS: Sequence[Step] = tuple(
    replace(step, follows=True)
    for step in (
        Step("insert", sql(_INSERT), 8, appends=True),
        Step("update", sql(_UPDATE), 7),
        Step("delete", sql(_DELETE), 7),
        Step("merge", _merge, 6),
        Step("merge of rows that the source lacks", sql(_BY_SOURCE), 2),
        Step("keys moved round", _rotate, 4),
        Step("insert from itself", sql(_FROM_ITSELF), 2),
        Step("update of a member", sql("UPDATE {t} SET info.a = coalesce(info.a, 0) + 1 WHERE id IN ({ids})"), 2),
        Step("update of an array", sql("UPDATE {t} SET tags = array('v', name) WHERE id IN ({ids})"), 2),
        Step("update that changes nothing", sql("UPDATE {t} SET name = name WHERE id IN ({ids})"), 1),
        Step("update to NULL", sql("UPDATE {t} SET name = NULL WHERE id IN ({ids})"), 1),
        Step("update of the partition", _update_partition, 3),
        Step("truncate", sql("TRUNCATE TABLE {t}"), 1),
        Step("delete of many rows", sql("DELETE FROM {t} WHERE n % 2 = 0"), 2),
        *_CHURN,
    )
)
_WRITES = (
    Step("append that adds a column", _append_a_column, 1, appends=True),
    Step("partition overwritten", _replace_partition, 2),
    Step("saveAsTable over it", _save_as_table, 1),
    Step("overwriteSchema by path", _overwrite_schema, 1),
    Step("rewrite that says it changes no data", _rearrange, 1, appends=True),
    Step("streaming append", _stream("append"), 1, appends=True),
    Step("streaming in complete mode", _stream("complete"), 1),
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
    Step("comment", sql("ALTER TABLE {t} ALTER COLUMN name COMMENT 'c'"), 1, appends=True, follows=True),
    Step("column moved", sql("ALTER TABLE {t} ALTER COLUMN amount AFTER id", _INSERT), 1, appends=True, follows=True),
    Step("constraint", _constrain, 1, appends=True, follows=True),
)
_FILES = (
    Step("OPTIMIZE", sql("OPTIMIZE {t}"), 3, appends=True, follows=True),
    Step("ZORDER", sql("OPTIMIZE {t} ZORDER BY (id)"), 1, appends=True, follows=True),
    Step("REORG", sql(_VECTORS, _DELETE, "REORG TABLE {t} APPLY (PURGE)"), 3),
    Step("RESTORE", _restore, 5),
    Step("VACUUM", sql("VACUUM {t}"), 1, appends=True, follows=True),
    Step("change files lost", _change_files_are_lost, 2, appends=True),
)
_OTHERS = (
    Step("another table with the same version", _create_again, 2),
    Step("clone into place", _clone_into_place, 1),
    Step("replaced by a clone", _replace_by_clone, 1),
    Step("replaced by a query", _replace_by_query, 1),
    Step("converted", _convert, 1),
)
RUST: Sequence[Step] = (
    Step("delete by delta-rs", _by_rust(_rust_delete, "delete by delta-rs"), 2, follows=True),
    Step("update by delta-rs", _by_rust(_rust_update, "update by delta-rs"), 2, follows=True),
    Step("merge by delta-rs", _by_rust(_rust_merge, "merge by delta-rs"), 2, follows=True),
    Step("keys swapped by delta-rs", _by_rust(_rust_swap, "keys swapped by delta-rs"), 2, follows=True),
    Step("append by delta-rs", _by_rust(_rust_append, "append by delta-rs"), 2, appends=True, follows=True),
    Step(
        "optimize by delta-rs",
        _by_rust(lambda _, opened: opened.optimize.compact(), "optimize by delta-rs"),
        1,
        appends=True,
        follows=True,
    ),
    Step("restore by delta-rs", _by_rust(_rust_restore, "restore by delta-rs"), 1),
    Step("another table by delta-rs", _create_by_rust, 1),
)
STEPS: Sequence[Step] = (*ROWS, *_WRITES, *_FEATURES, *_FILES, *_OTHERS, *RUST)
