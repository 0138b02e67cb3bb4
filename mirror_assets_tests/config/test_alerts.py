"""`alerts` in mirror.yaml: what is read, and what each mistake says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config import Config, ConfigInvalid
from mirror_assets.config.alerts import Severity
from mirror_assets.config.load import parse_config
from mirror_assets_tests.pages import DOCS


def config(alerts: str) -> Config:
    text = (
        f"landing_zone: {{path: ./landing}}\nalerts: {alerts}\ntables: {{orders: {{source: ./orders, keys: [id]}}}}\n"
    )
    return parse_config(text.encode(), Path("mirror.yaml"), {})


def mistake(alerts: str) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        config(alerts)
    assert len(caught.value.problems) == 1, caught.value
    return f"{caught.value.problems[0].path}: {caught.value.problems[0].message}"


def test_there_are_no_receivers_by_default() -> None:
    assert config("{}").alerts.receivers == {}


def test_receivers_are_read() -> None:
    read = config("{receivers: {pager: {url_variable: PD, severity: error}, team: {url_variable: T}}}").alerts.receivers
    assert [(name, one.url_variable, one.severity) for name, one in read.items()] == [
        ("pager", "PD", Severity.ERROR),
        ("team", "T", Severity.WARN),
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("severity: error", "one.url_variable: this setting is missing"),
        ("url_variable: 'https://hooks.slack.com/services/T0/B0/x'", "and not the secret itself"),
        ("url_variable: U, severity: bad", "expected 'info', 'warn' or 'error'"),
        ("url_variable: U, type: slack", "unknown setting"),
        ("url_variable: U, sevrity: warn", "unknown setting; did you mean 'severity'?"),
    ],
)
def test_a_mistake_says_what_to_write(settings: str, says: str) -> None:
    assert says in mistake(f"{{receivers: {{one: {{{settings}}}}}}}")


def test_an_address_has_no_credentials() -> None:
    assert "without credentials" in mistake("{dagster_url: 'https://me:secret@dagster.example'}")


def test_the_example_of_the_page_is_read() -> None:
    example = (DOCS / "alerts.md").read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    text = f"landing_zone: {{path: ./landing}}\n{example}\ntables: {{orders: {{source: ./orders, keys: [id]}}}}\n"
    alerts = parse_config(text.encode(), Path("mirror.yaml"), {}).alerts
    assert list(alerts.receivers) == ["oncall", "team", "data"]
