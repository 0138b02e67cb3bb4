"""Keys of several rows, in parts written by hand: rows that can't follow one another, and keys whose order is open.

Their hashes are equal for equal keys, and different for different ones, whatever their types.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_assets.landing.format import MarkerCounts, SliceRecord, StagedPart
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import CommitPosition
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.verify import uniqueness
from mirror_assets.verify.staged import StagedSlice
from mirror_assets.verify.uniqueness import Hashes, Markers, hash_keys, inspect_keys, key_uniqueness, read_hashes
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.staging import new_record

Row = tuple[int, str, int]


def staged_rows(folder: Path, parts: Sequence[Sequence[Row]]) -> StagedSlice:
    """A slice of changes with two key columns, whose parts hold these rows: key, key, marker."""
    store, staged = LocalStore(folder), []
    for index, rows in enumerate(parts):
        ids, places, markers = zip(*rows, strict=True) if rows else ((), (), ())
        part = StagedPart(
            name=f"part-{index:05d}.parquet", etag="e", bytes=1, sha256=None, markers=MarkerCounts(inserts=len(rows))
        )
        staged.append(part)
        columns = {"id": pa.array(ids, pa.int64()), "place": pa.array(places, pa.string())}
        table = pa.table(columns | {ROW_MARKER: pa.array(markers, pa.int32())})
        path = store.local_path(_record(tuple(staged)).folder.part(part.name))
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
    return StagedSlice(store, _record(tuple(staged)), store)


def _record(parts: tuple[StagedPart, ...]) -> SliceRecord:
    position = CommitPosition(epoch=1, incarnation="i", generation=2, first_number=2, covered=1)
    record = new_record(position, SliceKey(1, 2, 5), "0" * 30, parts)
    return record.model_copy(update={"keys": ("id", "place")})


_INSERT, _UPDATE, _DELETE = int(Marker.INSERT), int(Marker.UPDATE), int(Marker.DELETE)
_WITH_VALUES = (_INSERT, _UPDATE)
_COMMITS = 100
_LARGE = 2**63 - 1
_KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "bigint": (pa.int64(), st.sampled_from([-_LARGE - 1, -1, 0, 1, 2**41, _LARGE])),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "string": (pa.string(), st.text(max_size=20) | st.text("ab", max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=2)),
    "decimal": (pa.decimal128(38, 2), st.integers(-3, 3).map(lambda cents: Decimal(cents) / 100)),
    "date": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "timestamp": (pa.timestamp("us"), st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1))),  # noqa: DTZ001
    "boolean": (pa.bool_(), st.booleans()),
}


def _has_another_order(markers: Sequence[int]) -> bool:
    """Whether other rows of the key can come first, tried one by one."""
    orders = [order for order in permutations(markers[:6]) if _makes_sense(order)]
    return len(orders) > 1


def _makes_sense(markers: Sequence[int]) -> bool:
    return all((before == _DELETE) == (after == _INSERT) for before, after in pairwise(markers))


def _problems(folder: Path, parts: list[list[Row]], share_rows: int = 1_000) -> str:
    staged = staged_rows(folder, parts)
    return key_uniqueness(inspect_keys(staged, lambda: _COMMITS, share_rows)).message


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
    keys = inspect_keys(staged_rows(tmp_path_factory.mktemp("slice"), _cut(rows, parts)), lambda: _COMMITS)
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


_ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from(["", "a", "ab", "ä" * 9]), st.sampled_from(list(map(int, Marker)))),
    min_size=1,
    max_size=40,
)


@given(_ROWS, st.integers(1, 3), st.integers(1, 12))
def test_shares_give_what_all_rows_give(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], parts: int, share_rows: int
) -> None:
    staged = staged_rows(tmp_path_factory.mktemp("slice"), _cut(rows, parts))

    def inspect(rows_of_a_share: int) -> tuple[object, ...]:
        keys = inspect_keys(staged, lambda: len(rows), rows_of_a_share)
        return keys.repeated, keys.order_is_open, keys.values_decide, sorted(keys.problems), keys.markers.tolist()

    assert inspect(share_rows) == inspect(len(rows))


def test_the_log_is_read_only_if_a_key_has_several_rows(tmp_path: Path) -> None:
    def requested() -> int:
        raise AssertionError

    rows: list[Row] = [(1, "a", _INSERT), (1, "b", _INSERT)]
    assert inspect_keys(staged_rows(tmp_path, [rows]), requested).repeated == 0


def test_keys_that_only_share_a_hash_are_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def collide(staged: StagedSlice) -> tuple[Hashes, Markers]:
        hashes, markers = read_hashes(staged)
        return hashes & np.uint64(3), markers

    monkeypatch.setattr(uniqueness, "read_hashes", collide)
    rows: list[Row] = [(number, "a" * 50, _INSERT) for number in range(100)]
    assert _problems(tmp_path / "right", [rows]) == ""
    wrong = _problems(tmp_path / "wrong", [rows, [(7, "a" * 50, _INSERT), (8, "a" * 51, _INSERT)]])
    assert wrong.count("is inserted while it is there") == 1
    assert "row 0 of part-00001.parquet" in wrong


@given(st.lists(st.sampled_from(sorted(_KINDS)), min_size=1, max_size=4), st.integers(0, 3), st.data())
def test_hashes_are_equal_for_equal_keys_only(names: list[str], offset: int, data: st.DataObject) -> None:
    kinds = [_KINDS[name] for name in names]
    rows = data.draw(st.lists(st.tuples(*(values for _, values in kinds)), min_size=1, max_size=30))
    columns = [pa.array([row[n] for row in rows], kind) for n, (kind, _) in enumerate(kinds)]
    batch = pa.record_batch(columns, [f"key{n}" for n in range(len(kinds))])
    hashes = hash_keys(batch, batch.schema.names).tolist()
    assert len(set(zip(rows, hashes, strict=True))) == len(set(rows)) == len(set(hashes))
    assert hash_keys(batch.slice(offset), batch.schema.names).tolist() == hashes[offset:]


_MANY: list[tuple[pa.DataType, list[object]]] = [
    (pa.int64(), list(range(0, 64_000, 64))),
    (pa.timestamp("us", "UTC"), [datetime.fromtimestamp(86_400 * day) for day in range(1_000)]),  # noqa: DTZ006
    (pa.decimal128(38, 2), [Decimal(cents) / 100 for cents in range(1_000)]),
    (pa.string(), [f"{number:036d}" for number in range(1_000)]),
    (pa.string(), ["x" * number for number in range(1_000)]),
]


@pytest.mark.parametrize(("kind", "values"), _MANY, ids=[str(kind) for kind, _ in _MANY])
def test_hashes_are_spread(kind: pa.DataType, values: list[object]) -> None:
    hashes = hash_keys(pa.record_batch([pa.array(values, kind)], ["key0"]), ["key0"])
    assert len(set(hashes.tolist())) == len(values)
    for bits in (hashes & 3, hashes >> 62):
        assert all(0.15 < (bits == share).mean() < 0.35 for share in range(4))
