"""Names in Spark SQL, whatever characters they have."""

from __future__ import annotations

from mirror_assets.sql_names import quoted, table_at


def test_backticks_are_doubled() -> None:
    assert quoted("a b`c.d") == "`a b``c.d`"
    assert table_at("/la`ke/t") == "delta.`/la``ke/t`"
