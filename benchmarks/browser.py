"""Pages in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

_LIMIT_SECONDS = 180
# Nothing is fetched from elsewhere, and a container has no sandbox for root.
_OPTIONS = ("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync")


class BrowserMissing(Exception):
    """There is no browser here, or nothing to drive it; the message says what to install."""


@dataclass(frozen=True)
class Tab:
    """A tab of the browser."""

    page: Page

    def seconds_to_open(self, url: str, *shows: str) -> tuple[float, ...]:
        """Seconds until the page shows what each selector names, in their order.

        Raises TimeoutError if one is not there in three minutes.
        """
        from playwright.sync_api import TimeoutError as TooSlow

        began, seconds = time.perf_counter(), list[float]()
        try:
            self.page.goto(url, wait_until="commit")
            for one in shows:
                self.page.locator(one).first.wait_for(timeout=_LIMIT_SECONDS * 1000)
                seconds.append(time.perf_counter() - began)
        except TooSlow:
            message = f"{url} did not show {', '.join(shows[len(seconds) :])} in {_LIMIT_SECONDS} s"
            raise TimeoutError(message) from None
        return tuple(seconds)


@contextmanager
def tab() -> Iterator[Tab]:
    """A tab whose browser ends with the context. Raises BrowserMissing."""
    program = shutil.which("chromium")
    if program is None or importlib.util.find_spec("playwright") is None:
        message = "apt-get install chromium, pip install playwright"
        raise BrowserMissing(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        options = [*_OPTIONS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        browser = driver.chromium.launch(executable_path=program, args=options)
        try:
            yield Tab(browser.new_page(viewport={"width": 1600, "height": 1000}))
        finally:
            browser.close()
