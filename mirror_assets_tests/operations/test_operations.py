"""Every operation on tables of every kind: what lands of it, and that mirror and source are equal after each slice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.format import MarkerCounts
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.operations import by_rust
from mirror_assets_tests.operations.catalogue import CHAPTERS, FEW, ON_PARTITIONS, Chapter
from mirror_assets_tests.operations.features import (
    BY_ID,
    BY_QUERY,
    CLONED,
    IDENTITY,
    MODERN,
    PARTITIONED,
    PLAIN,
    RUST,
    VECTORS,
    Features,
)
from mirror_assets_tests.operations.history import Done, landed_by_version, mirror_and_compare, perform
from mirror_assets_tests.operations.operation import Lands, Operation
from mirror_assets_tests.operations.overwrites import save_as_table
from mirror_assets_tests.operations.source import COLUMNS, Source, values

# Many statements in one test: on a machine that others use, they may take minutes.
pytestmark = pytest.mark.timeout(900)
_IDS = tuple(range(10))


def _history(spark: SparkSession, root: Path, features: Features, chapter: Chapter, commits: int = 30) -> None:
    lab = Lab(spark, root / "lab")
    lab.root.mkdir()
    lab.configure(defaults=f"slices: {{max_commits: {commits}}}\n  files: {{target_rows: 1}}")
    source = Source(spark, lab.uri)
    features.create(source)
    source.sql(f"INSERT INTO {{t}} ({COLUMNS}) {values(chapter.ids)}")
    list(mirror_and_compare(lab))
    done = perform(source, [operation for operation in chapter.operations if operation.fits(features.traits)])
    landed = landed_by_version(list(mirror_and_compare(lab)))
    assert [problem for one in done for problem in _problems(one, landed)] == []


def _problems(done: Done, landed: dict[int, MarkerCounts]) -> list[str]:
    found = sum((landed[version] for version in done.versions if version in landed), MarkerCounts())
    wanted = done.operation.lands
    updates = found.updates if wanted.updates is None else wanted.updates
    same = (found.inserts, found.updates, found.deletes) == (wanted.inserts, updates, wanted.deletes)
    return [] if same else [f"{done.operation.name} (versions {list(done.versions)}): {found}, not {wanted}"]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_every_operation_lands_as_what_it_is(spark: SparkSession, tmp_path: Path, chapter: Chapter) -> None:
    _history(spark, tmp_path, MODERN, chapter)


def test_operations_on_partitions(spark: SparkSession, tmp_path: Path) -> None:
    _history(spark, tmp_path, PARTITIONED, Chapter("on partitions", _IDS, ON_PARTITIONS))


def test_operations_by_delta_rs(spark: SparkSession, tmp_path: Path) -> None:
    _history(spark, tmp_path, RUST, Chapter("by delta-rs", _IDS, by_rust.OPERATIONS))


@pytest.mark.parametrize(
    "features",
    [CLONED, pytest.param(IDENTITY, marks=pytest.mark.soak), pytest.param(BY_ID, marks=pytest.mark.soak)],
    ids=lambda features: features.name,
)
def test_a_table_of_another_kind(spark: SparkSession, tmp_path: Path, features: Features) -> None:
    _history(spark, tmp_path, features, Chapter("few", _IDS, FEW))


def test_a_table_by_query_that_is_saved_over_by_name(spark: SparkSession, tmp_path: Path) -> None:
    saved = Operation("saveAsTable over it", save_as_table, Lands(updates=3, deletes=9))
    _history(spark, tmp_path, BY_QUERY, Chapter("saved over", _IDS, (*FEW, saved)))


@pytest.mark.soak
@pytest.mark.parametrize("features", [PLAIN, PARTITIONED, VECTORS, MODERN], ids=lambda features: features.name)
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_a_slice_per_commit_lands_the_same(
    spark: SparkSession, tmp_path: Path, features: Features, chapter: Chapter
) -> None:
    _history(spark, tmp_path, features, chapter, commits=1)
