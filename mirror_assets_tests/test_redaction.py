"""How values of rows are marked in messages, and left out."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import hypothesis.strategies as st
from hypothesis import given

from mirror_assets.redaction import shown_key, without_values


def test_values_are_shown_as_people_read_them() -> None:
    key = {"name": "x", "day": date(2026, 1, 2), "amount": Decimal("1.50"), "blob": b"\x00", "gone": None}
    assert shown_key(key) == "«name='x', day=2026-01-02, amount=1.50, blob=b'\\x00', gone=NULL»"
    assert shown_key({"text": "y" * 100}) == f"«text='{'y' * 39}»"


@given(st.dictionaries(st.text(max_size=5), st.text()), st.text(alphabet="abc \n"), st.text(alphabet="abc \n"))
def test_nothing_of_a_row_is_left(row: dict[str, str], before: str, after: str) -> None:
    shown = shown_key(row)
    assert without_values(f"{before}{shown}{after}") == f"{before}«…»{after}"
    assert without_values(f"{before}{shown[:-1]}") == f"{before}«…»"
