from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mirror_assets.config.errors import TABLE_UNKNOWN
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import OnBreak
from mirror_assets.landing.names import TableName
from mirror_assets.settings import Origin, Section
from mirror_assets_tests.config.reading import read
from mirror_assets_tests.errors import raises_row

TEXT = """\
landing_zone: {path: landing}
defaults:
  keys: [id]
  on_break: hold
  slices: {max_rows: 500, max_commits: 7}
  files: {target_rows: 11}
  lag: {error_seconds: 3600}
tables:
  sales.orders:
    source: lake/orders
    keys: [order, line]
    slices: {max_rows: 9}
    lag: {warn_seconds: null, error_seconds: 60}
  customers:
    source: abfss://lake@account.dfs.core.windows.net/customers
"""


def test_a_tables_settings_go_over_the_defaults_field_by_field() -> None:
    orders = read(TEXT).table("sales.orders")
    assert orders.name == TableName("sales", "orders")
    assert orders.source == "/etc/lake/orders"
    assert orders.keys == ("order", "line")
    assert orders.on_break is OnBreak.HOLD
    assert (orders.slices.max_rows, orders.slices.max_commits) == (9, 7)
    assert orders.files.target_rows == 11
    assert (orders.lag.warn_seconds, orders.lag.error_seconds) == (None, 60)


def test_defaults_fill_what_a_table_leaves_out() -> None:
    customers = read(TEXT).table(TableName(None, "customers"))
    assert customers.keys == ("id",)
    assert customers.source == "abfss://lake@account.dfs.core.windows.net/customers"
    assert (customers.lag.warn_seconds, customers.lag.error_seconds) == (900, 3600)


def test_writing_out_the_built_in_value_still_overrides_the_default() -> None:
    text = TEXT.replace("slices: {max_rows: 9}", "slices: {max_commits: 1000}")
    assert read(text).table("sales.orders").slices.max_commits == 1000


@given(st.sets(st.sampled_from(["max_commits", "max_rows"])), st.sets(st.sampled_from(["max_rows"])))
def test_each_limit_comes_from_the_nearest_place(in_defaults: set[str], in_table: set[str]) -> None:
    def limits(names: set[str], value: int) -> str:
        return "slices: {" + ", ".join(f"{name}: {value}" for name in sorted(names)) + "}"

    text = (
        f"landing_zone: {{path: l}}\ndefaults:\n  {limits(in_defaults, 11)}\n"
        f"tables:\n  t:\n    source: s\n    keys: [k]\n    {limits(in_table, 22)}\n"
    )
    slices = read(text).table("t").slices
    built_in = {"max_commits": 1000, "max_rows": 20_000_000}
    for name, value in built_in.items():
        wanted = 22 if name in in_table else 11 if name in in_defaults else value
        assert getattr(slices, name) == wanted


def test_an_unknown_table_is_refused_with_the_known_ones() -> None:
    with raises_row(TABLE_UNKNOWN, match=r"/etc/mirror\.yaml has no table 'other'.*sales\.orders, customers"):
        read(TEXT).table("other")
    with raises_row(TABLE_UNKNOWN, match=r"has no table 'orders'.*did you mean 'sales\.orders'"):
        read(TEXT).table("orders")


def test_places() -> None:
    config = read(TEXT)
    assert [str(name) for name in config.names] == ["sales.orders", "customers"], "the order of the file"
    assert config.place("tables.sales.orders.keys") == "/etc/mirror.yaml:11"
    assert config.place("tables.sales.orders.slices.max_rows") == "/etc/mirror.yaml:12"
    assert config.line_of("tables.customers.keys") == 14, "a setting left out: the table that it would stand under"
    assert config.line_of("mirror.path") is None
    assert config.place("mirror.path") == "/etc/mirror.yaml"


def test_values_never_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        read(TEXT).landing_zone.path = Path("/elsewhere")  # type: ignore[misc]


def test_every_setting_has_a_sentence() -> None:
    parts = list(_below(Section))
    assert len(parts) > 5
    bare = [f"{part.__name__}.{name}" for part in parts for name, of in part.model_fields.items() if not of.description]
    assert bare == []


def _below(section: type[Section]) -> Iterator[type[Section]]:
    for child in section.__subclasses__():
        yield child
        yield from _below(child)


def test_the_model_round_trips() -> None:
    config = read(TEXT)
    again = Config.model_validate(config.model_dump(exclude_unset=True), context=Origin(config.file))
    assert again.model_dump() == config.model_dump()


def test_a_decimal_is_written_as_spark_writes_it() -> None:
    """The manifest has the type, and the mirror's is compared with it."""
    text = TEXT.replace("[order, line]", "[order]\n    columns: {a: {sql: b, type: 'DECIMAL( 05, 02 )'}}")
    assert read(text).table("sales.orders").computed["a"].type == "decimal(5,2)"
