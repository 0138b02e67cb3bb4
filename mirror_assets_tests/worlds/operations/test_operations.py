"""Every operation on tables of every kind: what lands of it, and that mirror and source are equal after each slice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.landing.format import MarkerCounts
from mirror_assets.source.breaks import Needs, row_break
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.operations.catalogue import (
    BY_RUST,
    CHAPTERS,
    FEW,
    ON_PARTITIONS,
    Chapter,
    save_as_table,
)
from mirror_assets_tests.worlds.operations.features import (
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
from mirror_assets_tests.worlds.operations.history import (
    COMPACT,
    FEED,
    FILES,
    KEYLESS,
    TRACKED,
    Done,
    Way,
    landed_by_version,
    mirror_and_compare,
    perform,
)
from mirror_assets_tests.worlds.operations.operation import Lands, Operation
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, values

# Many statements in one test: on a machine that others use, they may take minutes.
pytestmark = [pytest.mark.timeout(900), pytest.mark.long(40)]
_IDS = tuple(range(10))
_ALL = (FEED, TRACKED, FILES)
_APPEND_ONLY = Needs(table_id="", keys=(), append_only=True)


def _history(
    spark: SparkSession,
    root: Path,
    features: Features,
    chapter: Chapter,
    commits: int = 30,
    ways: Sequence[Way] = (FEED,),
) -> None:
    """Mirror the history of the chapter's operations in each of these ways, and compare what lands of each."""
    source = Source(spark, str(root / "orders"))
    features.create(source)
    source.sql(f"INSERT INTO {{t}} ({COLUMNS}) {values(chapter.ids)}")
    labs = {way: way.lab(source, root, commits) for way in ways}
    for lab in labs.values():
        list(mirror_and_compare(lab))
    done = perform(source, [operation for operation in chapter.operations if operation.fits(features.traits)])
    landed = {way: list(mirror_and_compare(lab)) for way, lab in labs.items()}
    # By files, a row lands only if a value changes.
    told = {
        way: landed_by_version(slices)
        for way, slices in landed.items()
        if way is not FILES and (commits == 1 or not way.is_net)
    }
    assert [f"{way.name}: {problem}" for way in told for one in done for problem in _problems(one, told[way])] == []
    assert [problem for one in done for problem in _append_problems(source, one)] == []


def _problems(done: Done, landed: dict[int, MarkerCounts]) -> list[str]:
    found = sum((landed[version] for version in done.versions if version in landed), MarkerCounts())
    wanted = done.operation.lands
    updates = found.updates if wanted.updates is None else wanted.updates
    same = (found.inserts, found.updates, found.deletes) == (wanted.inserts, updates, wanted.deletes)
    return [] if same else [f"{done.operation.name} (versions {list(done.versions)}): {found}, not {wanted}"]


def _append_problems(source: Source, done: Done) -> list[str]:
    """Append-only mirroring stops at an operation that changes or removes rows, and at no other."""
    commits = DeltaLog(source.uri).commits(done.before + 1, done.last)
    stopped = [commit.version for commit in commits if row_break(commit, _APPEND_ONLY)]
    changes = done.operation.lands.updates != 0 or done.operation.lands.deletes != 0
    return [] if bool(stopped) is changes else [f"{done.operation.name}: append-only stopped at {stopped}"]


# The features of the table, the commits of a slice, and the ways to find changes.
_KINDS = (
    *((MODERN, 30, ways) for ways in ((FEED,), (TRACKED, FILES), (COMPACT, KEYLESS))),
    (MODERN, 1, (TRACKED, FILES)),
    *((features, 1, (FEED,)) for features in (PLAIN, PARTITIONED, VECTORS, MODERN)),
)


def _id(value: object) -> str | None:
    if isinstance(value, tuple):
        return "-".join(way.name for way in value if isinstance(way, Way))
    return getattr(value, "name", None)


@pytest.mark.parametrize(
    ("features", "commits", "ways", "chapter"),
    smoke_first([(*kind, chapter) for kind in _KINDS for chapter in CHAPTERS]),
    ids=lambda value: getattr(
        value, "name", "-".join(way.name for way in value) if isinstance(value, tuple) else value
    ),
)
def test_every_operation_lands_as_what_it_is(
    spark: SparkSession, tmp_path: Path, features: Features, commits: int, ways: tuple[Way, ...], chapter: Chapter
) -> None:
    _history(spark, tmp_path, features, chapter, commits, ways)


_SAVED = Operation("saveAsTable over it", save_as_table, Lands(updates=3, deletes=9))


@pytest.mark.parametrize(
    ("features", "commits", "ways", "operations"),
    smoke_first(
        [
            (RUST, 30, (FEED, FILES), BY_RUST),
            (PARTITIONED, 1, _ALL, ON_PARTITIONS),
            *((features, 30, _ALL, FEW) for features in (CLONED, IDENTITY, BY_ID)),
            (BY_QUERY, 30, _ALL, (*FEW, _SAVED)),
        ]
    ),
    ids=_id,
)
def test_operations_on_a_table_of_another_kind(
    spark: SparkSession,
    tmp_path: Path,
    features: Features,
    commits: int,
    ways: tuple[Way, ...],
    operations: tuple[Operation, ...],
) -> None:
    _history(spark, tmp_path, features, Chapter("few", _IDS, operations), commits, ways)
