"""What a person at the page sees when processes of Dagster are killed, and what comes back by itself.

The stories go on where those of the pages ended: with the services of systemd's units in `deploy/`, in the place of
`make dev`.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from benchmarks.processes import pythons_of
from mirror_assets.orchestration.check_jobs import CHECKS
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets_tests.ui.deployment import loaded_at, supervised, wait_until_reloaded
from mirror_assets_tests.ui.desk import Desk
from mirror_assets_tests.ui.shop import ORDERS

pytestmark = pytest.mark.ui
_CODE_SERVER, _DAEMON = "dagster api grpc", "daemon run"
_ENDS_WITHIN_SECONDS = 60


def _kill(desk: Desk, *words: str) -> None:
    for pids in [pythons_of(desk.home.mark, name) for name in words]:
        assert len(pids) == 1
        os.kill(pids[0], signal.SIGKILL)


def _sees_all(desk: Desk) -> None:
    """The boxes of the tables, the sensor, and what a check has found."""
    desk.open("/locations/mirror_assets/asset-groups/shop/lineage")
    desk.sees("orders_landing")
    desk.open("/automation")
    desk.sees("replicator")
    desk.open_asset(AssetKind.LANDING, ORDERS, "checks")
    desk.click_text("lag")
    desk.sees("commits_behind")


def test_a_killed_code_server_is_shown_as_failed_and_restarts_by_a_click(desk: Desk) -> None:
    assert desk.launch(CHECKS) == "SUCCESS"
    _kill(desk, _CODE_SERVER)
    desk.open("/deployment/locations")
    desk.sees("Failed")
    desk.picture("code_server_killed")
    desk.click("Reload", exact=True)
    _sees_all(desk)


def test_make_dev_ends_when_its_daemon_is_killed(desk: Desk) -> None:
    _kill(desk, _DAEMON)
    limit = time.monotonic() + _ENDS_WITHIN_SECONDS
    while pythons_of(desk.home.mark, "dg dev") and time.monotonic() < limit:
        time.sleep(0.5)
    told = (desk.home.folder / "dev.log").read_text(encoding="utf-8", errors="replace")
    assert "dagster-daemon process shut down unexpectedly" in told


def test_supervised_services_come_back_by_themselves(desk: Desk) -> None:
    with supervised(desk.home) as server:
        there = replace(desk, server=server)
        _sees_all(there)
        before = loaded_at(server)
        _kill(there, _CODE_SERVER, _DAEMON)
        wait_until_reloaded(server, before)
        assert there.launch(CHECKS) == "SUCCESS"
        _sees_all(there)
