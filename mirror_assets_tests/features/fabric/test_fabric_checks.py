"""The check `sql_columns`: columns that the SQL endpoint leaves out, and values that it may cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.column_types import MOST_BYTES
from mirror_assets.features.fabric.with_dagster.fabric_checks import SQL_COLUMNS, check_sql_columns
from mirror_assets.landing.format import Column, Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.checks import checks_of
from mirror_assets.pipeline.repair_table import repair_table
from mirror_assets_tests.config.reading import read
from mirror_assets_tests.features.fabric.test_fabric_settings import config
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landing.staging import land_next, landed_manifest
from mirror_assets_tests.zones.memory import MemoryStore

_OLDER = "and the SQL endpoint shows at most 8,000 of a table from before 2025-11-18"
_PROPERTIES = "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'name')"


def manifest(*columns: str, dropped: tuple[str, ...] = (), **long_values: int) -> Manifest:
    """A manifest with these columns, `name type`."""
    store = MemoryStore()
    land_next(store, 0)
    made = tuple(Column(name=name, type=kind) for name, kind in (column.split() for column in columns))
    update = {"columns": made, "dropped": dropped, "long_values": long_values}
    return landed_manifest(store).model_copy(update=update)


@pytest.mark.parametrize(
    ("landed", "problems", "step"),
    [
        (manifest("a string", "b timestamp"), (), ""),
        (
            manifest("a timestamp_ntz", "b string", "c timestamp_ntz"),
            ("the SQL endpoint leaves out columns of type timestamp_ntz: `a`, `c`",),
            "set `timestamp_ntz` to utc or text.",
        ),
        (
            manifest("a string", "b binary", a=8_001),
            (f"column `a` has a value of 8,001 bytes, {_OLDER}",),
            "if the mirrored table is older, rebuild it: a new one has varchar(max).",
        ),
        (
            manifest("a string", "b binary", b=MOST_BYTES + 1),
            ("column `b` has a value of 16,777,217 bytes, and the SQL endpoint shows at most 16,777,216",),
            "land a part of the value, by an expression in `columns` such as {sql: 'left(text, 1000000)'}.",
        ),
        (manifest("a string", "b timestamp_ntz", dropped=("a", "b"), a=9_000), (), ""),
    ],
)
def test_each_finding_is_a_warning(landed: Manifest, problems: tuple[str, ...], step: str) -> None:
    found = check_sql_columns(landed)
    assert (found.problems, found.next_step) == (problems, step)
    assert found.is_warning


def test_only_tables_that_land_on_onelake_have_the_check() -> None:
    for text, has in ((config("fabric: {}"), True), (config("path: ./m", "landing_zone: {path: ./l}"), False)):
        found = read(text)
        names = [check.name for check in checks_of(found, found.table(TableName(None, "orders")))]
        assert (SQL_COLUMNS in names) is has


def _lab(spark: SparkSession, folder: Path, way: str) -> Lab:
    lab = Lab(spark, folder)
    lab.sql(
        f"CREATE TABLE {{t}} (id INT NOT NULL, a STRING, b BINARY, c STRUCT<x: STRING>, `d e` STRING) USING delta "
        f"{_PROPERTIES}",
        "INSERT INTO {t} SELECT id, repeat('x', 8000), CAST(repeat('x', 8001) AS BINARY), "
        "named_struct('x', repeat('ä', 4000)), NULL FROM range(3)",
    )
    lab.configure(way, "slices: {max_commits: 100}")
    return lab


# `{"x":"…"}` has 8 bytes more than the text.
_SNAPSHOT = {"b": 8_001, "c": 8_008}


@pytest.mark.parametrize(
    "way",
    ["changes: feed", "changes: feed\n    compact: true", "changes: files"],
)
def test_lengths_are_counted_by_every_encoder(spark: SparkSession, tmp_path: Path, way: str) -> None:
    lab = _lab(spark, tmp_path, way)
    lab.mirror()
    assert lab.manifest().long_values == _SNAPSHOT
    lab.sql(
        "UPDATE {t} SET `d e` = repeat('ä', 5000) WHERE id = 1",
        "INSERT INTO {t} VALUES (7, repeat('y', 9000), NULL, NULL, NULL)",
        "DELETE FROM {t} WHERE id = 7",
    )
    lab.mirror()
    wanted = {**_SNAPSHOT, "d e": 10_000}
    if way == "changes: feed":
        wanted["a"] = 9_000
    assert lab.manifest().long_values == wanted, "a row that is deleted again lands only commit by commit"


def test_lengths_are_counted_in_appends_and_repairs_and_begin_again_with_a_rebuild(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = _lab(spark, tmp_path, "where: id < 100")
    lab.mirror()
    assert lab.manifest().long_values == _SNAPSHOT, "also where rows are counted apart"
    lab.sql("UPDATE {t} SET `d e` = repeat('x', 8500) WHERE id = 2")
    lab.replicator.poll()
    assert repair_table(lab.context, lab.replicator, lambda _: None) is not None
    assert lab.manifest().long_values == {**_SNAPSHOT, "d e": 8_500}
