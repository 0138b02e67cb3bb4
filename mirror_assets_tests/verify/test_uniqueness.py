"""Keys of several rows, in parts written by hand: rows that can't follow one another, and keys whose order is open.

Small slices are inspected in this process, large ones by Spark: both find the same, whatever the types of the keys.
"""

from __future__ import annotations

import errno
import io
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import count, pairwise, permutations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from mirror_assets.landing.format import MarkerCounts, SliceKind, StagedPart
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import CommitPosition
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.verify import uniqueness
from mirror_assets.verify.key_hashes import Hashes
from mirror_assets.verify.staged import Numbers, StagedSlice
from mirror_assets.verify.uniqueness import KeyInspection, inspect_keys, key_rows, key_uniqueness
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.staging import new_record
from mirror_assets_tests.verify.test_key_hashes import KINDS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Row = tuple[int, str, int]


def staged_rows(folder: Path, parts: Sequence[Sequence[Row]], versions: Mapping[int, int] | None = None) -> StagedSlice:
    """A slice of changes with two key columns, whose parts hold these rows: key, key, marker.

    `versions` are those of parts that are of one commit.
    """
    tables = []
    for rows in parts:
        ids, places, markers = zip(*rows, strict=True) if rows else ((), (), ())
        columns = {"id": pa.array(ids, pa.int64()), "place": pa.array(places, pa.string())}
        tables.append(pa.table(columns | {ROW_MARKER: pa.array(markers, pa.int32())}))
    return staged_tables(folder, tables, versions or {})


def staged_tables(
    folder: Path, tables: Sequence[pa.Table], versions: Mapping[int, int], kind: SliceKind = SliceKind.CHANGES
) -> StagedSlice:
    """A slice whose parts hold these rows; all columns but the marker are keys."""
    store, staged = LocalStore(folder), list[StagedPart]()
    keys = tuple(dict.fromkeys(name for table in tables for name in table.column_names if name != ROW_MARKER))
    position = CommitPosition(epoch=1, incarnation="i", generation=2, first_number=2, covered=1)
    record = new_record(position, SliceKey(1, 2, 5), "0" * 30, ()).model_copy(update={"keys": keys, "kind": kind})
    for index, table in enumerate(tables):
        name, version = f"part-{index:05d}.parquet", versions.get(index)
        counts = MarkerCounts(inserts=table.num_rows)
        staged.append(
            StagedPart(
                name=name, etag="e", bytes=1, sha256=None, markers=counts, first_version=version, last_version=version
            )
        )
        path = store.local_path(record.folder.part(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
    return StagedSlice(store, record.model_copy(update={"parts": tuple(staged)}), store)


def _no_spark() -> SparkSession:
    raise AssertionError


_INSERT, _UPDATE, _DELETE = int(Marker.INSERT), int(Marker.UPDATE), int(Marker.DELETE)
_WITH_VALUES = (_INSERT, _UPDATE)
_COMMITS = 100


def _has_another_order(markers: Sequence[int]) -> bool:
    """Whether other rows of the key can come first, tried one by one."""
    orders = [order for order in permutations(markers[:6]) if _makes_sense(order)]
    return len(orders) > 1


def _makes_sense(markers: Sequence[int]) -> bool:
    return all((before == _DELETE) == (after == _INSERT) for before, after in pairwise(markers))


def _problems(folder: Path, parts: list[list[Row]]) -> str:
    return key_uniqueness(inspect_keys(staged_rows(folder, parts), lambda: _COMMITS, _no_spark)).message


def _by_both(spark: SparkSession, staged: StagedSlice, allowed: int) -> KeyInspection:
    """Return what is found in this process, which Spark finds also; and so does this process by temporary files."""
    here = inspect_keys(staged, lambda: allowed, _no_spark)
    by_spark = inspect_keys(staged, lambda: allowed, lambda: spark, most_rows_here=0)
    assert (by_spark.repeated, by_spark.problems) == (here.repeated, here.problems)
    assert here.problems or by_spark == here
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniqueness, "_UNEVEN", 1_000)
        assert inspect_keys(staged, lambda: allowed, _no_spark, rows_at_once=9) == here
    return here


@pytest.mark.parametrize(
    ("markers", "problem"),
    [
        ([_INSERT, _INSERT], "is inserted while it is there"),
        ([_UPDATE, _INSERT], "is inserted while it is there"),
        ([_DELETE, _UPDATE], "is updated twice in one commit, or while it is not there"),
        ([_DELETE, _DELETE], "is deleted twice in one commit, or while it is not there"),
    ],
)
def test_what_cannot_follow_is_named_with_its_place(tmp_path: Path, markers: list[int], problem: str) -> None:
    first, second = markers
    rows: list[list[Row]] = [[(1, "a", _UPDATE), (7, "b", first)], [(1, "b", _INSERT), (7, "b", second)]]
    assert _problems(tmp_path, rows) == f"key «id=7, place='b'» {problem}" + (
        ", so the source has two rows of it: row 1 of part-00001.parquet"
        if second == _INSERT
        else ": row 1 of part-00001.parquet"
    )


def _cut(rows: Sequence[Row], parts: int) -> list[Sequence[Row]]:
    size = -(-len(rows) // parts) or 1
    return [rows[start : start + size] for start in range(0, len(rows), size)]


_LIVES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.booleans()), max_size=30)


@given(_LIVES, st.integers(1, 4), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_what_can_follow_passes_and_any_row_less_may_not(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, str, bool]], parts: int, data: st.DataObject
) -> None:
    there: dict[tuple[int, str], bool] = {}
    rows: list[Row] = []
    for id_, place, stays in drawn:
        was_there = there.get((id_, place), len(rows) % 2 == 0)
        rows.append((id_, place, (_UPDATE if stays else _DELETE) if was_there else _INSERT))
        there[id_, place] = stays or not was_there
    keys = inspect_keys(staged_rows(tmp_path_factory.mktemp("slice"), _cut(rows, parts)), lambda: _COMMITS, _no_spark)
    assert keys.problems == ()
    of_keys = defaultdict[tuple[int, str], list[int]](list)
    for id_, place, marker in rows:
        of_keys[id_, place].append(marker)
    assert keys.repeated == sum(len(markers) > 1 for markers in of_keys.values())
    assert keys.order_is_open == any(_has_another_order(markers) for markers in of_keys.values())
    assert keys.values_decide == any(markers.count(one) > 1 for markers in of_keys.values() for one in _WITH_VALUES)
    twice = [row for row in rows if row[2] != _UPDATE]
    if twice:
        again = [*rows, data.draw(st.sampled_from(twice))]
        last = [row[2] for row in rows if row[:2] == again[-1][:2]][-1]
        wrong = (last != _DELETE) == (again[-1][2] == _INSERT)
        assert (_problems(tmp_path_factory.mktemp("slice"), [again]) != "") == wrong


def _lives(draw: np.random.Generator, keys: int, rows: int) -> list[Row]:
    """Rows that can follow one another."""
    there, made = draw.random(keys) < 0.5, list[Row]()
    for key in draw.integers(0, keys, rows).tolist():
        stays = draw.random() < 0.7
        made.append((key, "ab"[key % 2], (_UPDATE if stays else _DELETE) if there[key] else _INSERT))
        there[key] = stays or not there[key]
    return made


def _damaged(draw: np.random.Generator, rows: list[Row]) -> list[Row]:
    """The rows with one in another place, again, with another marker, or as one of another key."""
    at, other = draw.integers(0, len(rows), 2).tolist()
    damage = int(draw.integers(0, 4))
    if damage == 0:
        return [*rows[:at], *rows[at + 1 :], rows[at]]
    if damage == 1:
        return [*rows[:other], rows[at], *rows[other:]]
    key, place, marker = rows[at]
    changed = (key, place, (marker + 1) % 3) if damage == 2 else (*rows[other][:2], marker)
    return [*rows[:at], changed, *rows[at + 1 :]]


@pytest.mark.parametrize("seed", range(16))
def test_spark_finds_in_large_slices_what_is_found_here(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = _lives(draw, keys=int(draw.choice([3, 40, 1_000])), rows=int(draw.integers(2, 300)))
    rows = rows if seed % 4 == 0 else _damaged(draw, rows)
    parts = _cut(rows, int(draw.integers(1, 6)))
    versions = {index: int(draw.integers(2, 5)) for index in range(len(parts)) if seed % 3 == 0}
    allowed = 3 if seed % 5 == 1 else _COMMITS
    found = _by_both(spark, staged_rows(tmp_path, parts, versions), allowed)
    assert found.repeated or len(rows) < 300
    assert seed % 12 or versions or not found.problems


def test_too_many_rows_of_a_key_are_counted_by_both(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[Row] = [
        (1, "a", _UPDATE),
        *((7, "b", _UPDATE) for _ in range(9)),
        *((8, "b", _UPDATE) for _ in range(3)),
    ]
    found = _by_both(spark, staged_rows(tmp_path, _cut(rows, 3)), allowed=3)
    assert found.problems == ("key «id=7, place='b'» has 9 rows in 3 commits",)


def test_a_key_twice_in_a_part_of_one_commit_is_found_by_both(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[Row] = [(number, "a", _UPDATE) for number in (1, 2, 1)]
    found = _by_both(spark, staged_rows(tmp_path, [rows], {0: 4}), _COMMITS)
    assert found.problems == (
        "key «id=1, place='a'» is updated twice in one commit, or while it is not there: row 2 of part-00000.parquet",
    )


def test_spark_sorts_what_has_no_room_in_temporary_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    staged = staged_rows(tmp_path, [[(number % 9, "a", _UPDATE) for number in range(20)]])
    found = inspect_keys(staged, lambda: _COMMITS, lambda: spark, rows_at_once=9)
    assert found == inspect_keys(staged, lambda: _COMMITS, _no_spark)
    assert found.repeated == 9


class _NearlyFull(io.FileIO):
    """A file on a disk with `left` bytes of space; as the system does, it writes what fits before it refuses more."""

    left = 0

    def write(self, data: ReadableBuffer) -> int:
        wanted = len(memoryview(data).cast("B"))
        if wanted and not self.left:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = super().write(memoryview(data).cast("B")[: self.left])
        self.left -= written
        return written


@pytest.mark.parametrize("left", [0, 8, 100, 160, 168])
def test_no_row_is_lost_where_the_disk_becomes_full(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    numbers = count()

    def nearly_full(buffering: int = -1) -> io.FileIO | io.BufferedRandom:
        file = _NearlyFull(tmp_path / str(next(numbers)), "w+")
        file.left = left
        return file if buffering == 0 else io.BufferedRandom(file)

    rows: list[Row] = [*((number, "a", _INSERT) for number in range(15)), (3, "a", _INSERT)]
    staged = staged_rows(tmp_path, [rows])
    expected = inspect_keys(staged, lambda: _COMMITS, _no_spark)
    assert expected.problems
    monkeypatch.setattr("tempfile.TemporaryFile", nearly_full)
    assert inspect_keys(staged, lambda: _COMMITS, lambda: spark, rows_at_once=9) == expected


def test_spark_compares_keys_of_very_many_rows(spark: SparkSession, tmp_path: Path) -> None:
    """A wrong key column has few values, so all rows violate a rule: only some may be read here."""
    rows: list[Row] = [(number % 3, "a", _INSERT) for number in range(60)]
    staged = staged_rows(tmp_path, _cut(rows, 3))
    expected = inspect_keys(staged, lambda: 4, _no_spark)
    assert "key «id=0, place='a'» has 20 rows" in expected.problems[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniqueness, "_MOST_SUSPECTS", 10)
        assert inspect_keys(staged, lambda: 4, lambda: spark) == expected
    assert inspect_keys(staged, lambda: 4, lambda: spark, rows_at_once=4) == expected, "20 rows are in one group"


def test_a_violation_is_found_among_many_keys_that_share_hashes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first keys that are compared only share their hashes; the one with the highest hash is there twice."""

    def in_pairs(staged: StagedSlice) -> Iterator[tuple[Hashes, Numbers]]:
        for _, rows in key_rows(staged):
            yield np.arange(len(rows), dtype=np.uint64) >> np.uint64(1), rows

    monkeypatch.setattr(uniqueness, "key_rows", in_pairs)
    monkeypatch.setattr(uniqueness, "_MOST_KEYS", 5)
    rows: list[Row] = [*((number, "a", _INSERT) for number in range(40)), (99, "a", _INSERT), (99, "a", _INSERT)]
    found = inspect_keys(staged_rows(tmp_path, [rows]), lambda: _COMMITS, lambda: spark)
    assert "key «id=99, place='a'» is inserted while it is there" in found.problems[0]


def test_the_log_is_read_only_if_a_key_has_several_rows(tmp_path: Path) -> None:
    def requested() -> int:
        raise AssertionError

    rows: list[Row] = [(1, "a", _INSERT), (1, "b", _INSERT)]
    assert inspect_keys(staged_rows(tmp_path, [rows]), requested, _no_spark).repeated == 0


def test_keys_that_only_share_a_hash_are_no_problem(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collide_here(staged: StagedSlice) -> Iterator[tuple[Hashes, Numbers]]:
        for hashes, rows in key_rows(staged):
            yield hashes & np.uint64(3), rows

    def collide_on_spark(*keys: Column) -> Column:
        return F.hash(*keys).bitwiseAND(3)

    monkeypatch.setattr(uniqueness, "key_rows", collide_here)
    monkeypatch.setattr("pyspark.sql.functions.xxhash64", collide_on_spark)
    rows: list[Row] = [(number, "a" * 50, _INSERT) for number in range(100)]
    again: list[Row] = [(7, "a" * 50, _INSERT), (8, "a" * 51, _INSERT)]
    for parts, problems in (([rows], 0), ([rows, again], 1)):
        staged = staged_rows(tmp_path / str(problems), parts)
        for most_rows_here in (0, 1_000):
            found = inspect_keys(staged, lambda: _COMMITS, lambda: spark, most_rows_here)
            assert len(found.problems) == problems
    assert "is inserted while it is there" in found.problems[0]
    assert "row 0 of part-00001.parquet" in found.problems[0]


_RUNS = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=20, unique=True).map(sorted), max_size=4)


@given(st.lists(_RUNS, min_size=1, max_size=3), st.integers(1, 8))
def test_runs_of_ascending_keys_that_do_not_overlap_need_no_sort(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[list[int]]], batch_rows: int
) -> None:
    parts = [[key for run in of_part for key in run] for of_part in runs]
    tables = [pa.table({"id": pa.array(keys, pa.int64())}) for keys in parts]
    staged = staged_tables(tmp_path_factory.mktemp("slice"), tables, {}, SliceKind.APPENDS)
    keys = [key for of_part in parts for key in of_part]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniqueness, "_RUN_ROWS", batch_rows)
        found = inspect_keys(staged, lambda: 1, _no_spark)
        assert (found.problems == ()) == (len(set(keys)) == len(keys))
        patch.setattr(uniqueness, "_inspect_here", lambda *_: KeyInspection(repeated=-1))
        if keys == sorted(set(keys)):
            assert inspect_keys(staged, lambda: 1, _no_spark).repeated == 0


def _of_kinds(folder: Path, names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> StagedSlice:
    columns = {f"key{n}": pa.array([row[n] for row in rows], KINDS[name][0]) for n, name in enumerate(names)}
    return staged_tables(folder, [pa.table(columns)], {}, SliceKind.APPENDS)


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_keys_are_the_same_only_if_all_their_values_are(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.tuples(*(KINDS[name][1] for name in names)), min_size=1, max_size=30))
    staged = _of_kinds(tmp_path_factory.mktemp("slice"), names, rows)
    found = inspect_keys(staged, lambda: 1, _no_spark)
    repeated = [count for count in Counter(rows).values() if count > 1]
    assert found.repeated == len(repeated)
    assert sum(f"has {count} rows" in problem for problem in found.problems for count in repeated[:1]) >= bool(repeated)


def test_spark_compares_keys_of_all_types(spark: SparkSession, tmp_path: Path) -> None:
    names = sorted(KINDS)
    values: dict[str, object] = {
        "bigint": 2**41,
        "binary": b"",
        "boolean": True,
        "date": date(1, 1, 1),
        "decimal": Decimal("0.1"),
    }
    values |= {"string": "ä", "timestamp": datetime(9999, 1, 1), "tinyint": -1}  # noqa: DTZ001
    others: dict[str, object] = {
        "bigint": 0,
        "binary": b"a",
        "boolean": False,
        "date": date(9999, 12, 31),
        "decimal": Decimal(0),
    }
    others |= {"string": "", "timestamp": datetime(1, 1, 1), "tinyint": 1}  # noqa: DTZ001
    row = tuple(values[name] for name in names)
    differing = [(*row[:n], others[name], *row[n + 1 :]) for n, name in enumerate(names)]
    assert _by_both(spark, _of_kinds(tmp_path / "right", names, [row, *differing]), 1).repeated == 0
    (problem,) = _by_both(spark, _of_kinds(tmp_path / "wrong", names, [row, *differing, row]), 1).problems
    assert "key2=" in problem
    assert problem.endswith("has 2 rows that were appended")
