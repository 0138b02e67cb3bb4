"""`mirror-assets drop`: asks, or is told not to; drops orphans, too; a run after it begins the table anew."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets.cli.execute import orphan_lines
from mirror_assets.config.load import load_config
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage

SETTINGS = (
    "landing_zone: {{path: ./landing}}\nmirror: {{path: ./mirror}}\ntables: {{{table}: {{source: ./t, keys: [a]}}}}\n"
)


@pytest.fixture
def zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    """A landing zone where the table has landed, and its mirror; mirror.yaml has another table only."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror.yaml").write_text(SETTINGS.format(table="other"))
    store = LocalStore(tmp_path / "landing")
    drive(publish(TABLE, stage(store, position_of(store), last=7), CHECKS), store)
    LocalReplicator(store, tmp_path / "mirror").poll()
    return store


def answers(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let somebody at a terminal type this."""
    typed = io.StringIO(text)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_an_orphan_goes_from_zone_and_mirror(
    zone: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drop", "shop.orders", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"table": "shop.orders", "dropped": True}]
    assert zone.list(TABLE.folder) == zone.list(TABLE.scratch) == []
    assert not (tmp_path / "mirror" / "shop" / "orders").exists()
    assert main(["drop", "shop.orders"]) == 0
    assert "there is nothing to drop" in capsys.readouterr().err


def test_drop_without_a_terminal_requires_yes(zone: LocalStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drop", "shop.orders"]) == 2
    told = capsys.readouterr().err
    assert "shop.orders: its landing files" in told
    assert "add --yes" in told
    assert zone.list(TABLE.folder)


@pytest.mark.parametrize(
    ("typed", "code", "gone"), [("shop.orders\n", 0, True), ("yes\n", 1, False), ("\n", 1, False), ("", 1, False)]
)
def test_at_a_terminal_the_name_has_to_be_typed(
    zone: LocalStore, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, gone: bool
) -> None:
    answers(monkeypatch, typed)
    assert main(["drop", "shop.orders"]) == code
    assert (zone.list(TABLE.folder) == []) is gone


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("name", ["shop.order", "../landing", "_rebuild"])
def test_a_name_that_nothing_has_exits_with_2(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["drop", name, "--yes"]) == 2
    assert name in capsys.readouterr().err


def test_a_table_that_is_still_configured_is_named_so(
    zone: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mirror.yaml").write_text(SETTINGS.format(table="shop.orders"))
    assert main(["drop", "shop.orders", "--yes"]) == 0
    assert "the next run loads it again" in capsys.readouterr().err
    assert zone.list(TABLE.folder) == []


def test_status_reports_orphans(zone: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The orphans are reported although the source of the other table is missing."""
    assert zone.list(TABLE.folder)
    main(["status"])
    assert "`mirror-assets drop shop.orders`" in capsys.readouterr().err
    (line,) = orphan_lines(load_config())
    assert (line.asset, line.check, line.is_error) == ("shop/orders_landing", "orphans", False)
    (tmp_path / "mirror.yaml").write_text(SETTINGS.format(table="shop.orders"))
    main(["status"])
    assert "drop" not in capsys.readouterr().err


def test_a_run_after_it_begins_another_epoch_with_a_snapshot(mirrored: Lab) -> None:
    config = ["--config", str(mirrored.config_file)]
    mirrored.replicator.poll()
    assert main(["drop", "shop.orders", "--yes", *config]) == 0
    assert mirrored.files == []
    assert main(["run", *config]) == 0
    manifest = mirrored.context.manifest()
    assert manifest is not None
    assert (manifest.epoch, manifest.kind.value, manifest.covered) == (3, "snapshot", 5)
    assert main(["replicate", *config]) == 0
    assert main(["reconcile", *config]) == 0
