"""Operations that a mirror can't follow, in the order of one history: each is found in the log alone."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import pyarrow as pa
from delta.tables import DeltaTable
from deltalake import write_deltalake

from mirror_assets.source.batching import Limits
from mirror_assets.source.breaks import Break, BreakKind, Needs
from mirror_assets.source.commits import SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.planner import PlanRequest, plan_slices
from mirror_assets_tests.worlds.operations.features import FEED
from mirror_assets_tests.worlds.operations.operation import Do, sql
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, arrow, values

_WHOLE = Limits(max_commits=2**62, max_rows=2**62, max_bytes=2**62)
_WITH_FEED = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"


@dataclass(frozen=True)
class Breaking:
    """An operation whose last commits, from the first one that breaks on, can't land as changes."""

    name: str
    do: Do
    kind: BreakKind


def create(source: Source) -> None:
    """Version 0 without a feed, version 1 with it and mapped columns, version 2 with rows."""
    source.sql(
        "CREATE TABLE {t} (id INT, part INT, name STRING, amount DECIMAL(10, 2)) USING delta PARTITIONED BY (part)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')",
        f"INSERT INTO {{t}} ({COLUMNS}) {values(range(10))}",
    )


def break_behind(source: Source, at: SourceState) -> Break | None:
    log = DeltaLog(source.uri)
    tip = log.state()
    request = PlanRequest(
        covered=at.version,
        epoch=1,
        tip=tip.version,
        tip_table_id=tip.table_id,
        commits=log.commits(at.version + 1, tip.version),
        schema_string=at.schema_string,
        needs=Needs(at.table_id, ("id",)),
        limits=_WHOLE,
        target_rows=10,
        covered_table_id=log.state(at.version).table_id,
    )
    return plan_slices(request).stop


def _restore(version: int) -> Do:
    """To a version; below 0, back from the tip."""

    def restore(source: Source) -> None:
        to = version if version >= 0 else source.version + version
        DeltaTable.forPath(source.spark, source.uri).restoreToVersion(to)

    return restore


def _overwritten_by_path(source: Source) -> None:
    source.save(source.spark.sql(values([1])).drop("amount"), {"overwriteSchema": "true"})


def _replaced_under_its_path(source: Source) -> None:
    """Another table, with more versions than there were."""
    shutil.rmtree(source.uri)
    for row in range(30):
        write_deltalake(source.uri, arrow([row]), mode="append", configuration=FEED)


def _retyped(source: Source) -> None:
    rows = arrow(range(3))
    texts = rows.set_column(3, "amount", rows["amount"].cast(pa.string()))
    write_deltalake(source.uri, texts, mode="overwrite", schema_mode="overwrite")


# On the table that `create` makes.
BY_SPARK = (
    Breaking("column renamed", sql("ALTER TABLE {t} RENAME COLUMN name TO title"), BreakKind.RENAMED_COLUMN),
    Breaking("restore over a rename", _restore(-1), BreakKind.RESTORED_SCHEMA),
    Breaking("column dropped", sql("ALTER TABLE {t} DROP COLUMN name"), BreakKind.DROPPED_COLUMN),
    Breaking(
        "column added again under its old name, after an insert",
        sql(
            "ALTER TABLE {t} ADD COLUMNS (name STRING)",
            "INSERT INTO {t} (id, name) VALUES (50, 'x')",
            "ALTER TABLE {t} DROP COLUMN name",
            "ALTER TABLE {t} ADD COLUMNS (name STRING)",
        ),
        BreakKind.DROPPED_COLUMN,
    ),
    Breaking("key renamed", sql("ALTER TABLE {t} RENAME COLUMN id TO key"), BreakKind.KEY_CHANGED),
    Breaking("key renamed back", sql("ALTER TABLE {t} RENAME COLUMN key TO id"), BreakKind.RENAMED_COLUMN),
    Breaking("type widened", sql("ALTER TABLE {t} ALTER COLUMN part TYPE BIGINT"), BreakKind.CHANGED_TYPE),
    Breaking("decimal widened", sql("ALTER TABLE {t} ALTER COLUMN amount TYPE DECIMAL(12, 2)"), BreakKind.CHANGED_TYPE),
    Breaking(
        "REPLACE TABLE AS",
        sql(f"CREATE OR REPLACE TABLE {{t}} USING delta {_WITH_FEED} AS SELECT 1 AS id, 'a' AS name"),
        BreakKind.TABLE_REPLACED,
    ),
    Breaking(
        "REPLACE TABLE AS with the same columns",
        sql(f"CREATE OR REPLACE TABLE {{t}} USING delta {_WITH_FEED} AS SELECT 2 AS id, 'b' AS name"),
        BreakKind.TABLE_REPLACED,
    ),
    Breaking(
        "REPLACE TABLE without a feed",
        sql("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 3 AS id, 'c' AS name"),
        BreakKind.TABLE_REPLACED,
    ),
    Breaking("restore to before the feed", _restore(0), BreakKind.TABLE_REPLACED),
)

# On a table by delta-rs, partitioned by `part`.
BY_RUST = (
    Breaking("overwritten with another type", _retyped, BreakKind.CHANGED_TYPE),
    Breaking("overwriteSchema by path", _overwritten_by_path, BreakKind.REPLACED),
    Breaking("table replaced under its path", _replaced_under_its_path, BreakKind.TABLE_REPLACED),
)
