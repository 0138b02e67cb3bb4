"""Building, building again, going on, and leaving other people's files alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.demo.errors import NotMadeHere
from mirror_assets.demo.lake import HISTORIES, begin_lake, build_lake, continue_lake
from mirror_assets_tests.demo.conftest import MONTHS, Demo

TABLES = tuple(history.table for history in HISTORIES)


def versions(root: Path) -> dict[str, int]:
    return {table: DeltaTable(root / "lake" / table).version() for table in TABLES}


def rows(spark: SparkSession, root: Path, table: str) -> pa.Table:
    found = spark.read.format("delta").load(str(root / "lake" / table)).toArrow()
    return found.sort_by(
        [
            (name, "ascending")
            for name, kind in zip(found.schema.names, found.schema.types, strict=True)
            if not pa.types.is_nested(kind)
        ]
    )


def test_each_commit_is_reported_in_order(demo: Demo) -> None:
    expected = [f"{h.table} version {v}: {step.what}" for h in HISTORIES for v, step in enumerate(h.steps)]
    assert sorted(demo.reports) == sorted(expected)
    for history in HISTORIES:
        mine = [report for report in demo.reports if report.startswith(f"{history.table} ")]
        assert mine == [line for line in expected if line.startswith(f"{history.table} ")]


def test_each_step_is_one_commit(demo: Demo) -> None:
    assert versions(demo.root) == {history.table: len(history.steps) - 1 for history in HISTORIES}


def test_the_lake_holds_the_tables_and_no_deliveries_are_left(demo: Demo) -> None:
    assert {path.name for path in (demo.root / "lake").iterdir() if path.is_dir()} == set(TABLES)
    assert list(demo.root.glob(".delivered-*")) == []


def test_a_lake_can_be_begun_continued_and_begun_again(spark: SparkSession, tmp_path: Path) -> None:
    begin_lake(spark, tmp_path, lambda _: None, MONTHS)
    first = {table: rows(spark, tmp_path, table) for table in TABLES}
    assert set(versions(tmp_path).values()) == {0}
    (tmp_path / "lake" / "notes.txt").write_text("mine")

    reports: list[str] = []
    continue_lake(spark, tmp_path, reports.append, MONTHS, commits=1)
    assert set(versions(tmp_path).values()) == {1}
    assert len(reports) == len(TABLES)
    assert all(not rows(spark, tmp_path, table).equals(first[table]) for table in TABLES)

    begin_lake(spark, tmp_path, lambda _: None, MONTHS)
    assert set(versions(tmp_path).values()) == {0}
    assert all(rows(spark, tmp_path, table).equals(first[table]) for table in TABLES)
    assert (tmp_path / "lake" / "notes.txt").read_text() == "mine"


def test_a_finished_lake_has_nothing_to_continue(demo: Demo) -> None:
    before, reports = versions(demo.root), list[str]()
    continue_lake(demo.spark, demo.root, reports.append, MONTHS)
    assert reports == []
    assert versions(demo.root) == before


def test_somebody_elses_lake_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    theirs = tmp_path / "lake" / "flights"
    theirs.mkdir(parents=True)
    (theirs / "data.parquet").write_text("theirs")
    with pytest.raises(NotMadeHere) as refused:
        build_lake(spark, tmp_path, lambda _: None, MONTHS)
    assert refused.value.path == tmp_path / "lake"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["data.parquet"]
