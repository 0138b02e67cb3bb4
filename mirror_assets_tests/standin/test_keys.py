"""Key sets against plain tuples, and every type that a key may have."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.standin.net_changes import KeySet
from mirror_assets_tests.standin.publisher import Publisher, bag

_Key = tuple[int | None, str | None, bool | None]
_MILLENNIUM = datetime(2000, 1, 1, tzinfo=timezone.utc)
_keys = st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from(["", "a", "b"]), st.none() | st.booleans())


def _table(keys: list[_Key]) -> pa.Table:
    types = {"a": pa.int64(), "b": pa.string(), "c": pa.bool_()}
    return pa.table({name: pa.array([key[at] for key in keys], types[name]) for at, name in enumerate(types)})


@given(known=st.lists(_keys, max_size=12), requested=st.lists(_keys, max_size=12), width=st.integers(1, 3))
def test_same_number_for_equal_keys_and_none_for_others(known: list[_Key], requested: list[_Key], width: int) -> None:
    codes = KeySet(_table(known), ["a", "b", "c"][:width]).codes(_table(requested)).to_pylist()
    members = {key[:width] for key in known}
    assert [code is not None for code in codes] == [key[:width] in members for key in requested]
    pairs = {(key[:width], code) for key, code in zip(requested, codes, strict=True) if code is not None}
    assert len(pairs) == len({key for key, _ in pairs}) == len({code for _, code in pairs})


def test_many_wide_keys_do_not_overflow() -> None:
    count, width = 3000, 8
    columns = {f"k{at}": pa.array(range(at, count + at)) for at in range(width)}
    rows = pa.table(columns)
    assert KeySet(rows, list(columns)).codes(rows).to_pylist() == list(range(count))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, None], pa.int8()),
        pa.array(["", "a", None]),
        pa.array([b"", b"\x00", None]),
        pa.array([Decimal("0.00"), Decimal("-1.00"), None], pa.decimal128(38, 2)),
        pa.array([date(1, 1, 1), date(2000, 1, 1), None]),
        pa.array(
            [datetime(1, 1, 1, tzinfo=timezone.utc), datetime(2000, 1, 1, tzinfo=timezone.utc), None],
            pa.timestamp("us", "UTC"),
        ),
        pa.array([datetime(1, 1, 1), datetime(2000, 1, 1), None], pa.timestamp("us")),  # noqa: DTZ001, without zone on purpose
        pa.array([True, False, None]),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("key", [["k"], ["k", "j"]])
def test_key_of_any_simple_type(publisher: Publisher, values: pa.Array, key: list[str]) -> None:
    same = pa.array(["x"] * 3)
    publisher.declare(key)
    publisher.land(1, pa.table({"k": values, "j": same, "v": ["a", "b", "c"]}))
    publisher.poll()
    publisher.land(2, pa.table({"k": values, "j": same, "v": ["d", None, "e"]}), [1, 2, 4])
    publisher.poll()
    left = pa.table({"k": values.take(pa.array([0, 2])), "j": same[:2], "v": ["d", "e"]})
    assert bag(publisher.rows()) == bag(left)


def test_keys_declared_later_over_rows_without_them(publisher: Publisher) -> None:
    publisher.declare(None)
    publisher.land(1, pa.table({"v": ["old"]}))
    publisher.poll()
    publisher.declare(["k"])
    publisher.land(2, pa.table({"k": pa.array([None, 1], pa.int64()), "v": ["null", "one"]}), [1, 4])
    publisher.poll()
    assert bag(publisher.rows()) == bag(pa.table({"v": ["null", "one"], "k": pa.array([None, 1], pa.int64())}))
