"""The checks of Direct Lake as Dagster runs them, on real tables, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from mirror_assets.definitions import build_definitions
from mirror_assets.features.direct_lake import guardrails
from mirror_assets.features.direct_lake.layout import Advice, AdviceTopic
from mirror_assets.features.direct_lake.with_dagster import direct_lake_checks
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets_tests.features.direct_lake.lakes import CHECKS, READ_DIRECTLY, TABLE, Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    made.write(files=2)
    return made


def test_a_source_without_settings_of_direct_lake_has_one_check(shop: Shop) -> None:
    source = asset_key(AssetKind.SOURCE, TABLE)
    keys = build_definitions(shop.config()).resolve_asset_graph().asset_check_keys
    of_source = {key.name for key in keys if key.asset_key == source}
    assert of_source == {"readable", "retention", "frames_safe"}, "VACUUM concerns the mirror also"


def test_checks_pass_and_have_numbers(shop: Shop) -> None:
    found = shop.checked(READ_DIRECTLY)
    assert set(found) == set(CHECKS)
    assert all(evaluation.passed for evaluation in found.values())
    assert found["guardrails"].metadata["files"].value == 2
    assert found["guardrails"].metadata["rows"].value == 6
    assert found["guardrails"].metadata["smallest_sku"].value == "F2"
    assert found["guardrails"].description == "shop.orders: it fits into F2"
    assert found["layout"].metadata["vorder_percent"].value == 0
    assert found["layout"].description == "no advice"


@pytest.mark.parametrize(
    ("days", "settings", "passed", "severity", "description"),
    [
        (1, "direct_lake: {frames: [1]}", True, "ERROR", "VACUUM deletes nothing that is needed until"),
        (6, "direct_lake: {frames: [1]}", False, "WARN", "in 24.0 hours; to keep files longer: ALTER TABLE delta."),
        (6, "direct_lake: {frames: [1]}\n    retention: {warn_seconds: null}", True, "ERROR", "is needed until"),
        (8, "direct_lake: {frames: [1]}", False, "ERROR", "VACUUM now would delete 2 files of frame v1; to keep"),
        (8, "direct_lake: {frames: [1, 2]}", False, "ERROR", "VACUUM now would delete 2 files of frame v1; to keep"),
        (8, "direct_lake: {frames: [2]}", True, "ERROR", "now it would delete 2 files"),
    ],
)
def test_frames_are_safe_from_vacuum(
    shop: Shop, days: float, settings: str, passed: bool, severity: str, description: str
) -> None:
    shop.overwrite()
    shop.age(days)
    found = shop.checked(settings)["frames_safe"]
    assert (found.passed, found.severity.value) == (passed, severity)
    assert description in (found.description or "")


def test_a_missing_file_of_a_frame_is_an_error(shop: Shop) -> None:
    gone = next((shop.root / "lake").glob("*.parquet"))
    shop.overwrite()
    gone.unlink()
    found = shop.checked("direct_lake: {frames: [1]}")["frames_safe"]
    assert not found.passed
    assert f"missing: 1 file of frame v1, for example {gone.name}" in (found.description or "")
    assert found.metadata["lost_files"].value == 1


def test_frames_are_read_from_exports(shop: Shop) -> None:
    shop.overwrite()
    shop.age(8)
    (shop.root / "tables.csv").write_text("ID,TableName,CurrentVersion\n7,Orders,1\n8,Other,2\n")
    found = shop.checked("direct_lake: {exports: [tables.csv]}")["frames_safe"]
    assert "of model table Orders v1" in (found.description or "")


@pytest.mark.parametrize(
    ("settings", "topic", "passed"),
    [
        ("direct_lake: {frames: [1]}", AdviceTopic.VORDER, True),
        ("direct_lake: {sku: F2}", AdviceTopic.VORDER, False),
        ("direct_lake: {frames: [1]}", AdviceTopic.VECTORS, False),
    ],
)
def test_only_the_lack_of_v_order_is_a_note_without_a_capacity(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, settings: str, topic: AdviceTopic, passed: bool
) -> None:
    monkeypatch.setattr(direct_lake_checks, "advice", lambda _: (Advice(topic, "found", "do this"),))
    found = shop.checked(settings)["layout"]
    assert (found.passed, found.description) == (passed, "found: do this")


@pytest.mark.parametrize(
    ("mode", "severity", "consequence"),
    [
        ("onelake", "ERROR", "framing fails"),
        ("sql_only", "ERROR", "queries fail"),
        ("sql", "WARN", "fall back to DirectQuery"),
    ],
)
def test_over_a_limit_the_mode_decides_the_consequence(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, mode: str, severity: str, consequence: str
) -> None:
    _limited(monkeypatch, files=1)
    found = shop.checked(f"direct_lake: {{sku: F2, mode: {mode}}}")["guardrails"]
    assert (found.passed, found.severity.value) == (False, severity)
    assert "shop.orders: 2 files, 1 are allowed on F2" in (found.description or "")
    assert consequence in (found.description or "")


def test_little_headroom_is_a_warning(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    _limited(monkeypatch, files=2)
    found = shop.checked("direct_lake: {sku: F2}")["guardrails"]
    assert (found.passed, found.severity.value) == (False, "WARN")
    assert "only 0.0 % are free" in (found.description or "")


def _limited(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    """Let the smallest capacity allow this few files."""
    smaller = (replace(guardrails.SKUS[0], files=files), *guardrails.SKUS[1:])
    monkeypatch.setattr(guardrails, "SKUS", smaller)


def test_layout_warns_with_advice(shop: Shop) -> None:
    shop.write(files=8)
    found = shop.checked(READ_DIRECTLY)["layout"]
    assert (found.passed, found.severity.value) == (False, "WARN")
    assert "10 of 10 files have less than 25 MB: compact them with OPTIMIZE" in (found.description or "")


def test_types_fail_only_with_a_capacity(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write(photo=pa.array([b"a", b"b", b"c"]), price=pa.array([0.1, 0.2, 0.3]))
    without, with_sku = shop.checked(READ_DIRECTLY)["types"], shop.checked("direct_lake: {sku: F64}")["types"]
    assert (without.passed, without.severity.value) == (False, "WARN")
    assert "price" not in (without.description or "")
    assert (with_sku.passed, with_sku.severity.value) == (False, "ERROR")
    assert "photo is binary" in (with_sku.description or "")
    assert "price may hold NaN" in (with_sku.description or "")


def test_a_mirror_has_predicted_guardrails_alone(shop: Shop) -> None:
    found = shop.checked(kind=AssetKind.MIRROR, names=("guardrails",))["guardrails"]
    assert found.passed
    assert found.description == "shop.orders (mirror, predicted): it fits into F2"
    assert found.metadata["files"].value == 1, "two, until Fabric compacts them"
    mirror = asset_key(AssetKind.MIRROR, TABLE)
    keys = build_definitions(shop.config()).resolve_asset_graph().asset_check_keys
    assert {key.name for key in keys if key.asset_key == mirror} == {"replicating", "reconciled", "guardrails"}
