"""Hashes of keys: equal if and only if the keys are, in these tests, and spread over all bits."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import numpy as np
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


_NOTHING: list[tuple[pa.DataType, object]] = [
    (pa.int64(), 0),
    (pa.int8(), 0),
    (pa.bool_(), False),
    (pa.string(), ""),
    (pa.binary(), b""),
    (pa.date32(), date(1970, 1, 1)),
    (pa.timestamp("us"), datetime(1970, 1, 1)),  # noqa: DTZ001
]


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize(("kind", "value"), _NOTHING, ids=[str(kind) for kind, _ in _NOTHING])
def test_no_plain_value_has_a_hash_that_a_sum_does_not_show(kind: pa.DataType, value: object, columns: int) -> None:
    names = [f"key{n}" for n in range(columns)]
    batch = pa.record_batch([pa.array([value], kind) for _ in names], names)
    assert hash_keys(batch, names)[0] != 0


@pytest.mark.parametrize("shift", [0, 8, 16, 31, 32, 33, 40, 48, 52])
def test_pairs_of_keys_have_different_sums(shift: int) -> None:
    """Two keys that changed in another commit than two others are seen by the sums of their hashes."""
    keys = np.arange(2_000, dtype=np.int64) << shift
    hashes = hash_keys(pa.record_batch([pa.array(keys)], ["id"]), ["id"])
    first, second = np.triu_indices(len(keys), 1)
    sums = np.sort(hashes[first] + hashes[second])
    assert (sums[1:] != sums[:-1]).all()


def test_keys_of_the_same_bytes_in_other_columns_and_lengths_differ() -> None:
    alike: list[tuple[bool, bytes]] = [(True, b""), (False, b"\0"), (False, b""), (True, b"\0"), (False, b"\1")]
    alike += [(False, b"abcdefg"), (False, b"\x0fabcdefg"), (False, b"aBBBBBBBx"), (False, b"xBBBBBBB\0\0\0\0\0\0\0x")]
    flags, texts = zip(*alike, strict=True)
    batch = pa.record_batch([pa.array(flags), pa.array(texts, pa.binary())], ["flag", "text"])
    assert len({*hash_keys(batch, ["flag", "text"]).tolist()}) == len(alike)
    assert len({*hash_keys(batch, ["text"]).tolist()}) == len({*texts})
