"""Operations that replace rows by others; what is there before: 0, 2, 3, 5, 7, 9, 11, 12, 30, 31, 300, 301."""

from __future__ import annotations

from collections.abc import Iterable

from mirror_assets_tests.worlds.operations.operation import Lands, Operation, Trait, sql
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, values


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


def rearrange(source: Source) -> None:
    """A rewrite that says it changes no data, and is right."""
    rows = source.query("SELECT * FROM {t}")
    source.save(source.spark.createDataFrame(rows.collect(), rows.schema), {"dataChange": "false"})


def save_as_table(source: Source, ids: Iterable[int] = (0, 2, 5)) -> None:
    """Under a name, over rows that are all replaced."""
    with source.named("saved") as name:
        source.fitted(values(ids, "s")).write.format("delta").mode("overwrite").saveAsTable(name)


ON_PARTITIONS = (
    Operation("replaceWhere on the partition", _replace_where_on_partition, Lands(3, 1, 1)),
    Operation("dynamic overwrite", _dynamic, Lands(1, 1, 1), needs=frozenset({Trait.PARTITIONED})),
)

OPERATIONS = (
    Operation("replaceWhere on a data column", _replace_where_on_data, Lands(1, 1, 1)),
    Operation(
        "INSERT REPLACE WHERE",
        sql(f"INSERT INTO {{t}} REPLACE WHERE id > 301 {values([302], 'q')}"),
        Lands(updates=1),
        never_with=frozenset({Trait.GENERATED}),
    ),
    *ON_PARTITIONS,
    Operation(
        "INSERT OVERWRITE", sql(f"INSERT OVERWRITE {{t}} ({COLUMNS}) {values([0, 2, 3, 5, 500], 'o')}"), Lands(1, 4, 10)
    ),
    Operation("overwrite by a DataFrame", _of_the_dataframe, Lands(updates=5)),
    Operation("rewrite that says it changes no data", rearrange),
    Operation("truncate", sql("TRUNCATE TABLE {t}"), Lands(deletes=5)),
    Operation(
        "insert into an empty table", sql(f"INSERT INTO {{t}} ({COLUMNS}) {values(range(10))}"), Lands(inserts=10)
    ),
)
