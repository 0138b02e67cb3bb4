"""Keys in shares: nothing is lost, nothing is torn, and the checks find the same in however many shares."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.audit.key_look import KeyLook, look_at_keys
from mirror_assets.audit.keyed_rows import PLACE, keyed_rows, share_of
from mirror_assets.markers import Marker
from mirror_assets_tests.audit.rows import Row, staged_rows

_ROWS = st.lists(
    st.tuples(
        st.integers(0, 6), st.sampled_from(["", "a", "b", "ab", "ä" * 9]), st.sampled_from(list(map(int, Marker)))
    ),
    min_size=1,
    max_size=40,
)


def _cut(rows: Sequence[Row], parts: int) -> list[Sequence[Row]]:
    size = -(-len(rows) // parts)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@given(_ROWS, st.integers(1, 3), st.integers(1, 12))
def test_every_row_is_in_the_one_share_of_its_key(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], parts: int, share_rows: int
) -> None:
    staged = staged_rows(tmp_path_factory.mktemp("slice"), _cut(rows, parts))
    shares = [share.to_pylist() for share in keyed_rows(staged, share_rows)]
    found = sorted(
        ((row[PLACE], (row["key0"], row["key1"], row["marker"])) for share in shares for row in share),
    )
    assert found == list(enumerate(rows))
    keys = [{(row["key0"], row["key1"]) for row in share} for share in shares]
    assert sum(map(len, keys)) == len(set().union(*keys))
    assert all([row[PLACE] for row in share] == sorted(row[PLACE] for row in share) for share in shares)


def _facts(look: KeyLook) -> tuple[int, int, int, object]:
    undecided = look.undecided.sort_by(PLACE).to_pylist() if look.undecided else None
    return look.repeated, look.too_many.found, look.impossible.found, undecided


@given(_ROWS, st.integers(1, 3), st.integers(1, 12))
def test_shares_tell_what_all_rows_tell(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], parts: int, share_rows: int
) -> None:
    staged = staged_rows(tmp_path_factory.mktemp("slice"), _cut(rows, parts))

    def look(rows_of_a_share: int) -> KeyLook:
        return look_at_keys(staged, lambda: len(rows), rows_of_a_share)

    assert _facts(look(share_rows)) == _facts(look(len(rows)))


def test_the_log_is_asked_only_where_a_key_has_several_rows(tmp_path: Path) -> None:
    def requested() -> int:
        raise AssertionError

    rows: list[Row] = [(1, "a", int(Marker.INSERT)), (1, "b", int(Marker.INSERT))]
    assert look_at_keys(staged_rows(tmp_path, [rows]), requested) == KeyLook()


_VALUES: list[tuple[pa.DataType, list[object]]] = [
    (pa.int64(), list(range(0, 64_000, 64))),
    (pa.int8(), list(range(-100, 100))),
    (pa.date32(), [date.fromordinal(700_000 + day) for day in range(1_000)]),
    (pa.timestamp("us", "UTC"), [datetime.fromtimestamp(86_400 * day) for day in range(1_000)]),  # noqa: DTZ006
    (pa.decimal128(38, 2), [Decimal(cents) / 100 for cents in range(1_000)]),
    (pa.string(), [f"{number:036d}" for number in range(1_000)]),
    (pa.binary(), [number.to_bytes(16, "little") + b"........" for number in range(8)]),
    (pa.bool_(), [True, False]),
]


@pytest.mark.parametrize(("kind", "values"), _VALUES, ids=[str(kind) for kind, _ in _VALUES])
def test_keys_of_all_types_are_spread(kind: pa.DataType, values: list[object]) -> None:
    rows = pa.table({"key0": pa.array(values * 2, kind)})
    shares = share_of(rows, ["key0"], 4)
    assert (shares[: len(values)] == shares[len(values) :]).all()
    if len(values) > 100:
        assert all(0.15 < (shares == share).mean() < 0.35 for share in range(4))


def test_a_sliced_column_goes_where_the_whole_one_goes() -> None:
    rows = pa.table({"key0": [f"customer-{number}" for number in range(100)], "key1": list(range(100))})
    whole = share_of(rows, ["key0", "key1"], 7)
    assert (share_of(rows.slice(40, 30), ["key0", "key1"], 7) == whole[40:70]).all()
