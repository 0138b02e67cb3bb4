"""`mirror-assets history`, its job, its asset and its schedule."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable

from mirror_assets.cli.main import main
from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets_tests.asset_kinds import kind_of
from mirror_assets_tests.features.history.sources import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Three tables on one source; two of them keep its history."""
    made = Place(tmp_path)
    made.create()
    made.update(1)
    _configure(made, "  plain: {source: ./orders, keys: [id]}\n")
    return made


def _configure(place: Place, more: str) -> None:
    (place.root / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\nhistory: {path: ./kept}\ntables:\n"
        "  shop.orders: {source: ./orders, keys: [id], history: slices}\n"
        f"  shop.missing: {{source: ./missing, keys: [id], history: stream}}\n{more}"
    )


@pytest.mark.usefixtures("spark")
def test_a_table_that_fails_does_not_hold_up_the_others(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["history", "--config", str(place.root / "mirror.yaml"), "--json"])
    kept, failed = json.loads(capsys.readouterr().out)
    assert (kept["table"], kept["slices"], kept["rows"], kept["covered"], kept["error"]) == (
        "shop.orders",
        1,
        5,
        1,
        None,
    )
    assert (failed["table"], failed["slices"], failed["covered"], failed["error"]["family"]) == (
        "shop.missing",
        0,
        None,
        "setting",
    )
    assert code == 2
    assert Path(kept["path"]) == place.root / "kept" / "shop.schema" / "orders"
    assert DeltaTable(kept["path"]).version() == 0
    assert not (place.root / "landing").exists()
    main(["status", "--config", str(place.root / "mirror.yaml"), "--json"])
    assert [(line["table"], line["feature_versions"]) for line in json.loads(capsys.readouterr().out)] == [
        ("shop.orders", {"history": 1}),
        ("shop.missing", {}),
        ("plain", {}),
    ]


def test_a_dry_run_shows_what_would_be_appended_and_writes_nothing(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(place.root.rglob("*"))
    assert main(["history", "--dry-run", "--config", str(place.root / "mirror.yaml"), "--json"]) == 2
    planned, failed = json.loads(capsys.readouterr().out)
    assert (planned["table"], planned["slices"], planned["covered"]) == ("shop.orders", 1, 1)
    assert planned["rows"] > 0
    assert (failed["table"], failed["slices"], failed["error"]["code"]) == ("shop.missing", 0, "source_not_delta")
    assert sorted(place.root.rglob("*")) == files


def test_a_pattern_takes_the_tables_that_keep_one(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    main(["history", "*", "--dry-run", "--config", str(place.root / "mirror.yaml"), "--json"])
    assert [line["table"] for line in json.loads(capsys.readouterr().out)] == ["shop.orders", "shop.missing"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pl*"], "defaults.history: no table has a history"),
        (["--table", "plain"], "tables.plain.history: write slices or stream"),
        (["--table", "other"], "other"),
        (["--skip-to", "3"], "--skip-to names a version of one table"),
        (["--skip-to", "3", "--table", "shop.orders", "--table", "shop.missing"], "--skip-to names a version of one"),
    ],
)
def test_what_can_not_be_meant_is_refused(
    place: Place, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["history", "--config", str(place.root / "mirror.yaml"), *arguments]) == 2
    assert told in capsys.readouterr().err


def test_only_tables_that_keep_one_have_a_history_and_without_any_there_is_no_job(place: Place) -> None:
    config = load_config(place.root / "mirror.yaml")
    definitions = build_definitions(config)
    graph = definitions.resolve_asset_graph()
    keys = graph.get_all_asset_keys() - {dg.AssetKey("mirror_status")}
    histories = {key.to_user_string() for key in keys if kind_of(key).value == "history"}
    assert histories == {"shop/orders_history", "shop/missing_history"}
    assert graph.get(dg.AssetKey(["shop", "orders_history"])).parent_keys == {dg.AssetKey(["shop", "orders_source"])}
    assert "history" in {schedule.name for schedule in definitions.schedules or []}
    text = (place.root / "mirror.yaml").read_text()
    (place.root / "mirror.yaml").write_text(
        text.replace("history: slices", "lag: {}").replace("history: stream", "lag: {}")
    )
    without = build_definitions(load_config(place.root / "mirror.yaml"))
    assert "history" not in {schedule.name for schedule in without.schedules or []}
    assert "history" not in {job.name for job in without.resolve_all_job_defs()}
