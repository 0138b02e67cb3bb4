"""The settings of Direct Lake and maintenance in mirror.yaml: what they are, and every mistake in them."""

# ruff: noqa: E501 - one mistake a line reads as a table

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.features.direct_lake.direct_lake_settings import (
    DirectLakeMode,
    DirectLakeSettings,
    DirectLakeTable,
    Maintenance,
)
from mirror_assets_tests.config.reading import mistake, mistakes, read

_TEXT = """\
landing_zone: {path: landing}
defaults: {keys: [id]}
tables:
  orders: {source: lake/orders}
  customers: {source: lake/customers}
"""
# Each mistake is added to this file, below its last line.
_TABLE = """\
landing_zone: {path: landing}
tables:
  planes:
    source: lake/planes
    keys: [tailnum]
"""


def test_what_reads_a_table_and_what_maintains_it() -> None:
    usual = read(_TEXT).table("customers")
    assert DirectLakeTable.of(usual).direct_lake == DirectLakeSettings()
    assert DirectLakeTable.of(usual).maintenance == (), "by default, nothing changes a source"
    text = _TEXT.replace(
        "defaults: {keys: [id]}", "defaults: {keys: [id], direct_lake: {sku: f64, mode: sql}, maintenance: [purge]}"
    )
    of_orders = "{sku: null, frames: [7, 2026-01-31 18:30:00], exports: [dax/tables.csv]}"
    text = text.replace("lake/orders}", f"lake/orders, direct_lake: {of_orders}}}")
    orders, customers = map(DirectLakeTable.of, read(text).all_tables())
    assert (orders.direct_lake.sku, orders.direct_lake.mode) == (None, DirectLakeMode.SQL)
    assert orders.direct_lake.frames == ("7", "2026-01-31 18:30:00")
    assert orders.direct_lake.exports == (Path("/etc/dax/tables.csv"),)
    assert customers.direct_lake.sku == "F64"
    assert customers.maintenance == (Maintenance.PURGE,)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("direct_lake: {sku: F3}", "direct_lake.sku: F3 is not a capacity; expected one of F2, F4, F8, F16, F32, F64, FT1, P1, F128, P2, F256, P3, F512, P4, F1024, P5, F2048"),
        ("direct_lake: {sku: 64}", "direct_lake.sku: 64 is not a capacity; expected one of F2, F4, F8, F16, F32, F64, FT1, P1, F128, P2, F256, P3, F512, P4, F1024, P5, F2048"),
        ("direct_lake: {mode: lake}", "direct_lake.mode: expected 'onelake', 'sql' or 'sql_only', got 'lake'"),
        ("direct_lake: {frames: [3, soon]}", "direct_lake.frames.1: expected a version, or a time like 2026-01-31, 2026-01-31 18:30:00 or 2026-01-31 18:30:00.250 Europe/Berlin, got 'soon'"),
        ("direct_lake: {frames: [-1]}", "direct_lake.frames.0: expected a version or a time like 'yyyy-MM-dd HH:mm:ss', got -1"),
        ("direct_lake: {frames: 3}", "direct_lake.frames: expected a list, like [one, two], got 3"),
        ("direct_lake: {exports: ['https://x/y.csv']}", "direct_lake.exports.0: expected a file on this machine, got 'https://x/y.csv'"),
        ("direct_lake: {frame: [1]}", "direct_lake.frame: unknown setting; did you mean 'frames'?"),
        ("maintenance: {vacuum: true}", "maintenance: expected a list, like [one, two], got a mapping"),
        ("maintenance: [vaccum]", "maintenance.0: expected 'optimize', 'purge' or 'vacuum', got 'vaccum'"),
    ],
)  # fmt: skip
def test_mistakes_in_a_table(line: str, expected: str) -> None:
    assert mistakes(f"{_TABLE}    {line}\n") == [f"6: tables.planes.{expected}"]


_CATALOG = """\
landing_zone: {path: landing}
catalogs:
  main: {type: unity, url: "https://host"}
"""
_DISCOVERED = f"{_CATALOG}discover:\n  - from: {{catalog: main, schema: sales}}\n    keys: {{default: [id]}}\n"


def test_discovered_tables_are_not_maintained_with_credentials_for_reading() -> None:
    for line, steps in (
        ("    settings: {maintenance: [vacuum]}", "discover.0.settings"),
        ("defaults: {maintenance: [optimize]}", "defaults"),
    ):
        assert mistake(f"{_DISCOVERED}{line}\n").startswith(f"7: {steps}.maintenance: the catalog's credentials")
    stores = _DISCOVERED.replace('"https://host"', '"https://host", credentials: stores')
    assert read(f"{stores}    settings: {{maintenance: [vacuum]}}\n")


def test_tables_that_can_only_be_read_are_not_maintained() -> None:
    table = "tables:\n  orders: {source: {catalog: main, table: sales.orders}, keys: [id], maintenance: [vacuum]}\n"
    assert "only allow reading" in mistake(_CATALOG + table)
    assert read(_CATALOG.replace('host"}', 'host", credentials: stores}') + table)
    assert read(_CATALOG.replace('type: unity, url: "https://host"', "type: spark") + table)
