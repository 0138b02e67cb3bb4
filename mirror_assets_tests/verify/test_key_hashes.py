"""Hashes of keys: equal if and only if the keys are, in these tests, and spread over all bits."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.verify.key_hashes import hash_keys

_LARGE = 2**63 - 1
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "bigint": (pa.int64(), st.sampled_from([-_LARGE - 1, -1, 0, 1, 2**41, _LARGE])),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "string": (pa.string(), st.text(max_size=20) | st.text("ab", max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=2)),
    "decimal": (pa.decimal128(38, 2), st.integers(-3, 3).map(lambda cents: Decimal(cents) / 100)),
    "date": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "timestamp": (pa.timestamp("us"), st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1))),  # noqa: DTZ001
    "boolean": (pa.bool_(), st.booleans()),
}


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), st.integers(0, 3), st.data())
def test_hashes_are_equal_for_equal_keys_only(names: list[str], offset: int, data: st.DataObject) -> None:
    kinds = [KINDS[name] for name in names]
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
