"""A mirror in someone's project, by its commands and with its daemon."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import dagster as dg
import pytest

from benchmarks.postgres import free_port
from mirror_assets_tests.components.project import OwnProject

_WITHIN_SECONDS = 240.0


@pytest.fixture
def project(tmp_path: Path) -> OwnProject:
    made = OwnProject(tmp_path)
    made.create()
    made.dg("scaffold", "defs", "mirror_assets.MirrorComponent", "fabric")
    return made


@pytest.mark.timeout(600)
def test_dg_scaffolds_checks_and_lists_a_mirror(project: OwnProject) -> None:
    project.configure()
    project.dg("check", "defs")
    assets = {asset["asset_key"]: asset for asset in json.loads(project.dg("list", "defs", "--json"))["assets"]}
    assert {"orders", "report", "fabric/orders", "fabric/orders_changes", "fabric/orders_landing"} <= assets.keys()
    assert assets["fabric/orders_changes"]["dependency_keys"] == ["orders"]


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_an_eager_asset_follows_what_an_own_asset_writes(project: OwnProject, tmp_path: Path) -> None:
    project.configure()
    program = project.dev(tmp_path / "dev.log", free_port())
    try:
        with dg.DagsterInstance.from_config(str(project.home)) as instance:
            for rows in (1, 2):
                project.dg("launch", "--assets", "orders")
                _until(instance, rows)
    finally:
        os.killpg(program.pid, signal.SIGTERM)
        program.wait(60)


def _until(instance: dg.DagsterInstance, rows: int) -> None:
    """Wait until the report has read this many rows."""
    ends = time.monotonic() + _WITHIN_SECONDS
    found = None
    while time.monotonic() < ends:
        event = instance.get_latest_materialization_event(dg.AssetKey("report"))
        found = event.asset_materialization.metadata["rows"].value if event and event.asset_materialization else None
        if found == rows:
            return
        time.sleep(1)
    pytest.fail(f"the report has {found} rows, and not {rows}")
