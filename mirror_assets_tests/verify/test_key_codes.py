"""Codes of keys: equal for equal keys only, whatever their types, and rows in order by them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.verify.keys import codes_of

_LARGE = 2**63 - 1
_KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "bigint": (pa.int64(), st.sampled_from([-_LARGE - 1, -1, 0, 1, 2**41, _LARGE])),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "string": (pa.string(), st.text(max_size=2)),
    "binary": (pa.binary(), st.binary(max_size=2)),
    "decimal": (pa.decimal128(38, 2), st.integers(-3, 3).map(lambda cents: Decimal(cents) / 100)),
    "date": (pa.date32(), st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
    "timestamp": (pa.timestamp("us"), st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 1, 1))),  # noqa: DTZ001
    "boolean": (pa.bool_(), st.booleans()),
}


@given(st.lists(st.sampled_from(sorted(_KINDS)), min_size=1, max_size=4), st.data())
def test_rows_come_by_key_and_in_order(names: list[str], data: st.DataObject) -> None:
    kinds = [_KINDS[name] for name in names]
    rows = data.draw(st.lists(st.tuples(*(values for _, values in kinds)), min_size=1, max_size=30))
    table = pa.table(
        {f"key{n}": pa.array([row[n] for row in rows], kind) for n, (kind, _) in enumerate(kinds)},
    )
    codes = codes_of(table, table.column_names)
    assert all(0 <= number < codes.below for number in codes.numbers)
    index, follows = codes.in_order()
    assert sorted(index) == list(range(len(rows)))
    groups: list[list[int]] = []
    for row, is_same in zip(index.tolist(), follows.tolist(), strict=True):
        if is_same:
            groups[-1].append(row)
        else:
            groups.append([row])
    assert sorted(groups) == sorted(
        [row for row, key in enumerate(rows) if key == wanted] for wanted in dict.fromkeys(rows)
    )
