"""One set of Dagster's processes, and one browser, for all stories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.browser import BrowserMissing, tab
from benchmarks.dev_server import Storage, dagster_home, dev_server
from mirror_assets_tests.ui.desk import Desk
from mirror_assets_tests.ui.shop import Shop


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The demo's processes without running sensors, on a lake of two tables, and a browser's tab."""
    folder = tmp_path_factory.mktemp("ui")
    shop = Shop(folder / "shop")
    shop.make()
    try:
        with (
            tab() as opened,
            dagster_home(folder / "home", shop.config, Storage.SQLITE) as home,
            dev_server(home, sensors=False) as server,
        ):
            yield Desk(shop, home, server, opened.page)
    except BrowserMissing as missing:
        pytest.skip(f"no browser to look with: {missing}")
