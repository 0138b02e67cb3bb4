"""Names: two tables never share one."""

from __future__ import annotations

import re

import dagster as dg
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import AssetKind, asset_key, group_name, safe, step_name


def test_a_plain_name_stays_readable() -> None:
    table = TableName("nycflights", "planes")
    assert asset_key(AssetKind.LANDING, table).to_user_string() == "nycflights/planes_landing"
    assert group_name(table) == "nycflights"
    assert group_name(TableName(None, "planes")) == "default"


@given(st.text(min_size=1), st.text(min_size=1))
def test_names_are_valid_and_different_texts_have_different_names(left: str, right: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_]+", safe(left))
    assert (safe(left) == safe(right)) == (left == right)


@given(st.text("ab_é", min_size=1), st.text("ab_é", min_size=1))
def test_step_names_are_valid(schema: str, table: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_]+", step_name(dg.AssetKey([schema, table])))
