"""Rules over the settings of Direct Lake and maintenance, and those of Fabric, catalogs and discovery."""

from __future__ import annotations

import pytest

from mirror_assets_tests.config.reading import mistake, read

_ZONE = """\
landing_zone: {onelake: {url: 'https://onelake.dfs.fabric.microsoft.com/11111111-aaaa-4bbb-8ccc-000000000001/22222222-aaaa-4bbb-8ccc-000000000002/Files/LandingZone'}}
mirror:
  fabric: {}
"""
_TABLES = "tables: {orders: {source: ./lake/orders, keys: [id]}}"
_RULE = "stores: {s: {root: /s}}\ndiscover:\n  - from: {store: s}\n    keys: {default: [id]}\n    settings:"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("tables:\n  orders:\n    source: ./orders\n    keys: [id]\n    direct_lake:", "8: tables.orders"),
        (f"{_TABLES}\ndefaults:\n  direct_lake:", "6: defaults"),
        (f"{_RULE}\n      direct_lake:", "9: discover.0.settings"),
    ],
)
def test_frames_of_a_mirror_in_fabric_are_refused(settings: str, expected: str) -> None:
    """Seen: accepted, and checked by nothing."""
    found = mistake(f"{_ZONE}{settings} {{frames_of: mirror}}\n")
    assert found.startswith(f"{expected}.direct_lake.frames_of: nothing checks the frames of a mirror in Fabric")
    assert read(f"{_ZONE}{settings} {{frames_of: source}}\n")


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
