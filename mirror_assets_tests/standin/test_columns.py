"""Columns: the union schema, canonical types, names and values that must survive (reference `landing-zone` §4.22)."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from mirror_assets.monitoring import TableState
from mirror_assets.standin.mirror_columns import MirrorColumns, aligned, canonical_type, first_columns
from mirror_assets_tests.standin.publisher import Publisher, bag, pairs

_AT = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)
_VALUES = pa.table(
    {
        "k": pa.array([1, 2, 3]),
        "i8": pa.array([-128, None, 127], pa.int8()),
        "i16": pa.array([1, None, 2], pa.int16()),
        "f32": pa.array([float("nan"), -0.0, None], pa.float32()),
        "f64": pa.array([float("nan"), -0.0, float("-inf")], pa.float64()),
        "text": pa.array(["", "é\n\u0000", None]),
        "raw": pa.array([b"", b"\x00\xff", None]),
        "flag": pa.array([True, None, False]),
        "day": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
        "at": pa.array([datetime(1, 1, 1, tzinfo=timezone.utc), None, _AT], pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(1, 1, 1), None, datetime(9999, 12, 31)], pa.timestamp("us")),  # noqa: DTZ001, without zone on purpose
        "money": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal128(38, 2)),
    }
)


def test_values_of_every_type_survive_append_and_rewrite(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, _VALUES.slice(0, 2))
    publisher.land(2, _VALUES.slice(2, 1))
    publisher.poll()
    assert bag(publisher.rows()) == bag(_VALUES)
    publisher.land(3, _VALUES.slice(0, 1), [2])
    publisher.poll()
    assert bag(publisher.rows()) == bag(_VALUES.slice(1, 2)), "what is left was rewritten"


@pytest.mark.parametrize("name", ["a b", "a,b;{}()=\t", "é中", "a.b", "a`b", "a%20b", 'a"b'])
def test_any_column_name_works_as_key_and_as_value(publisher: Publisher, name: str) -> None:
    publisher.declare([name])
    publisher.land(1, pa.table({name: [1, 2], f"{name}2": ["a", "b"]}))
    publisher.land(2, pa.table({name: [1], f"{name}2": ["c"]}), [1])
    publisher.poll()
    assert bag(publisher.rows()) == bag(pa.table({name: [1, 2], f"{name}2": ["c", "b"]}))


def test_new_columns_are_null_before_and_dropped_ones_after(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a"), (2, "a")))
    publisher.poll()
    publisher.land(2, pa.table({"k": [2, 3], "new": [1.5, 2.5]}), [1, 0])
    publisher.poll()
    left = pa.table({"k": [1, 2, 3], "v": ["a", None, None], "new": [None, 1.5, 2.5]})
    assert bag(publisher.rows()) == bag(left)
    assert publisher.rows().schema.names == ["k", "v", "new"]


def test_new_column_of_a_required_file_is_nullable(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    new = pa.schema([("k", pa.int64()), pa.field("new", pa.int64(), nullable=False)])
    publisher.land(2, pa.table({"k": [2], "new": [1]}, schema=new))
    publisher.land(3, pairs((3, "c")))
    assert publisher.poll().state is TableState.REPLICATING


def test_zoneless_timestamp_may_come_later(publisher: Publisher) -> None:
    """It raises the table's Delta protocol, beside a column that was landed not nullable."""
    required = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    publisher.declare()
    publisher.land(1, pa.table({"k": [1]}, schema=required))
    publisher.poll()
    publisher.land(2, _VALUES.select(["k", "local"]))
    assert publisher.poll().state is TableState.REPLICATING
    assert publisher.rows().schema.field("local").type == pa.timestamp("us")


@pytest.mark.parametrize(
    ("landed", "stored"),
    [
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary(16), pa.binary()),
        (pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (pa.timestamp("ns", "UTC"), None),
        (pa.decimal256(76, 2), None),
        (pa.time64("us"), None),
        (pa.float16(), None),
        (pa.struct([("a", pa.int64())]), None),
    ],
)
def test_canonical_types(landed: pa.DataType, stored: pa.DataType | None) -> None:
    assert canonical_type(landed) == stored


def test_merged_keeps_order_and_first_types() -> None:
    first = first_columns(pa.schema([("b", pa.int64()), pa.field("a", pa.string(), nullable=False)]))
    merged = first.merged(pa.schema([("c", pa.int64()), ("a", pa.string())]))
    assert merged == MirrorColumns(
        pa.schema([("b", pa.int64()), ("a", pa.string()), ("c", pa.int64())]), frozenset({"a"})
    )


def test_aligned_keeps_rows_even_without_any_known_column() -> None:
    rows = aligned(pa.table({"other": [1, 2]}), pa.schema([("a", pa.int64())]))
    assert rows.to_pylist() == [{"a": None}, {"a": None}]
