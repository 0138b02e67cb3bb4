"""Every value that a landing file can have is shown, also those that Python has no type for."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.row_values import shown_key
from mirror_assets.verify.readable_rows import readable_rows

_LONG = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1])
_INT = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-(2**31), 2**31 - 1, 3_700_000, -800_000])


def _text(values: list[bytes | None]) -> pa.Array:
    """Return texts with these bytes, which Spark writes as they are."""
    return pa.array(values, pa.binary()).view(pa.string())


_KINDS: dict[str, tuple[st.SearchStrategy[object], Callable[[list[object]], pa.Array]]] = {
    "int": (_INT, lambda values: pa.array(values, pa.int32())),
    "bigint": (_LONG, lambda values: pa.array(values, pa.int64())),
    "double": (st.floats(allow_nan=False), lambda values: pa.array(values, pa.float64())),
    "boolean": (st.booleans(), lambda values: pa.array(values, pa.bool_())),
    "decimal": (
        st.integers(-(10**37), 10**37).map(lambda number: Decimal(number).scaleb(-10)),
        lambda values: pa.array(values, pa.decimal128(38, 10)),
    ),
    "string": (st.binary(max_size=9), _text),  # type: ignore[dict-item]
    "binary": (st.binary(max_size=9), lambda values: pa.array(values, pa.binary())),
    "date": (_INT, lambda values: pa.array(values, pa.int32()).cast(pa.date32())),
    "timestamp": (_LONG, lambda values: pa.array(values, pa.int64()).cast(pa.timestamp("us", tz="UTC"))),
    "timestamp_ntz": (_LONG, lambda values: pa.array(values, pa.int64()).cast(pa.timestamp("us"))),
    "timestamp_ns": (_LONG, lambda values: pa.array(values, pa.int64()).cast(pa.timestamp("ns"))),
}


@pytest.mark.parametrize("kind", _KINDS)
@given(data=st.data())
def test_any_value_is_shown_and_different_ones_stay_different(kind: str, data: st.DataObject) -> None:
    values, made = _KINDS[kind]
    drawn = data.draw(st.lists(st.none() | values, unique_by=repr, max_size=8))
    rows = readable_rows(pa.table({"key": pa.chunked_array([made(drawn)])}))
    assert len({repr(row) for row in rows}) == len(drawn)
    assert all(shown_key(row).startswith("«key=") for row in rows)


def test_dates_and_times_are_shown_in_full() -> None:
    days = pa.array([3_700_000, -800_000, 0], pa.int32()).cast(pa.date32())
    moments = pa.array([3_700_000 * 86_400_000_000, 0, 1], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    rows = readable_rows(pa.table({"day": days, "at": moments}))
    assert [row["day"] for row in rows] == ["12100-04-04", "-0221-09-04", "1970-01-01"]
    assert rows[0]["at"] == "12100-04-04 00:00:00.000000"
