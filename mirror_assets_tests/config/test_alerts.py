"""`alerts` in mirror.yaml: what is read, and what each mistake says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config import Config, ConfigInvalid
from mirror_assets.config.alerts import Severity, Topic
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


def receiver(settings: str) -> str:
    return f"{{receivers: {{one: {{{settings}}}}}}}"


def test_nobody_is_told_by_default() -> None:
    assert config("{}").alerts.receivers == {}


def test_receivers_are_read() -> None:
    read = config(
        "{receivers: {pager: {type: pagerduty, key_variable: PD_KEY, severity: error, topics: [held, run]},"
        " team: {type: slack, url_variable: SLACK_URL, quiet_hours: {from: 22:00, to: 07:00, zone: Europe/Berlin}}}}"
    ).alerts.receivers
    assert read["pager"].severity is Severity.ERROR
    assert read["pager"].topics == (Topic.HELD, Topic.RUN)
    hours = read["team"].quiet_hours
    assert hours is not None
    assert (hours.begin, hours.end) == ("22:00", "07:00"), "YAML reads 22:00 as a number"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("type: pigeon", "one.type: expected 'webhook', 'slack', 'teams', 'pagerduty' or 'email'"),
        ("type: slack", "`type: slack` needs `url_variable`"),
        ("type: slack, url_variable: 'https://hooks.slack.com/services/T0/B0/x'", "and not the secret itself"),
        ("type: pagerduty", "`type: pagerduty` needs `key_variable`"),
        ("type: email, host: mail.acme.example", "`type: email` needs `host`, `sender` and `to`"),
        ("type: email, host: h, sender: a@b.c, to: [d@e.f], user: me", "`user` and `password_variable` go together"),
        (
            "type: email, host: h, sender: a@b.c, to: [d@e.f], user: me, password_variable: P, security: none",
            "over an encrypted connection only",
        ),
        ("type: slack, url_variable: U, host: h", "are settings of `type: email`"),
        ("type: slack, url_variable: U, quiet_hours: {from: late, to: 07:00}", "expected a time of day"),
        ("type: slack, url_variable: U, quiet_hours: {from: 07:00, to: 07:00}", "nothing would ever be told"),
        ("type: slack, url_variable: U, quiet_hours: {from: 22:00, to: 07:00, zone: Berlin}", "is no time zone"),
        ("type: slack, url_variable: U, quiet_hours: {from: 22:00, to: 07:00, zone: Europe}", "is no time zone"),
        ("type: email, host: h, sender: a@b.c, to: ['Doe, John <j@b.c>']", "expected one address"),
        ("type: email, host: h, sender: a@b.c, to: ['d@e.f, g@h.i']", "expected one address"),
        ('type: email, host: h, to: [d@e.f], sender: "a@b.c\\nBcc: x@y.z"', "expected one address"),
        ("type: email, host: h, sender: mirror, to: [d@e.f]", "expected one address"),
        ("type: slack, url_variable: U, topic: [run]", "unknown setting; did you mean 'topics'?"),
    ],
)
def test_a_mistake_says_what_to_write(settings: str, says: str) -> None:
    assert says in mistake(receiver(settings))


def test_an_address_has_no_credentials() -> None:
    assert "without credentials" in mistake("{dagster_url: 'https://me:secret@dagster.example'}")


def test_the_example_of_the_page_is_read() -> None:
    example = (DOCS / "alerts.md").read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    text = f"landing_zone: {{path: ./landing}}\n{example}\ntables: {{orders: {{source: ./orders, keys: [id]}}}}\n"
    alerts = parse_config(text.encode(), Path("mirror.yaml"), {}).alerts
    assert [receiver.type.value for receiver in alerts.receivers.values()] == ["pagerduty", "slack", "email"]
