"""`mirror-assets discover`: what becomes of each folder, and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets.config.load import load_config
from mirror_assets_tests.worlds.disk_lake import DiskLake, names


@pytest.fixture
def lake(tmp_path: Path) -> DiskLake:
    return DiskLake(tmp_path)


def _discover(lake: DiskLake, *options: str) -> int:
    return main(["discover", "--config", str(lake.root / "mirror.yaml"), *options])


def test_each_folder_is_listed_with_its_state(lake: DiskLake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.add("sales/orders", "sales/old_orders")
    lake.add_other("sales/visits")
    rule = (
        '{from: {store: lake, path: "*/*"}, schema: "{folder}", exclude: [old_*], keys: {default: [id], odrers: [id]}}'
    )
    lake.configure(rule)
    assert _discover(lake, "--json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == [
        _row(lake, "sales.old_orders", "excluded", "`exclude` matches its path"),
        _row(lake, "sales.orders", "new", "", "id"),
        _row(
            lake,
            "sales.visits",
            "feed off",
            "set delta.enableChangeDataFeed = true at the source, or another `changes`",
            "id",
        ),
    ]
    assert told.err.splitlines() == [
        f"{lake.root}/mirror.yaml:5: 3 folders, 2 tables, 1 mirrored",
        f"{lake.root}/mirror.yaml:5: `keys` names tables that were not found: odrers",
    ]
    assert _discover(lake) == 0
    shown = capsys.readouterr().out
    assert "sales.orders" in shown
    assert "mirrored" in shown


def test_tables_that_vanish_together_stay_until_a_person_accepts_it(
    lake: DiskLake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.add("orders", "items")
    lake.configure("{from: {store: lake}, keys: {default: [id]}}")
    assert _discover(lake) == 0
    lake.lake.rename(lake.root / "unmounted")
    lake.lake.mkdir()
    for _ in range(3):
        _discover(lake)
    assert _discover(lake) == 1
    assert "2 of 2 tables are no longer listed (items, orders): they are mirrored as before" in capsys.readouterr().err
    config = load_config(lake.root / "mirror.yaml")
    assert names(config) == ["items", "orders"]
    assert main(["status", "--config", str(lake.root / "mirror.yaml")]) == 2
    assert "2 of 2 tables are no longer listed" in capsys.readouterr().err
    _discover(lake, "--accept")
    assert names(load_config(lake.root / "mirror.yaml")) == []


def test_a_newcomer_with_the_name_of_a_known_table_is_reported(
    lake: DiskLake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.add("sales/orders")
    lake.configure('{from: {store: lake, path: "*/*"}, keys: {default: [id]}}')
    assert _discover(lake) == 0
    lake.add("backup/orders")
    capsys.readouterr()
    refused = f"{lake.lake}/backup/orders is not mirrored as orders: {lake.lake}/sales/orders has this name"
    for command, code in (("discover", 1), ("status", 0)):
        assert main([command, "--config", str(lake.root / "mirror.yaml")]) == code
        assert refused in capsys.readouterr().err, command
    assert names(load_config(lake.root / "mirror.yaml")) == ["orders"]


def _row(lake: DiskLake, table: str, state: str, reason: str, *keys: str) -> dict[str, object]:
    address, rule = str(lake.lake / table.replace(".", "/")), f"{lake.root}/mirror.yaml:5"
    return {"table": table, "address": address, "rule": rule, "state": state, "reason": reason, "keys": list(keys)}


def test_what_it_finds_is_remembered_and_what_was_none_is_read_again(lake: DiskLake) -> None:
    (lake.lake / "orders").mkdir(parents=True)
    lake.configure("{from: {store: lake}, keys: {default: [id]}}")
    assert _discover(lake) == 1
    shutil.rmtree(lake.lake / "orders")
    lake.add("orders")
    assert _discover(lake) == 0
    assert names(load_config(lake.root / "mirror.yaml")) == ["orders"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (False, "lake can't be read: No such file or directory."),
        (True, "lake *. Next: correct `from`, or write the tables first"),
    ],
)
def test_a_rule_that_finds_nothing_or_can_not_look_fails(
    lake: DiskLake, make: bool, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if make:
        lake.lake.mkdir()
    lake.configure("{from: {store: lake}, keys: {default: [id]}}")
    assert _discover(lake) == 1
    told = capsys.readouterr().err
    assert message in told
    assert told.startswith(f"error: {lake.root}/mirror.yaml:5: ")


def test_without_rules_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mirror.yaml").write_text("landing_zone: {path: z}\ntables: {a: {source: ./a, keys: [id]}}\n")
    assert main(["discover", "--config", str(tmp_path / "mirror.yaml")]) == 2
    assert "no rule finds tables" in capsys.readouterr().err
