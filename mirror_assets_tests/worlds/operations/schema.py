"""Schema changes that a mirror follows; there before: 0 to 6, 600 to 602."""

from __future__ import annotations

from mirror_assets_tests.worlds.operations.operation import Lands, Operation, Trait, sql
from mirror_assets_tests.worlds.operations.source import Source, values


def _evolved_append(source: Source) -> None:
    rows = source.spark.sql(values([801])).selectExpr("*", "'e' AS evolved")
    source.save(rows, {"mergeSchema": "true"}, mode="append")


def _added_by_overwrite(source: Source) -> None:
    rows = source.spark.sql(f"SELECT *, 'x' AS late FROM delta.`{source.uri}`")
    source.save(source.spark.createDataFrame(rows.collect(), rows.schema), {"overwriteSchema": "true"})


_MAPPED = frozenset({Trait.MAPPED})
MAPPED_LATER = (
    Operation(
        "column mapping switched on",
        sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
        never_with=_MAPPED,
    ),
    Operation("update behind it", sql("UPDATE {t} SET amount = 1 WHERE id = 0"), Lands(updates=1), never_with=_MAPPED),
)

OPERATIONS = (
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
    *MAPPED_LATER,
)
