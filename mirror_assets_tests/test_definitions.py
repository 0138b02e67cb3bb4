"""The definitions that Dagster loads."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.definitions import defs
from mirror_assets.orchestration.jobs import MIRROR_TABLE

_CONFIG = "landing_zone: {path: ./landing}\ntables:\n  shop.orders: {source: ./orders, keys: [id]}\n"


def _tables(definitions: dg.Definitions) -> list[str]:
    partitions = definitions.resolve_job_def(MIRROR_TABLE).partitions_def
    assert partitions is not None
    return list(partitions.get_partition_keys())


def test_definitions_are_built_once_for_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mirror.yaml"
    config.write_text(_CONFIG, encoding="utf-8")
    monkeypatch.setenv("MIRROR_CONFIG", str(config))
    built = defs()
    assert defs() is built
    config.write_text(_CONFIG.replace("orders", "items"), encoding="utf-8")
    assert _tables(defs()) == ["shop.items"]
    assert _tables(built) == ["shop.orders"]
