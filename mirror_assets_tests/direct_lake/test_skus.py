"""The table of limits: complete, in order, and found by any of a capacity's names."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest

from mirror_assets.config.table_settings import CAPACITIES
from mirror_assets.direct_lake.guardrails import GB, SKUS, SOURCE_DATE, Sku, sku_of
from mirror_assets.errors import ErrorCode, SettingError

_UNLIMITED = 10**18


def _limits(sku: Sku) -> tuple[int, ...]:
    return sku.files, sku.row_groups, sku.rows, sku.model_bytes or _UNLIMITED


def test_a_larger_capacity_allows_no_less() -> None:
    assert [sku.name for sku in SKUS] == [f"F{2**power}" for power in range(1, 12)]
    for smaller, larger in pairwise(SKUS):
        assert all(a <= b for a, b in zip(_limits(smaller), _limits(larger), strict=True))


def test_rows_of_the_page() -> None:
    assert _limits(sku_of("F16")) == (1_000, 1_000, 300_000_000, 20 * GB)
    assert _limits(sku_of("F64")) == (5_000, 5_000, 1_500_000_000, _UNLIMITED)
    assert _limits(sku_of("F2048")) == (10_000, 10_000, 24_000_000_000, _UNLIMITED)
    assert date.fromisoformat(SOURCE_DATE) < date(2026, 9, 1)


def test_the_setting_takes_every_name() -> None:
    assert tuple(name for sku in SKUS for name in sku.names) == CAPACITIES


def test_a_capacity_has_several_names() -> None:
    assert sku_of("p1") is sku_of("FT1") is sku_of("F64")
    with pytest.raises(SettingError, match=r"F3 is not a capacity .* name one of F2, F4, .*P5, F2048") as error:
        sku_of("F3")
    assert (error.value.code, isinstance(error.value, SettingError)) == (ErrorCode.SKU_UNKNOWN, True)
