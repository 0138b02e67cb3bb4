"""The definitions that Dagster loads."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.definitions import defs

_CONFIG = "landing_zone: {path: ./landing}\ntables:\n  shop.orders: {source: ./orders, keys: [id]}\n"


def _job_names(definitions: dg.Definitions) -> set[str]:
    return {job.name for job in definitions.resolve_all_job_defs()}


def test_definitions_are_built_once_for_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mirror.yaml"
    config.write_text(_CONFIG, encoding="utf-8")
    monkeypatch.setenv("MIRROR_CONFIG", str(config))
    built = defs()
    assert defs() is built
    config.write_text(_CONFIG.replace("orders", "items"), encoding="utf-8")
    assert "table_shop__items" in _job_names(defs())
    assert "table_shop__orders" in _job_names(built)
