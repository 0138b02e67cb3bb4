"""Each form of a message, compared with the files in golden/; UPDATE_GOLDEN=1 writes them anew, to be read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message, shown_duration
from mirror_assets.alerts.render.mail import mail_of
from mirror_assets.alerts.render.pagerduty import pagerduty_bodies
from mirror_assets.alerts.render.plain import WebhookBody, webhook_body
from mirror_assets.alerts.render.slack import slack_body
from mirror_assets.alerts.render.teams import teams_body
from mirror_assets.config.alerts import Severity
from mirror_assets_tests.alerts.lettered import letter
from mirror_assets_tests.pages import DOCS, codes, table

_GOLDEN = Path(__file__).parent / "golden"
_UPDATE = "UPDATE_GOLDEN"


def _json(text: str) -> str:
    return json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


def _mail(message: Message) -> str:
    mail = mail_of(message, "Mirror <mirror@acme.example>", ["data@acme.example", "ops@acme.example"])
    return re.sub(r"=+\d+==", "BOUNDARY", mail.as_string())


_FORMS: dict[str, Callable[[Message], str]] = {
    "webhook.json": lambda message: _json(webhook_body(message)),
    "slack.json": lambda message: _json(slack_body(message)),
    "teams.json": lambda message: _json(teams_body(message)),
    "pagerduty.json": lambda message: _json(pagerduty_bodies(message, "integration-key")[0]),
    "mail.txt": _mail,
}
_MESSAGES = {
    "begun": letter(),
    "reminder": letter(Told.REMINDER, Severity.WARN),
    "ended": letter(Told.ENDED).model_copy(update={"title": "Ended: 12 tables: can't be mirrored", "next_step": ""}),
}


@pytest.mark.parametrize("told", _MESSAGES)
@pytest.mark.parametrize("form", _FORMS)
def test_a_message_looks_as_in_its_golden_file(form: str, told: str) -> None:
    rendered, file = _FORMS[form](_MESSAGES[told]), _GOLDEN / f"{told}-{form}"
    if os.environ.get(_UPDATE):
        file.parent.mkdir(exist_ok=True)
        file.write_text(rendered, encoding="utf-8")
    assert rendered == file.read_text(encoding="utf-8")


def test_no_text_is_markup_in_slack_and_teams() -> None:
    assert "<403>" not in slack_body(letter())
    assert "&lt;403&gt;" in slack_body(letter())
    assert "<403>" not in _mail(letter()).partition("text/html")[2]
    assert "TextBlock" not in teams_body(letter()).replace("RichTextBlock", "")


def test_what_is_too_long_for_slack_is_cut() -> None:
    long = letter().model_copy(update={"text": "x" * 9000, "title": "t" * 400})
    blocks = json.loads(slack_body(long))["attachments"][0]["blocks"]
    assert len(blocks[0]["text"]["text"]) == 150
    assert len(blocks[1]["text"]["text"]) <= 3000


def test_a_subject_has_no_line_break() -> None:
    assert "\n" not in mail_of(letter().model_copy(update={"title": "a\nb"}), "a@b.example", ["c@d.example"])["Subject"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (12_000, "3 h 20 min"), (187_200, "2 d 4 h")],
)
def test_durations_are_shown_as_people_read_them(seconds: int, shown: str) -> None:
    assert shown_duration(seconds * 1000) == shown


def test_the_page_tells_every_field_of_the_json() -> None:
    told = {codes(row[0])[0] for row in table(DOCS / "alerts.md", "The JSON of a webhook")}
    assert told == set(WebhookBody.model_fields)
