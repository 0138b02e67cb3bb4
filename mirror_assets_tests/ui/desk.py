"""What a person has in front of them: the tab of a browser, and the lake behind it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from benchmarks.dev_server import DagsterHome, DevServer
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration.mirror_assets import partitions_name
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets_tests.ui.shop import Shop

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PICTURES = "MIRROR_PICTURES"
_RUN_SECONDS = 240
_PAGE_SECONDS = 60
_JOBS = "/locations/mirror_assets/jobs"
_RUNS = "{ runsOrError(limit: 1) { ... on Runs { results { runId status stepStats { stepKey } } } } }"
_ENDED = ("SUCCESS", "FAILURE", "CANCELED")


@dataclass(frozen=True)
class Desk:
    """The pages of one Dagster deployment, and the shop that it mirrors."""

    shop: Shop
    home: DagsterHome
    server: DevServer
    page: Page

    def open(self, path: str) -> None:
        """Open a page by its path."""
        self.page.goto(f"{self.server.url}{path}", wait_until="commit")

    def open_asset(self, kind: AssetKind, table: TableName, view: str = "overview") -> None:
        """Open a view of an asset's page: overview, partitions, events, checks, lineage."""
        self.open(f"/assets/{'/'.join(asset_key(kind, table).path)}?view={view}")

    def sees(self, text: str) -> Locator:
        """Wait until the page shows the text, which may be a part of a line; return where. Raises TimeoutError."""
        found = self.page.get_by_text(re.compile(_pattern(text))).first
        found.wait_for(timeout=_PAGE_SECONDS * 1000)
        return found

    def click(self, name: str, *, exact: bool = False) -> None:
        """Click the button, or the link, whose name begins so, or is that, once it is enabled."""
        shown = re.compile(rf"^\s*{_pattern(name)}" + (r"\s*$" if exact else ""))
        found = self.page.locator("button:visible, a:visible").filter(has_text=shown)
        found.first.click(timeout=_PAGE_SECONDS * 1000)

    def click_text(self, text: str) -> None:
        """Click what shows exactly this text."""
        self.page.get_by_text(text, exact=True).first.click(timeout=_PAGE_SECONDS * 1000)

    def launch(self, job: str, config: str = "", partition: str = "") -> str:
        """Launch a job from its launchpad; return the status of its run, whose page is then open. Raises as `run`."""
        return self.run(lambda: self.click_launch(job, config, partition))[1]

    def click_launch(self, job: str, config: str = "", partition: str = "") -> None:
        """Launch a job, or its partition, from its launchpad."""
        self.open(f"{_JOBS}/{job}/playground")
        self.sees("Launch Run")
        if partition:
            self.page.get_by_placeholder("Partition").fill(partition, timeout=_PAGE_SECONDS * 1000)
            self.click_text(partition)
        if config:
            self.type(config)
        self.click("Launch Run")

    def type(self, text: str) -> None:
        """Type into the launchpad in the place of what is there."""
        self.page.locator(".CodeMirror").first.click(timeout=_PAGE_SECONDS * 1000)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def picture(self, name: str) -> None:
        """Keep a picture of the page in the folder that MIRROR_PICTURES names, if it names one."""
        folder = os.environ.get(PICTURES)
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.wait_for_timeout(1500)  # what is drawn last: figures of boxes
            for _ in range(_PAGE_SECONDS):
                if not self.page.get_by_text("Loading…").count():
                    break
                self.page.wait_for_timeout(1000)
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))

    def register(self, *keys: SliceKey) -> None:
        """Register slices of the orders, as a plan does."""
        with dg.DagsterInstance.from_config(str(self.home.folder)) as instance:
            instance.add_dynamic_partitions(
                partitions_name(asset_key(AssetKind.LANDING, TableName("shop", "orders"))), [str(key) for key in keys]
            )

    def run(self, launch: Callable[[], None], meanwhile: Callable[[], None] | None = None) -> tuple[str, str]:
        """Launch a run by clicking; return its id and its status when it has ended.

        `meanwhile` is called when the run has started, and must find it going on. Raises TimeoutError.
        """
        before = self._newest()[0]
        launch()
        if meanwhile is not None:
            self._wait_for_run(before, ("STARTED",))
            meanwhile()
        return self._wait_for_run(before, _ENDED)

    def _wait_for_run(self, before: str, statuses: Collection[str]) -> tuple[str, str]:
        """Wait until the run that came behind that of the id `before` has one of the statuses."""
        known, status, deadline = "", "", time.monotonic() + _RUN_SECONDS
        while time.monotonic() < deadline:
            known, status = self._newest()
            if known != before and status in statuses:
                return known, status
            time.sleep(0.5)
        message = f"run {known} is {status} after {_RUN_SECONDS} s"
        raise TimeoutError(message)

    def steps(self) -> list[str]:
        """The steps of the newest run."""
        (newest,) = self.server.graphql(_RUNS)["runsOrError"]["results"]
        return [step["stepKey"] for step in newest["stepStats"]]

    def _newest(self) -> tuple[str, str]:
        found = self.server.graphql(_RUNS)["runsOrError"]["results"]
        return (found[0]["runId"], found[0]["status"]) if found else ("", "")


def _pattern(text: str) -> str:
    """The text as a pattern that JavaScript understands, too: it knows no escaped space."""
    return re.escape(text).replace("\\ ", " ")
