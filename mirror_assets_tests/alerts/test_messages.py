"""Messages: what people read of an incident."""

from __future__ import annotations

import pytest

from mirror_assets import docs_links
from mirror_assets.alerts.conditions import Condition, ConditionKind
from mirror_assets.alerts.incidents import Event, Incident
from mirror_assets.alerts.messages import message_of
from mirror_assets.config.alerts import AlertsConfig
from mirror_assets.docs_links import DOCS_VARIABLE

_AT = 1_767_225_600_000  # 2026-01-01 00:00 UTC
_PAGES = AlertsConfig(dagster_url="https://dagster.example/")


@pytest.fixture(autouse=True)
def docs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DOCS_VARIABLE, "https://docs.example")


def incident(
    count: int, kind: ConditionKind = ConditionKind.TABLE, code: str | None = "log_gap", check: str | None = None
) -> Incident:
    members = tuple(
        Condition(
            f"t{n}",
            kind,
            f"sales.t{n:02d}",
            "can't be mirrored",
            "a gap. Next: rebuild it.",
            code=code,
            check=check,
            page="runs/1 2",
        )
        for n in range(count)
    )
    subjects = tuple(one.subject for one in members)
    return Incident(
        id="17-ab", cause="c", example=members[0], members=members, subjects=subjects, began_ms=_AT - 5_400_000
    )


def test_a_message_has_the_table_the_reason_the_next_step_and_links() -> None:
    made = message_of(Event.BEGUN, incident(1), _AT, _PAGES)
    assert made.title == "sales.t00: can't be mirrored"
    assert made.body.splitlines() == [
        "a gap.",
        "Next: rebuild it.",
        "Open in Dagster: https://dagster.example/runs/1%202",
        "What this means: https://docs.example/errors/#log_gap",
        "Incident 17-ab, error, log_gap",
    ]


def test_an_end_says_what_it_was_and_for_how_long() -> None:
    made = message_of(Event.ENDED, incident(12), _AT, AlertsConfig())
    named = ", ".join(f"sales.t{n:02d}" for n in range(10))
    assert made.title == "Ended: 12 tables: can't be mirrored"
    assert made.body.splitlines() == [
        "It was: a gap.",
        f"Which: {named}, and 2 more",
        "Since: 2025-12-31 22:30 UTC (1 h 30 min)",
        "What this means: https://docs.example/errors/#log_gap",
        "Incident 17-ab, error, log_gap",
    ]


def test_a_reminder_and_what_got_worse_say_so() -> None:
    titles = [message_of(event, incident(1), _AT, AlertsConfig()).title for event in (Event.REMINDER, Event.WORSE)]
    assert titles == ["Still: sales.t00: can't be mirrored", "Worse: sales.t00: can't be mirrored"]


def test_a_check_leads_to_its_row() -> None:
    made = message_of(Event.BEGUN, incident(2, ConditionKind.CHECK, None, "lag"), _AT, _PAGES)
    assert ("What this means", "https://docs.example/checks/#lag") in made.links
    jobs = message_of(Event.BEGUN, incident(2, ConditionKind.RUN, None), _AT, _PAGES)
    assert jobs.title.startswith("2 jobs")


def test_only_web_addresses_are_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DOCS_VARIABLE)
    monkeypatch.setattr(docs_links, "_site_of_package", lambda: "")
    made = message_of(Event.BEGUN, incident(1), _AT, _PAGES)
    assert "What this means: docs/errors.md#log_gap" in made.body
    assert [label for label, _ in made.links] == ["Open in Dagster"]
