"""Names: two tables never share one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import AssetKind, asset_key, flat_name, group_name, pool_name, safe


def test_a_plain_name_stays_readable() -> None:
    table = TableName("nycflights", "planes")
    assert asset_key(AssetKind.LANDING, table).to_user_string() == "nycflights/planes_landing"
    assert (group_name(table), pool_name(table)) == ("nycflights", "mirror_nycflights__planes")
    assert group_name(TableName(None, "planes")) == "default"


@given(st.text(min_size=1), st.text(min_size=1))
def test_names_are_valid_and_different_texts_have_different_names(left: str, right: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_]+", safe(left))
    assert (safe(left) == safe(right)) == (left == right)


@given(st.text("ab_é", min_size=1), st.text("ab_é", min_size=1))
def test_flat_names_keep_schema_and_table_apart(schema: str, table: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_]+", flat_name(TableName(schema, table)))
