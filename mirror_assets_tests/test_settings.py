from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.settings import parse_size


@given(st.integers(min_value=1, max_value=1 << 20), st.sampled_from(["KiB", "MiB", "GiB", "TiB"]))
def test_binary_units_are_powers_of_1024(number: int, unit: str) -> None:
    power = ["KiB", "MiB", "GiB", "TiB"].index(unit) + 1
    assert parse_size(f"{number}{unit}") == number * 1024**power


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert parse_size(text) >= 0


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1048576", 1048576),
        ("16GiB", 16 << 30),
        (" 16 gib ", 16 << 30),
        ("1.5 GB", 1_500_000_000),
        ("20_000", 20_000),
        ("0.5KiB", 512),
        ("7b", 7),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1", "16XB", "1e3", "1,5GB", "0.3B", "1.2345KB", "١٢", "16 Gi B", "inf"])
def test_refused_sizes(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a size|whole number of bytes"):
        parse_size(text)
