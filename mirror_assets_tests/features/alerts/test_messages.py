"""Messages: what people read about the problems of an incident."""

from __future__ import annotations

import pytest

from mirror_assets import docs_links
from mirror_assets.docs_links import DOCS_VARIABLE
from mirror_assets.features.alerts.alert_settings import AlertsConfig
from mirror_assets.features.alerts.messages import message_of
from mirror_assets.landing.problems import MessageKind, Severity, StoredProblem
from mirror_assets_tests.features.alerts.problems import problem

_AT = 1_767_225_600_000  # 2026-01-01 00:00 UTC
_PAGES = AlertsConfig(dagster_url="https://dagster.example/")


@pytest.fixture(autouse=True)
def docs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DOCS_VARIABLE, "https://docs.example")


def tables(count: int) -> list[StoredProblem]:
    return [
        problem(f"sales.t{n:02d}", incident="17-ab", code="log_gap", first_ms=_AT - 5_400_000, text="a gap.")
        for n in range(count)
    ]


def test_a_message_has_the_table_the_reason_the_next_step_and_links() -> None:
    made = message_of(MessageKind.BEGUN, tables(1), (), _AT, _PAGES)
    assert made.title == "sales.t00: fails"
    assert made.body.splitlines() == [
        "a gap.",
        "Next: rebuild it.",
        "Open in Dagster: https://dagster.example/runs/1%202",
        "What this means: https://docs.example/errors/#log_gap",
        "Incident 17-ab, error, log_gap",
    ]


def test_an_end_says_what_it_was_and_for_how_long() -> None:
    made = message_of(MessageKind.ENDED, tables(12), (), _AT, AlertsConfig())
    named = ", ".join(f"sales.t{n:02d}" for n in range(10))
    assert made.title == "Ended: 12 tables: fails"
    assert made.body.splitlines() == [
        "It was: a gap.",
        f"Which: {named}, and 2 more",
        "Since: 2025-12-31 22:30 UTC (1 h 30 min)",
        "What this means: https://docs.example/errors/#log_gap",
        "Incident 17-ab, error, log_gap",
    ]
    assert made.is_last


def test_an_end_names_the_problems_that_are_still_open() -> None:
    made = message_of(MessageKind.ENDED, tables(1), tables(2)[1:], _AT, AlertsConfig())
    assert "Still open: sales.t01: fails" in made.body
    assert not made.is_last


def test_several_problems_of_a_table_are_listed_the_worst_first() -> None:
    both = [problem("t", Severity.WARN, check="retention", text="two days are left."), problem("t")]
    made = message_of(MessageKind.BEGUN, both, (), _AT, AlertsConfig())
    assert made.title == "t: fails, and 1 more"
    assert made.severity is Severity.ERROR
    assert made.body.splitlines()[:3] == ["fails: it is late.", "Next: rebuild it.", "fails: two days are left."]


def test_a_reminder_and_what_got_worse_say_so() -> None:
    kinds = (MessageKind.REMINDER, MessageKind.WORSE)
    titles = [message_of(kind, tables(1), (), _AT, AlertsConfig()).title for kind in kinds]
    assert titles == ["Still: sales.t00: fails", "Worse: sales.t00: fails"]


def test_a_check_leads_to_its_row() -> None:
    made = message_of(MessageKind.BEGUN, [problem("t")], (), _AT, _PAGES)
    assert ("What this means", "https://docs.example/checks/#lag") in made.links


def test_only_web_addresses_are_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DOCS_VARIABLE)
    monkeypatch.setattr(docs_links, "_urls_of_package", dict)
    made = message_of(MessageKind.BEGUN, tables(1), (), _AT, _PAGES)
    assert "What this means: docs/errors.md#log_gap" in made.body
    assert [label for label, _ in made.links] == ["Open in Dagster"]
