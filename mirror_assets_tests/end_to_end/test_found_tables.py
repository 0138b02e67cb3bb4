"""Tables that somebody writes while `make dev` runs: Dagster mirrors and shows them, and nobody does anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.dev_server import DevServer, Storage, dagster_home, dev_server
from mirror_assets_tests import figures
from mirror_assets_tests.worlds.disk_lake import DiskLake

_PROOF = "found tables under make dev"
_WITHIN_SECONDS = 300.0
_ASSETS = "{ assetNodes { assetKey { path } } }"
_RULE = '{from: {store: lake, path: "*/*"}, schema: "{folder}", keys: {default: [id]}}'
_MORE = "mirror: {path: ./mirror}\n"


def _seconds_until(happened: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not happened():
        assert time.monotonic() - began < _WITHIN_SECONDS
        time.sleep(0.5)
    return time.monotonic() - began


def _zones(server: DevServer) -> set[str]:
    """The tables whose landing zone is an asset in the webserver."""
    keys = [node["assetKey"]["path"] for node in server.graphql(_ASSETS)["assetNodes"]]
    return {path[-1].removesuffix("_landing") for path in keys if path[-1].endswith("_landing")}


@pytest.mark.soak
def test_tables_come_and_go_under_make_dev(tmp_path: Path) -> None:
    lake = DiskLake(tmp_path)
    lake.add("sales/orders")
    lake.configure(_RULE, _MORE)

    def landed(table: str) -> bool:
        return (tmp_path / "landing/sales.schema" / table / "_mirror.json").exists()

    with dagster_home(tmp_path / "home", tmp_path / "mirror.yaml", Storage.SQLITE) as home, dev_server(home) as server:
        _seconds_until(lambda: landed("orders"))
        assert _zones(server) == {"orders"}
        lake.add("sales/lines")
        shown = _seconds_until(lambda: _zones(server) == {"orders", "lines"})
        figures.report(_PROOF, "seconds until it is shown", round(shown), "a new table")
        behind = _seconds_until(lambda: landed("lines"))
        figures.report(_PROOF, "until it has landed", round(shown + behind), "a new table")
        (lake.lake / "sales/orders").rename(tmp_path / "away")
        gone = _seconds_until(lambda: _zones(server) == {"lines"})
        figures.report(_PROOF, "seconds until it is shown no more", round(gone), "a table that is gone")
        assert landed("orders"), "what has landed stays"
