"""Names of tables: valid in a landing zone, different from each other, and those of the folders where possible."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.features.init.name_tables import name_tables
from mirror_assets.landing.names import TableName


def _names(*paths: str) -> list[str]:
    return [str(name) for name in name_tables(path.split("/") for path in paths)]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("lake/sales/orders", "sales.orders"),
        ("orders", "orders"),
        ("sales/my orders", "sales.my_orders"),
        ("a.b/c.d", "a_b.c_d"),
        ("sales/50%41", "sales.50_41"),
        ("x: y/[1]", "x_y.[1]"),
        ("größe/ä", "größe.ä"),
        ("x/...", "x.table"),
    ],
)
def test_the_last_two_folders_are_schema_and_table(path: str, name: str) -> None:
    assert _names(path) == [name]


def test_tables_that_would_share_a_folder_get_numbers() -> None:
    assert _names("a/x/t", "b/x/t", "c/X/T") == ["x.t", "x.t_2", "X.T_3"]
    assert _names("x/t_2", "x/t 2", "x/t", "y/x/t") == ["x.t_2", "x.t_2_2", "x.t", "x.t_3"]


def test_the_shortest_path_keeps_its_name() -> None:
    assert _names("archive/sales/orders", "sales/orders") == ["sales.orders_2", "sales.orders"]


@given(st.lists(st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=3), max_size=6))
def test_every_name_is_valid_and_has_a_folder_of_its_own(paths: list[list[str]]) -> None:
    names = name_tables(paths)
    assert [TableName.parse(str(name)) for name in names] == names
    assert len({name.folder.casefold() for name in names}) == len(paths)
