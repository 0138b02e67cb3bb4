"""Messages that leave the project: no value of a row, no secret, nothing that can't be shown."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.pipeline.outgoing import cleaned
from mirror_assets.redaction import hide


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # values of rows
        (
            "key column 'id' is NULL in 2 rows, such as row 0 «name 'Ada', day 2026-01-01», row 4 «name 'B",
            "key column 'id' is NULL in 2 rows, such as row 0 «…», row 4 «…»",
        ),
        # credentials in addresses
        ("GET https://a.example/x?sv=1&sig=aB%2Bc&se=2 failed", "GET https://a.example/x?sv=1&sig=…&se=2 failed"),
        ("s3: https://b.example/k?X-Amz-Signature=0a1b'", "s3: https://b.example/k?X-Amz-Signature=…'"),
        ("proxy http://me:secret@proxy.example:80/ refuses", "proxy http://me:…@proxy.example:80/ refuses"),
        ("abfss://lake@acme.dfs.core.windows.net/a: 403", "abfss://lake@acme.dfs.core.windows.net/a: 403"),
        ("at http://a.example:80, mail me@b.example", "at http://a.example:80, mail me@b.example"),
        # partition values in paths
        ("s3://b/t/customer=Ada%20L/day=2026/part-0.parquet", "s3://b/t/customer=…/day=…/part-0.parquet"),
        ("customer=Ada L/part-0.parquet is gone", "customer=…/part-0.parquet is gone"),
        ("the folder /lake/t/customer=Ada is empty", "the folder /lake/t/customer=… is empty"),
        ("file '/lake/customer=Ada/x', then y=1", "file '/lake/customer=…/x', then y=1"),
        ("keys=[id] in /lake/t", "keys=[id] in /lake/t"),
        # characters that can't be shown
        ("a\tb\r\nc", "a b\nc"),
        ("turned \u202egnp.exe", "turned gnp.exe"),
        ("a name of a file: \udcff", "a name of a file: "),
        ("\x1b[31mred\x07", "[31mred"),
        ("שלום 👩‍🚀", "שלום 👩‍🚀"),
    ],
)
def test_private_values_and_characters_that_can_not_be_shown_are_left_out(text: str, shown: str) -> None:
    assert cleaned(text) == shown


def test_a_secret_is_shown_as_its_variable() -> None:
    hide("LAKE_KEY", "a-secret-of-the-lake")
    assert cleaned("refused: a-secret-of-the-lake") == "refused: ${LAKE_KEY}"


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=3000))
def test_any_text_is_short_and_can_be_stored(text: str) -> None:
    kept = cleaned(text)
    assert len(kept) <= 1500
    assert json.loads(json.dumps(kept).encode()) == kept
