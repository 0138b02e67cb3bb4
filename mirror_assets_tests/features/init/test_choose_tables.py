"""`discover:` in mirror.yaml: mistakes with their lines, and which found folders become tables of the configuration."""

# ruff: noqa: E501 - one mistake a line reads as a table

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_assets.config.discovered import FoundState, When
from mirror_assets.config.setting_values import Changes
from mirror_assets.features.init.discover_rule import DiscoverSettings
from mirror_assets_tests.config.reading import mistake, mistakes, read
from mirror_assets_tests.worlds.disk_lake import FEED, DiskLake, names, states

BASE = """\
landing_zone: {path: landing}
stores:
  silver: {root: /lake}
discover:
  - from: {store: silver, path: "*/"}
    keys: {default: [id]}
"""
CATALOGS = """\
landing_zone: {path: landing}
catalogs:
  main: {type: unity, url: "https://host"}
  hive: {type: spark}
discover:
  - from: {catalog: main, schema: sales}
    keys: {default: [id]}
"""


@pytest.fixture
def lake(tmp_path: Path) -> DiskLake:
    return DiskLake(tmp_path)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("exlude: [a]", "exlude: unknown setting; did you mean 'exclude'?"),
        ("schema: '{foldr}'", "schema: {foldr} is unknown; did you mean 'folder'?"),
        ("schema: '{'", "schema: '{' can't be read: Single '{' encountered in format string"),
        ("exclude: [/tmp]", "exclude.0: expected the end of a path, such as _tmp* or staging/*, got '/tmp'"),
        ("new_tables: wait", "new_tables: expected 'mirror' or 'hold', got 'wait'"),
        ("approved: [orders]", "approved: it needs `new_tables: hold`; otherwise no table waits for approval"),
        (
            "settings: {changes: cdc}",
            "settings.changes: expected 'feed', 'row_tracking', 'files' or 'append_only', got 'cdc'",
        ),
        ("settings: {keys: [id]}", "settings.keys: set them as `keys: {default: […]}` of the rule"),
        ("settings: {starts: latest}", "settings.starts: unknown setting; did you mean 'start'?"),
    ],
)
def test_mistakes_in_a_rule(line: str, expected: str) -> None:
    assert mistake(f"{BASE}    {line}\n") == f"7: discover.0.{expected}"


@pytest.mark.parametrize(
    ("base", "old", "new", "expected"),
    [
        (BASE, "store: silver", "store: sliver", "5: discover.0.from.store: unknown store 'sliver'; did you mean 'silver'?"),
        (BASE, "store: silver, ", "", "5: discover.0.from.store: this setting is missing"),
        (BASE, "store: silver", "store: silver, pth: x", "5: discover.0.from.pth: unknown setting; did you mean 'path'?"),
        (BASE, '"*/"', "../*", "5: discover.0.from.path: expected folders below the store's root, such as */ or sales/*/, got '../*'"),
        (BASE, '"*/"', "/", "5: discover.0.from.path: expected folders below the store's root, such as */ or sales/*/, got '/'"),
        (BASE, '"*/"', '"**"', "5: discover.0.from.path: expected folders below the store's root, such as */ or sales/*/, got '**'"),
        (BASE, "[id]", "id", "6: discover.0.keys.default: expected a list, like [one, two], got 'id'"),
        (BASE, "{default: [id]}", "[id]", "6: discover.0.keys: expected settings below it (name: value), got a list"),
        (BASE, '{store: silver, path: "*/"}', "silver", "5: discover.0.from: expected settings below it (name: value), got 'silver'"),
        (CATALOGS, "catalog: main", "catalog: mian", "6: discover.0.from.catalog: unknown catalog 'mian'; did you mean 'main'?"),
        (CATALOGS, "catalog: main", "catalog: hive", "6: discover.0.from.catalog: only Spark can list this catalog"),
        (CATALOGS, "schema: sales", "shema: sales", "6: discover.0.from.shema: unknown setting; did you mean 'schema'?"),
        (CATALOGS, "schema: sales", "schema: main.sales", "6: discover.0.from.schema: expected a schema of the catalog, or a pattern such as sales_*, got 'main.sales'"),
        (CATALOGS, "schema: sales", "schema: 7", "6: discover.0.from.schema: expected text (quotes make it text), got 7"),
    ],
)  # fmt: skip
def test_mistakes_in_where_and_keys(base: str, old: str, new: str, expected: str) -> None:
    assert base.count(old) == 1
    assert mistake(base.replace(old, new)).startswith(expected)


def test_a_place_is_a_store_or_a_catalog() -> None:
    found = mistakes(CATALOGS.replace("schema: sales", "store: lake"))
    assert found[0] == "6: discover.0.from: expected {store, path} or {catalog, schema}, not both"


def test_a_rule_needs_keys_unless_its_changes_do_without() -> None:
    without = BASE.replace("    keys: {default: [id]}\n", "")
    assert mistake(without).startswith("5: discover.0.keys: `changes: feed` and `changes: files` need `keys`")
    for text in (f"{without}    settings: {{changes: append_only}}\n", f"{without}defaults: {{keys: [id]}}\n"):
        assert len(DiscoverSettings.of(read(text)).discover) == 1


def test_neither_tables_nor_rules() -> None:
    found = mistake("landing_zone: {path: l}\ndiscover: []\n")
    assert found == "1: tables: list at least one table here, or add a rule to `discover`"


def test_found_tables_are_tables_with_the_rules_settings(lake: DiskLake) -> None:
    lake.add("sales/orders", "sales/lines")
    lake.configure(
        '{from: {store: lake, path: "*/*/"}, schema: "{folder}", keys: {default: [id], orders: [id, of]},'
        " settings: {start: latest, slices: {max_rows: 7}}}",
        "defaults: {slices: {max_commits: 3}, lag: {warn_seconds: 5}}\n",
    )
    config = lake.load()
    assert names(config) == ["sales.lines", "sales.orders"]
    orders, lines = config.table("sales.orders"), config.table("sales.lines")
    assert orders.source == str(lake.lake / "sales/orders")
    assert (orders.keys, lines.keys) == (("id", "of"), ("id",))
    assert (orders.slices.max_rows, orders.slices.max_commits, orders.lag.warn_seconds) == (7, 3, 5)
    assert config.place("tables.sales.orders.keys") == f"{lake.root}/mirror.yaml:5", "the rule that found it"
    assert config.model_dump()["tables"].keys() == {"sales.lines", "sales.orders"}
    assert set(states(config).values()) == {FoundState.NEW}
    assert set(states(lake.load(When.REFRESH)).values()) == {FoundState.MIRRORED}


def test_the_files_own_tables_have_precedence_by_address_and_by_name(lake: DiskLake) -> None:
    lake.add("orders", "lines", "Items", "elsewhere/x")
    lake.configure(
        '{from: {store: lake, path: "*"}, keys: {default: [id]}}',
        "tables:\n"
        "  shop.renamed: {source: {store: lake, path: orders}, keys: [of]}\n"
        "  items: {source: {store: lake, path: elsewhere/x}, keys: [id]}\n",
    )
    config = lake.load()
    assert names(config) == ["shop.renamed", "items", "lines"]
    assert config.table("shop.renamed").keys == ("of",)
    assert states(config) == {
        "lake/orders": FoundState.NAMED,
        "lake/lines": FoundState.NEW,
        "lake/Items": FoundState.NAME_TAKEN,
        "lake/elsewhere": FoundState.NOT_A_TABLE,
    }
    assert config.line_of("tables.items.keys") == 8


def test_two_folders_of_one_name_are_both_left_out(lake: DiskLake, caplog: pytest.LogCaptureFixture) -> None:
    lake.add("a/orders", "b/Orders", "b/lines")
    lake.configure('{from: {store: lake, path: "*/*"}, keys: {default: [id]}}')
    config = lake.load()
    assert names(config) == ["lines"]
    assert states(config)["a/orders"] is states(config)["b/Orders"] is FoundState.NAME_TAKEN
    assert f"{lake.lake}/b/Orders has the same name" in config.discovered.tables[0].reason
    assert "a/orders is not mirrored as orders" in caplog.text


def test_the_first_rule_that_finds_a_table_has_it(lake: DiskLake) -> None:
    lake.add("a/orders", "b/lines")
    first = "{from: {store: lake, path: a/*}, schema: first, keys: {default: [id]}}"
    lake.configure(f'{first}\n  - {{from: {{store: lake, path: "*/*"}}, schema: second, keys: {{default: [id]}}}}')
    config = lake.load()
    assert names(config) == ["first.orders", "second.lines"]
    assert [(rule.folders, rule.mirrored) for rule in config.discovered.rules] == [(1, 1), (1, 1)]


def test_why_folders_are_left_out(lake: DiskLake) -> None:
    lake.add("a/good", "a/bad.name", "a/_hidden", "a/tmp_1", "mirror/x")
    lake.add_other("a/off", ("id",))
    lake.add_other("a/keyless", ("number",), **FEED)
    (lake.lake / "a/empty").mkdir()
    (lake.lake / "a/broken/_delta_log").mkdir(parents=True)
    (lake.lake / f"a/broken/_delta_log/{0:020d}.json").write_text("{")
    lake.configure(
        '{from: {store: lake, path: "*/*"}, exclude: ["*/tmp_*"], keys: {default: [id], ordrs: [id]}}',
        "mirror: {path: ./lake/mirror}\n",
    )
    config = lake.load()
    assert names(config) == ["good"]
    assert states(config) == {
        "a/good": FoundState.NEW,
        "a/bad.name": FoundState.NAME_REFUSED,
        "a/tmp_1": FoundState.EXCLUDED,
        "a/off": FoundState.FEED_OFF,
        "a/keyless": FoundState.NO_KEYS,
        "a/empty": FoundState.NOT_A_TABLE,
        "a/broken": FoundState.UNREADABLE,
        "mirror/x": FoundState.EXCLUDED,
    }
    assert all(row.reason for row in config.discovered.tables if not row.state.is_mirrored)
    (rule,) = config.discovered.rules
    assert rule.unused_keys == ("ordrs",)


def test_a_feed_is_not_asked_for_where_changes_do_without(lake: DiskLake) -> None:
    lake.add_other("events", ("at",))
    lake.add_other("tracked", ("at",))
    lake.track_rows("tracked")
    lake.configure("{from: {store: lake}, settings: {changes: row_tracking}}")
    assert states(lake.load()) == {"lake/events": FoundState.ROW_TRACKING_OFF, "lake/tracked": FoundState.NEW}
    lake.configure("{from: {store: lake}, settings: {changes: append_only}}")
    config = lake.load()
    assert names(config) == ["events", "tracked"]
    assert config.table("events").changes is Changes.APPEND_ONLY


def test_held_tables_wait_until_they_are_approved_or_written_down(lake: DiskLake) -> None:
    lake.add("orders", "lines", "items")
    hold = "{from: {store: lake}, keys: {default: [id]}, new_tables: hold, approved: [lake/orders]}"
    lake.configure(hold)
    config = lake.load()
    assert names(config) == ["orders"]
    assert states(config)["lake/lines"] is FoundState.HELD
    assert "add lake/lines to `approved`" in next(x.reason for x in config.discovered.tables if x.name == "lines")
    lake.configure(hold.replace("[lake/orders]", '["lake/*s"]'))
    assert names(lake.load()) == ["items", "lines", "orders"]
    lake.configure(hold, "tables: {items: {source: {store: lake, path: items}, keys: [id]}}\n")
    assert names(lake.load()) == ["items", "orders"]


def test_names_that_no_reader_takes_hold_up_no_other(lake: DiskLake) -> None:
    lake.add("orders", "a%41")
    os.mkdir(os.fsencode(lake.lake) + b"/not\xffUTF-8")  # noqa: PTH102 its name is not text
    lake.configure("{from: {store: lake}, keys: {default: [id]}}")
    config = lake.load()
    assert names(config) == ["orders"]
    assert [(x.state, x.reason) for x in config.discovered.tables if x.name != "orders"] == [
        (FoundState.NAME_REFUSED, "readers of Delta tables take 'a%41' for another path; rename its folder")
    ]


def test_a_missing_root_is_reported_and_known_tables_remain(lake: DiskLake) -> None:
    lake.configure("{from: {store: lake}, keys: {default: [id]}}")
    (rule,) = lake.load().discovered.rules
    assert f"{lake.lake} can't be read: No such file or directory" in rule.trouble
    lake.add("orders")
    assert names(lake.load()) == ["orders"], "nothing was cached, so it scans again"
    lake.lake.rename(lake.root / "away")
    config = lake.load(When.REFRESH)
    assert names(config) == ["orders"]
    assert not config.discovered.rules[0].is_well


def test_cached_tables_are_loaded_without_a_scan(lake: DiskLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.add("orders")
    lake.configure("{from: {store: lake}, keys: {default: [id]}}")
    assert names(lake.load(When.NEVER)) == []
    assert names(lake.load()) == ["orders"]
    lake.add("lines")
    monkeypatch.setattr(os, "scandir", None)
    assert names(lake.load()) == ["orders"]
    lake.configure("{from: {store: lake}, keys: {default: [of]}, exclude: [nothing], schema: s}")
    config = lake.load()
    assert names(config) == ["s.orders"], "the cache is of the place, not of the rule's other settings"
    assert config.table("s.orders").keys == ("of",)
