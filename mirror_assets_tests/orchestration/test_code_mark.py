"""What a run ends for: other settings, tables, code or credentials, and not another load of the same."""

from __future__ import annotations

import importlib
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.feature import SliceCheck
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration import code_mark as module
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.code_mark import code_mark
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets_tests.orchestration.mirrors import assets_of

ORDERS, LINES = TableName(None, "orders"), TableName(None, "lines")


def test_each_load_of_the_same_definitions_has_the_same_mark() -> None:
    assert code_mark(assets_of([ORDERS])) == code_mark(assets_of([ORDERS]))


def test_other_tables_settings_and_assets_are_other_definitions() -> None:
    marks = {code_mark(assets_of(tables)) for tables in ([ORDERS], [LINES], [ORDERS, LINES])}
    marks.add(code_mark(assets_of([ORDERS], "keys: [id], where: 'id > 3'")))

    class Elsewhere(MirrorAssets):
        def key(self, kind: AssetKind, table: TableName) -> dg.AssetKey:
            return super().key(kind, table).with_prefix("elsewhere")

    marks.add(code_mark(Elsewhere(assets_of([ORDERS]).config)))
    assert len(marks) == 5


def test_other_credentials_are_other_definitions_and_other_variables_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assets = assets_of([ORDERS])
    loaded = code_mark(assets)
    monkeypatch.setenv("HOSTNAME", "another")
    assert code_mark(assets) == loaded
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "another")
    assert code_mark(assets) != loaded


def test_a_variable_that_a_setting_names_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assets = assets_of([TableName(None, "SHOP_TOKEN")])
    loaded = code_mark(assets)
    monkeypatch.setenv("SHOP_TOKEN", "another")
    assert code_mark(assets) != loaded


def test_other_code_of_a_check_of_the_project_is_another_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    digests = set[str]()
    for text in ("", "# longer"):
        (tmp_path / "checks_of_a_project.py").write_text(f"def none(_):\n    return ()\n{text}")
        problems = importlib.import_module("checks_of_a_project").none
        assets = assets_of([ORDERS])
        config = assets.config.with_features([SliceCheck("ours", "One of ours.", problems)])
        module._code.cache_clear()
        digests |= {code_mark(assets.with_config(config))}
    assert len(digests) == 2


def test_other_code_is_another_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PACKAGE", tmp_path)
    digests = set[str]()
    for text in ("1", "12"):
        (tmp_path / "a.py").write_text(text)
        digests |= {module._code.__wrapped__(())}
    assert len(digests) == 2
