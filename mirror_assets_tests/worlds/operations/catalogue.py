"""The catalogue of operations in chapters, each in the order in which it makes one history."""

from __future__ import annotations

from dataclasses import dataclass

from delta.tables import DeltaTable
from deltalake import write_deltalake
from pyspark.sql import functions as F

from mirror_assets_tests.worlds.operations.operation import NOTHING, Do, Lands, Operation, Trait, sql
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, arrow, values

_BEFORE_OVERWRITES = (0, 2, 3, 5, 7, 9, 11, 12, 30, 31, 300, 301)
_BEFORE_RESTORES = (*range(10), 600, 601, 602)
_NEW = f"INSERT INTO {{t}} ({COLUMNS}) "
_INSERT_ROW = f"INSERT ({COLUMNS}) VALUES (s.id, s.id % 2, 'merged', 1)"


def _insert(ids: range, part: str = "id % 2") -> str:
    return _NEW + values(ids, part=part)


def _merge(ids: str, *clauses: str, on: str = "t.id = s.id") -> str:
    return f"MERGE INTO {{t}} t USING (SELECT * FROM VALUES {ids} AS v(id, op)) s ON {on} " + " ".join(clauses)


# What is there before: 0 to 9.
CHANGES = (
    Operation("insert", sql(_insert(range(10, 12))), Lands(inserts=2)),
    Operation(
        "insert from itself", sql(f"{_NEW} SELECT id + 20, part, name, amount FROM {{t}} WHERE id > 9"), Lands(2)
    ),
    Operation("update", sql("UPDATE {t} SET name = 'u' WHERE id IN (1, 2)"), Lands(updates=2)),
    Operation("update that changes no value", sql("UPDATE {t} SET name = name WHERE id = 3"), Lands(updates=1)),
    Operation("update of the partition", sql("UPDATE {t} SET part = part + 1 WHERE id = 5"), Lands(updates=1)),
    Operation("update of a key", sql("UPDATE {t} SET id = 101 WHERE id = 1"), Lands(inserts=1, deletes=1)),
    Operation("key swap", sql("UPDATE {t} SET id = 5 - id WHERE id IN (2, 3)"), Lands(updates=2)),
    Operation("keys that move up", sql("UPDATE {t} SET id = id + 1 WHERE id IN (10, 11)"), Lands(1, 1, 1)),
    Operation("delete of a part of a file", sql("DELETE FROM {t} WHERE id = 4"), Lands(deletes=1)),
    Operation("delete without a match", sql("DELETE FROM {t} WHERE id = 4444"), NOTHING),
    Operation("insert of a partition", sql(_insert(range(200, 204), part="7")), Lands(inserts=4)),
    Operation("delete of a partition", sql("DELETE FROM {t} WHERE part = 7"), Lands(deletes=4)),
)

# Before: 0, 2, 3, 5 to 9, 11, 12, 30, 31, 101.
MERGES = (
    Operation(
        "merge with every clause",
        sql(
            _merge(
                "(5, 'u'), (6, 'd'), (300, 'i')",
                "WHEN MATCHED AND s.op = 'u' THEN UPDATE SET name = 'merged' WHEN MATCHED THEN DELETE",
                f"WHEN NOT MATCHED THEN {_INSERT_ROW}",
                "WHEN NOT MATCHED BY SOURCE AND t.id = 101 THEN DELETE",
                "WHEN NOT MATCHED BY SOURCE AND t.id = 12 THEN UPDATE SET amount = 0",
            )
        ),
        Lands(1, 2, 2),
    ),
    Operation("merge that only inserts", sql(_merge("(301, 'i')", f"WHEN NOT MATCHED THEN {_INSERT_ROW}")), Lands(1)),
    Operation(
        "merge that deletes and inserts one key",
        sql(
            _merge(
                "(7, 'd'), (7, 'i')",
                f"WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN {_INSERT_ROW}",
                on="t.id = s.id AND s.op = 'd'",
            )
        ),
        Lands(updates=1),
    ),
    Operation(
        "merge that deletes one row twice",
        sql(_merge("(8, 'a'), (8, 'b')", "WHEN MATCHED THEN DELETE")),
        Lands(0, 0, 1),
    ),
    Operation(
        "merge without a match",
        sql(_merge("(4444, 'u')", "WHEN MATCHED AND s.op = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'x'")),
        NOTHING,
    ),
)


def _replace_where_on_data(source: Source) -> None:
    source.save(source.spark.sql(values([300, 302])), {"replaceWhere": "id >= 300"})


def _replace_where_on_partition(source: Source) -> None:
    source.sql(f"INSERT INTO {{t}} ({COLUMNS}) {values([410, 411], part='9')}")
    source.save(source.spark.sql(values([411, 412], "r", part="9")), {"replaceWhere": "part = 9"})


def _dynamic(source: Source) -> None:
    rows = source.spark.sql(values([412, 413], "d", part="9"))
    source.save(rows, {"partitionOverwriteMode": "dynamic"})


def _of_the_dataframe(source: Source) -> None:
    source.save(source.spark.sql(values([0, 2, 3, 5, 500], "w")), {})


def _rearrange(source: Source) -> None:
    """A rewrite that says it changes no data, and is right."""
    rows = source.query("SELECT * FROM {t}")
    source.save(source.spark.createDataFrame(rows.collect(), rows.schema), {"dataChange": "false"})


def save_as_table(source: Source) -> None:
    with source.named("saved") as name:
        source.query(values([0, 2, 5], "s")).write.format("delta").mode("overwrite").saveAsTable(name)


_OVERWRITES_ON_PARTITIONS = (
    Operation("replaceWhere on the partition", _replace_where_on_partition, Lands(3, 1, 1)),
    Operation("dynamic overwrite", _dynamic, Lands(1, 1, 1), needs=frozenset({Trait.PARTITIONED})),
)

# Before: 0, 2, 3, 5, 7, 9, 11, 12, 30, 31, 300, 301.
_OVERWRITES = (
    Operation("replaceWhere on a data column", _replace_where_on_data, Lands(1, 1, 1)),
    Operation(
        "INSERT REPLACE WHERE",
        sql(f"INSERT INTO {{t}} REPLACE WHERE id > 301 {values([302], 'q')}"),
        Lands(updates=1),
        never_with=frozenset({Trait.GENERATED}),
    ),
    *_OVERWRITES_ON_PARTITIONS,
    Operation(
        "INSERT OVERWRITE", sql(f"INSERT OVERWRITE {{t}} ({COLUMNS}) {values([0, 2, 3, 5, 500], 'o')}"), Lands(1, 4, 10)
    ),
    Operation("overwrite by a DataFrame", _of_the_dataframe, Lands(updates=5)),
    Operation("rewrite that says it changes no data", _rearrange),
    Operation("truncate", sql("TRUNCATE TABLE {t}"), Lands(deletes=5)),
    Operation(
        "insert into an empty table", sql(f"INSERT INTO {{t}} ({COLUMNS}) {values(range(10))}"), Lands(inserts=10)
    ),
)


# Before: 0 to 9, and after it again.


def _stream(source: Source, mode: str) -> None:
    """Rows 600 to 602 by a stream, in one commit; in mode `complete`, as groups."""
    folder, rows = f"{source.uri}-{mode}-{source.version}", source.query(values(range(600, 603)))
    rows.write.mode("overwrite").parquet(folder)
    read = source.spark.readStream.schema(rows.schema).parquet(folder)
    if mode == "complete":
        read = read.groupBy("id", "part", "name").agg(F.sum("amount").cast("decimal(10, 2)").alias("amount"))
    writer = read.writeStream.format("delta").outputMode(mode).option("checkpointLocation", f"{folder}-checkpoint")
    writer.trigger(availableNow=True).start(source.uri).awaitTermination()


_STREAMS = (
    Operation("streaming append", lambda source: _stream(source, "append"), Lands(inserts=3)),
    Operation("streaming in complete mode", lambda source: _stream(source, "complete"), Lands(updates=3, deletes=10)),
    Operation("insert behind a stream", sql(_NEW + values(range(10))), Lands(inserts=10)),
)


def _restore(commits: int) -> Do:
    def restore(source: Source) -> None:
        DeltaTable.forPath(source.spark, source.uri).restoreToVersion(source.version - commits)

    return restore


# Before: 0 to 9, 600 to 602, and after it again.
_RESTORES = (
    Operation("update to be restored", sql("UPDATE {t} SET name = 'lost' WHERE id = 1"), Lands(updates=1)),
    Operation("delete to be restored", sql("DELETE FROM {t} WHERE id = 2"), Lands(deletes=1)),
    Operation("insert to be restored", sql(f"INSERT INTO {{t}} ({COLUMNS}) {values([700])}"), Lands(inserts=1)),
    Operation("restore", _restore(3), Lands(inserts=1, updates=None, deletes=1)),
    Operation("restore to the same version", _restore(0)),
    Operation("restore of a restore", _restore(1), Lands(inserts=1, updates=None, deletes=1)),
    Operation("restore again", _restore(1), Lands(inserts=1, updates=None, deletes=1)),
)


def _evolved_append(source: Source) -> None:
    rows = source.spark.sql(values([801])).selectExpr("*", "'e' AS evolved")
    source.save(rows, {"mergeSchema": "true"}, mode="append")


def _added_by_overwrite(source: Source) -> None:
    rows = source.spark.sql(f"SELECT *, 'x' AS late FROM delta.`{source.uri}`")
    source.save(source.spark.createDataFrame(rows.collect(), rows.schema), {"overwriteSchema": "true"})


_MAPPED = frozenset({Trait.MAPPED})
_MAPPED_LATER = (
    Operation(
        "column mapping switched on",
        sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
        never_with=_MAPPED,
    ),
    Operation("update behind it", sql("UPDATE {t} SET amount = 1 WHERE id = 0"), Lands(updates=1), never_with=_MAPPED),
)

# Before: 0 to 6, 600 to 602.
_SCHEMA = (
    Operation("NOT NULL dropped", sql("ALTER TABLE {t} ALTER COLUMN name DROP NOT NULL")),
    Operation("update to NULL", sql("UPDATE {t} SET name = NULL WHERE id = 4"), Lands(updates=1)),
    Operation("column added", sql("ALTER TABLE {t} ADD COLUMNS (note STRING AFTER id)")),
    Operation("update of an added column", sql("UPDATE {t} SET note = 'y' WHERE id = 3"), Lands(updates=1)),
    Operation(
        "merge that adds a column",
        sql(
            "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING "
            "(SELECT 800 AS id, 1 AS part, 'm' AS name, 1.5 AS amount, 'g' AS grown) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
        Lands(inserts=1),
    ),
    Operation("append that adds a column", _evolved_append, Lands(inserts=1)),
    Operation("column moved", sql("ALTER TABLE {t} ALTER COLUMN grown FIRST")),
    Operation("update of a moved column", sql("UPDATE {t} SET grown = 'h' WHERE id = 2"), Lands(updates=1)),
    Operation(
        "overwrite that adds a column",
        _added_by_overwrite,
        Lands(updates=12),
        never_with=frozenset({Trait.PARTITIONED, Trait.CLUSTERED}),
    ),
    *_MAPPED_LATER,
)


_CLUSTERED = frozenset({Trait.CLUSTERED})


def _set(**values: str) -> Operation:
    ((name, value),) = values.items()
    return Operation(f"{name} = {value}", lambda source: source.properties(**values))


# What changes files, properties or constraints, and no row. Before: 0 to 9, 600 to 602.
_LAYOUT = (
    Operation("OPTIMIZE", sql("OPTIMIZE {t}")),
    Operation("ZORDER", sql("OPTIMIZE {t} ZORDER BY (id)"), never_with=_CLUSTERED),
    Operation(
        "CLUSTER BY",
        sql("ALTER TABLE {t} CLUSTER BY (id, name)", "OPTIMIZE {t} FULL"),
        never_with=frozenset({Trait.PARTITIONED}),
    ),
    Operation("VACUUM", sql("VACUUM {t}")),
    Operation("constraint", sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)")),
    Operation("constraint dropped", sql("ALTER TABLE {t} DROP CONSTRAINT positive")),
    Operation("comments", sql("COMMENT ON TABLE {t} IS 'c'", "ALTER TABLE {t} ALTER COLUMN name COMMENT 'c'")),
    _set(logRetentionDuration="interval 90 days"),
    _set(enableDeletionVectors="true"),
    Operation("delete by deletion vector", sql("DELETE FROM {t} WHERE id = 9"), Lands(deletes=1)),
    Operation("second deletion vector", sql("DELETE FROM {t} WHERE id = 8"), Lands(deletes=1)),
    Operation("REORG", sql("REORG TABLE {t} APPLY (PURGE)")),
    _set(enableDeletionVectors="false"),
    Operation("delete without deletion vector", sql("DELETE FROM {t} WHERE id = 7"), Lands(deletes=1)),
    _set(enableRowTracking="true"),
    Operation("update of a tracked row", sql("UPDATE {t} SET name = 't' WHERE id = 6"), Lands(updates=1)),
    _set(enableInCommitTimestamps="true"),
    _set(checkpointPolicy="v2"),
    Operation("update with in-commit timestamp", sql("UPDATE {t} SET name = 'i' WHERE id = 5"), Lands(updates=1)),
)


_RUST = frozenset({Trait.RUST})


def _rust(name: str, do: Do, lands: Lands) -> Operation:
    return Operation(f"{name} by delta-rs", do, lands, _RUST)


def _rust_append(source: Source) -> None:
    write_deltalake(source.uri, arrow(range(1000, 1010), "rust"), mode="append", schema_mode="merge")


def _rust_merge(source: Source) -> None:
    """Delete a row, update or insert others, and delete one that is not given."""
    rows = arrow((1005, 1006, 1020), "rust")
    merger = source.table.merge(rows, "s.id = t.id", source_alias="s", target_alias="t")
    merger.when_matched_delete("s.id % 3 = 0").when_matched_update({"name": "s.name", "amount": "t.amount + 1"})
    merger.when_not_matched_insert({name: f"s.{name}" for name in ("id", "part", "name", "amount")})
    merger.when_not_matched_by_source_delete("t.id = 1007").execute()


def _rust_replace_where(source: Source) -> None:
    rows, predicate = arrow((1008, 1030), "where"), "id IN (1008, 1009, 1030)"
    write_deltalake(source.uri, rows, mode="overwrite", predicate=predicate, schema_mode="merge")


# delta-rs makes its own rows, from 1000 on, and none of them stays.
BY_RUST = (
    _rust("append", _rust_append, Lands(inserts=10)),
    _rust(
        "update",
        lambda source: source.table.update({"name": "concat(name, 'r')"}, predicate="id IN (1001, 1002)"),
        Lands(updates=2),
    ),
    _rust(
        "update of a key",
        lambda source: source.table.update({"id": "1103"}, predicate="id = 1003"),
        Lands(inserts=1, deletes=1),
    ),
    _rust("delete", lambda source: source.table.delete("id = 1004"), Lands(deletes=1)),
    _rust("merge", _rust_merge, Lands(1, 1, 2)),
    _rust("replaceWhere", _rust_replace_where, Lands(1, 1, 1)),
    _rust("optimize", lambda source: source.table.optimize.compact(), Lands()),
    _rust("delete to be restored", lambda source: source.table.delete("id = 1001"), Lands(deletes=1)),
    _rust("restore", lambda source: source.table.restore(source.version - 1), Lands(inserts=1, updates=None)),
    Operation(
        "update by Spark after delta-rs", sql("UPDATE {t} SET name = 's' WHERE id > 1020"), Lands(updates=2), _RUST
    ),
    Operation("delete by Spark after delta-rs", sql("DELETE FROM {t} WHERE id >= 1000"), Lands(deletes=8), _RUST),
)


# On any table, whatever else is in it.
FEW = tuple(CHANGES[index] for index in (0, 2, 5, 6, 8))
ON_PARTITIONS = (CHANGES[4], *CHANGES[10:], *_OVERWRITES_ON_PARTITIONS, *_MAPPED_LATER)


@dataclass(frozen=True)
class Chapter:
    """A run of operations, and the ids of the rows that are there before."""

    name: str
    ids: tuple[int, ...]
    operations: tuple[Operation, ...]


CHAPTERS = (
    Chapter("changes and merges", tuple(range(10)), (*CHANGES, *MERGES)),
    Chapter("overwrites and streams", _BEFORE_OVERWRITES, (*_OVERWRITES, *_STREAMS)),
    Chapter("restores and delta-rs", _BEFORE_RESTORES, (*_RESTORES, *BY_RUST)),
    Chapter("layout and schema", _BEFORE_RESTORES, (*_LAYOUT, *_SCHEMA)),
)
