"""The results of staged slices' checks as Dagster shows them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import SettingError
from mirror_assets.feature import SliceCheck
from mirror_assets.orchestration.checks import require_known
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.staged_checks import STAGED_CHECKS, merged
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.pipeline.paper import TABLE, Paper


def test_every_blocking_check_is_an_asset_check() -> None:
    assert [check.name for check in STAGED_CHECKS] == list(BLOCKING_CHECKS)
    assert all(check.blocking and check.description for check in STAGED_CHECKS)


def test_a_warning_is_shown_and_blocks_nothing(tmp_path: Path) -> None:
    checked = [
        ("1.0-3", (CheckResult("row_conservation", metadata={"commits_proved": 3}),)),
        ("1.4-4", (CheckResult("row_conservation", metadata={"commits_proved": 1}, warning="odd statistics"),)),
    ]
    found = merged("row_conservation", checked)
    assert (found.passed, found.warning, found.metadata["commits_proved"]) == (True, "slice 1.4-4: odd statistics", 4)
    check = next(check for check in STAGED_CHECKS if check.name == "row_conservation")
    result = check.result(MirrorAssets(Paper(tmp_path).config), TABLE, found)
    assert (result.passed, result.severity) == (True, dg.AssetCheckSeverity.WARN)
    assert result.description == "slice 1.4-4: odd statistics"
    assert result.metadata["warning"] == dg.TextMetadataValue("slice 1.4-4: odd statistics")


def test_a_check_of_the_project_is_an_asset_check_of_its_tables(tmp_path: Path) -> None:
    (tmp_path / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\ntables:\n  orders: {source: ./orders, keys: [id]}\n"
        "  lines: {source: ./lines, keys: [id]}\n"
    )
    config = load_config(tmp_path / "mirror.yaml")
    ours = [
        SliceCheck("no_nulls", "No value is NULL.", lambda _: (), tables=("orders",)),
        SliceCheck("odd", "No row is odd.", lambda _: (), blocking=False),
    ]
    defs = build_definitions(config, features=ours)
    found = {
        (spec.asset_key.to_user_string(), spec.name): (spec.blocking, spec.description)
        for checks in defs.asset_checks or ()
        if isinstance(checks, dg.AssetChecksDefinition)
        for spec in checks.check_specs
        if spec.name in ("no_nulls", "odd")
    }
    assert found == {
        ("orders_changes", "no_nulls"): (True, "No value is NULL."),
        ("orders_changes", "odd"): (False, "No row is odd."),
        ("lines_changes", "odd"): (False, "No row is odd."),
    }
    assert require_known(config.with_features(ours), ["odd", "lag"]) == {"odd", "lag"}
    with pytest.raises(SettingError, match="no check is called 'odd'"):
        require_known(config, ["odd"])
