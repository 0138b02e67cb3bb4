"""The documentation site builds without a warning, and each link in a message leads to a section of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from email.message import Message
from functools import cache
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import dagster as dg
import pytest

from mirror_assets import docs_links
from mirror_assets.docs_links import DOCS_VARIABLE, check_link, error_link
from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.features.alerts.alert_settings import AlertsConfig
from mirror_assets.features.alerts.messages import links
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.checks import CHECK_NAMES, CHECKS
from mirror_assets.orchestration.event_metadata import DOCS_URL
from mirror_assets.orchestration.runs import failure
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.errors_page import error_codes
from mirror_assets_tests.features.alerts.problems import problem
from mirror_assets_tests.orchestration.mirrors import assets_of
from mirror_assets_tests.pages import ROOT, anchors

_TABLE = TableName("sales", "orders")
_ASSETS = assets_of([_TABLE])
_SITE = "https://docs.example/mirror/"
_LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"?([^\s\">]+)")
_CODES = [code.value for code in error_codes()]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a broken link, anchor or picture is a warning, which fails the build."""
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: MkDocs then doesn't count warnings.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which the site is hosted."""
    monkeypatch.setenv(DOCS_VARIABLE, _SITE)


@cache
def _sections(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\bid=\"([^\"]+)\"", page.read_text(encoding="utf-8")))


def _has_section(site: Path, link: str) -> bool:
    """Return whether a server of the folder shows a page at this address that has the section."""
    address, section = urldefrag(link)
    assert address.startswith(_SITE), link
    return section in _sections(site / address.removeprefix(_SITE) / "index.html")


@pytest.mark.usefixtures("hosted")
def test_the_link_of_each_failure_leads_to_its_section(site: Path) -> None:
    for code in error_codes():
        link = failure(StopError("it failed.", "fix it.", code=code)).metadata[DOCS_URL]
        assert link == dg.MetadataValue.url(error_link(code.value))
        assert _has_section(site, str(link.value)), code


@pytest.mark.usefixtures("hosted")
def test_the_link_of_each_failed_check_leads_to_its_section(site: Path) -> None:
    kinds = _ASSETS.kinds(_ASSETS.config.table(_TABLE))
    for check in (one for one in CHECKS if one.asset in kinds):
        metadata = check.result(_ASSETS, _TABLE, CheckResult(check.name, ("wrong",))).metadata
        assert metadata[DOCS_URL] == dg.MetadataValue.url(check_link(check.name))
        assert _has_section(site, check_link(check.name)), check.name


@pytest.mark.usefixtures("hosted")
def test_a_check_that_failed_because_of_an_error_links_to_its_code() -> None:
    found = CheckResult(CHECKS[0].name, ("it could not be read",), {"code": "log_gap"})
    metadata = CHECKS[0].result(_ASSETS, _TABLE, found).metadata
    assert metadata[DOCS_URL] == dg.MetadataValue.url(f"{_SITE}errors/#log_gap")
    assert DOCS_URL not in CHECKS[0].result(_ASSETS, _TABLE, CheckResult(CHECKS[0].name)).metadata


@pytest.mark.usefixtures("hosted")
@pytest.mark.parametrize("by_code", [True, False])
def test_the_link_of_each_alert_leads_to_its_section(site: Path, *, by_code: bool) -> None:
    for name in _CODES if by_code else (*CHECK_NAMES, "discover", "name_taken", "overdue", "reachable"):
        one = problem("t", code=name) if by_code else problem("t", check=name)
        ((_, link),) = links(one, AlertsConfig())
        assert link == (error_link(name) if by_code else check_link(name))
        assert _has_section(site, link), name


def test_the_site_loads_nothing_from_other_servers_and_its_pictures_exist(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        for address in _LOADED.findall(page.read_text(encoding="utf-8")):
            assert not urlsplit(address).netloc, f"{page}: {address}"
            # The page of missing addresses is shown at any depth, so its addresses are absolute.
            file = site / urljoin(f"/{page.relative_to(site)}", address.partition("?")[0]).lstrip("/")
            assert file.exists(), f"{page}: {address}"
    assert not [style for style in site.rglob("*.css") if re.search(r"url\(\W?https?:", style.read_text("utf-8"))]


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Message]:
    """The metadata of a package, to which a test adds URLs."""
    found = Message()
    monkeypatch.setattr(docs_links, "metadata", lambda _: found)
    monkeypatch.delenv(DOCS_VARIABLE, raising=False)
    docs_links._urls_of_package.cache_clear()
    yield found
    docs_links._urls_of_package.cache_clear()


def test_without_a_site_a_link_is_a_page_in_the_repository(urls: Message) -> None:
    urls["Project-URL"] = "Repository, https://code.example/mirror"
    for link in (*map(error_link, _CODES), *map(check_link, CHECK_NAMES)):
        path, _, section = link.removeprefix("https://code.example/mirror/blob/main/").partition("#")
        assert section in anchors(ROOT / path), link
    shown = failure(StopError("it failed.", "fix it.", code=ErrorCode.LOG_GAP)).metadata[DOCS_URL]
    assert shown == dg.MetadataValue.url("https://code.example/mirror/blob/main/docs/errors.md#log_gap")


@pytest.mark.usefixtures("urls")
def test_a_package_without_urls_names_the_path() -> None:
    link = failure(StopError("it failed.", "fix it.", code=ErrorCode.LOG_GAP)).metadata[DOCS_URL]
    assert link == dg.MetadataValue.text("docs/errors.md#log_gap")


def test_the_package_names_the_site_unless_the_environment_does(urls: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    urls["Project-URL"] = "Repository, https://code.example/mirror"
    urls["Project-URL"] = "Documentation, https://package.example/docs"
    assert error_link("log_gap") == "https://package.example/docs/errors/#log_gap"
    monkeypatch.setenv(DOCS_VARIABLE, _SITE)
    assert check_link("lag") == f"{_SITE}checks/#lag"
