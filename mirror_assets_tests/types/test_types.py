"""One table with columns of every type and of odd names, landed as a snapshot and as changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.types.cases import CASES, Case

_TIMES = "spark.sql.parquet.outputTimestampType"
_PROPERTIES = "delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'name'"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _create(lab: Lab) -> None:
    columns = ", ".join(f"{_quoted(case.name)} {case.type}" for case in CASES)
    lab.spark.sql(
        f"CREATE TABLE delta.`{lab.uri}` (id INT, {columns}, touched INT) USING delta TBLPROPERTIES ({_PROPERTIES})"
    )


def _insert(lab: Lab, low: int, high: int, empty: int) -> None:
    """A row of low values, one of high values, one of NULLs."""
    rows = [
        f"({low}, {', '.join(case.low for case in CASES)}, 0)",
        f"({high}, {', '.join(case.high for case in CASES)}, 0)",
        f"({empty}, {', '.join('NULL' for _ in CASES)}, 0)",
    ]
    lab.spark.sql(f"INSERT INTO delta.`{lab.uri}` VALUES {', '.join(rows)}")


@contextmanager
def _times_as_int96(spark: SparkSession) -> Iterator[None]:
    """As Spark writes timestamps by default."""
    ours = spark.conf.get(_TIMES)
    spark.conf.set(_TIMES, "INT96")
    try:
        yield
    finally:
        spark.conf.set(_TIMES, ours)


@pytest.fixture(scope="module")
def typed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Rows 1 to 3 landed as a snapshot; 4 to 6 inserted, 1 and 2 updated twice, 3 deleted."""
    lab = Lab(spark, tmp_path_factory.mktemp("types") / "lab")
    lab.root.mkdir()
    lab.configure(defaults="slices: {max_commits: 100}")
    _create(lab)
    _insert(lab, 1, 2, 3)
    lab.mirror()
    with _times_as_int96(spark):
        _insert(lab, 4, 5, 6)
    touch = f"UPDATE delta.`{lab.uri}` SET touched = touched + 1 WHERE id IN (1, 2)"
    for statement in (touch, touch, f"DELETE FROM delta.`{lab.uri}` WHERE id = 3"):
        lab.spark.sql(statement)
    lab.mirror()
    lab.replicator.poll()
    return lab


@pytest.fixture(scope="module")
def rows(typed: Lab) -> dict[object, dict[str, object]]:
    """The mirror's rows by id."""
    mirror: Path = typed.root / "mirror" / "shop" / "orders"
    return {row["id"]: row for row in DeltaTable(str(mirror)).to_pyarrow_table().to_pylist()}


def test_every_row_is_there(rows: dict[object, dict[str, object]]) -> None:
    assert {id_: row["touched"] for id_, row in rows.items()} == {1: 2, 2: 2, 4: 0, 5: 0, 6: 0}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_column_lands_as_what_it_is(rows: dict[object, dict[str, object]], case: Case) -> None:
    assert [_exact(rows[id_][case.name]) for id_ in (1, 4)] == [_exact(case.landed_low)] * 2
    assert [_exact(rows[id_][case.name]) for id_ in (2, 5)] == [_exact(case.landed_high)] * 2
    assert rows[6][case.name] is None


def _exact(value: object) -> tuple[type, str]:
    """What tells -0.0 from 0.0, and knows NaN for what it is."""
    return type(value), repr(value)


def test_mirror_and_source_are_equal(typed: Lab) -> None:
    assert reconcile_table(typed.context, typed.replicator).state is ReconcileState.EQUAL
