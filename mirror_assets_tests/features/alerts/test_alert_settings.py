"""`alerts` in mirror.yaml: the settings, and the message of each mistake."""

from __future__ import annotations

import pytest

from mirror_assets.features.alerts.alert_settings import AlertSettings
from mirror_assets.landing.problems import Severity
from mirror_assets_tests.config.reading import mistake, read
from mirror_assets_tests.pages import DOCS

_REST = "landing_zone: {path: ./landing}\ntables: {orders: {source: ./orders, keys: [id]}}\n"


def test_receivers_are_read_and_there_are_none_by_default() -> None:
    assert AlertSettings.of(read(_REST)).alerts.receivers == {}
    written = "alerts: {receivers: {pager: {url_variable: PD, severity: error}, team: {url_variable: T}}}"
    receivers = AlertSettings.of(read(_REST + written)).alerts.receivers
    assert [(name, one.url_variable, one.severity) for name, one in receivers.items()] == [
        ("pager", "PD", Severity.ERROR),
        ("team", "T", Severity.WARN),
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("receivers: {one: {severity: error}}", "one.url_variable: this setting is missing"),
        ("receivers: {one: {url_variable: 'https://hooks.example/secret'}}", "and not the secret itself"),
        ("receivers: {one: {url_variable: U, severity: bad}}", "expected 'info', 'warn' or 'error'"),
        ("receivers: {one: {url_variable: U, type: slack}}", "unknown setting"),
        ("receivers: {one: {url_variable: U, sevrity: warn}}", "unknown setting; did you mean 'severity'?"),
        ("dagster_url: 'https://me:secret@dagster.example'", "without credentials"),
    ],
)
def test_a_mistake_says_what_to_write(settings: str, message: str) -> None:
    found = mistake(f"{_REST}alerts: {{{settings}}}\n")
    assert message in found
    assert "example" not in found.replace("such as https://dagster.acme.example", ""), "it may be a secret"


def test_the_example_of_the_page_is_read() -> None:
    example = (DOCS / "alerts.md").read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    assert list(AlertSettings.of(read(_REST + example)).alerts.receivers) == ["oncall", "team", "data"]
