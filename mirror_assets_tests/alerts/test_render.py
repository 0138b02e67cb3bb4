"""Each form of a message, compared with the files in golden/; UPDATE_GOLDEN=1 writes them anew, to be read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
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


_EVIL = (
    "<!channel> @here <https://evil.example|click> [a](https://evil.example) *b* _i_ ~s~ :fire: {{DATE(2026-01-01)}}"
)


def _elements(found: object) -> Iterator[dict[str, object]]:
    """Yield each JSON object in the value, however deep."""
    if isinstance(found, dict):
        yield found
    for inner in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from _elements(inner)


def test_no_text_is_markup_in_slack() -> None:
    evil = letter().model_copy(update={"text": _EVIL, "title": _EVIL, "next_step": _EVIL})
    body = json.loads(slack_body(evil))
    assert "<" not in body["text"]
    kinds = {element["type"] for element in _elements(body["blocks"]) if "type" in element}
    assert kinds == {"header", "plain_text", "rich_text", "rich_text_section", "text", "link", "context"}
    links = [element["url"] for element in _elements(body["blocks"]) if element.get("type") == "link"]
    assert links == [evil.dagster_link, evil.docs_link]


def test_no_text_is_markup_in_teams_and_mail() -> None:
    evil = letter().model_copy(update={"text": _EVIL, "title": _EVIL, "next_step": _EVIL})
    card = json.loads(teams_body(evil))["attachments"][0]["content"]
    kinds = {element["type"] for element in _elements(card) if "type" in element}
    assert kinds == {"AdaptiveCard", "RichTextBlock", "TextRun", "Action.OpenUrl"}
    assert "{{" not in json.dumps(card), "a card fills in dates"
    assert "<!channel>" not in _mail(evil).partition("text/html")[2]


def test_commands_are_shown_as_code() -> None:
    step = letter().model_copy(update={"next_step": "run `mirror-assets rebuild a` or `b"})
    slack = [one for one in _elements(json.loads(slack_body(step))) if one.get("style") == {"code": True}]
    teams = [one for one in _elements(json.loads(teams_body(step))) if one.get("fontType") == "Monospace"]
    assert [one["text"] for one in slack] == [one["text"] for one in teams] == ["app_1", "mirror-assets rebuild a"]
    assert "<code>mirror-assets rebuild a</code> or `b" in mail_of(step, "a@b.example", ["c@d.example"]).as_string()


def test_slack_shows_the_title_once() -> None:
    """A text above an attachment would be shown beside the attachment's own title."""
    body = json.loads(slack_body(letter()))
    assert set(body) == {"text", "blocks"}
    assert body["blocks"][0]["text"]["text"] == "🔴 ERROR · 12 tables: can't be mirrored (store_denied)"


def test_what_has_ended_says_so_once() -> None:
    ended = _MESSAGES["ended"]
    assert mail_of(ended, "a@b.example", ["c@d.example"])["Subject"] == "[ENDED] 12 tables: can't be mirrored"
    assert "Ended: " not in slack_body(ended) + teams_body(ended)


_LONGEST = letter().model_copy(
    update={
        "title": "t" * 250,
        "text": "`€`" * 500,
        "next_step": "`a`<" * 375,
        "subjects": tuple(f"{'s' * 250}{n}" for n in range(10)),
        "more": 490,
        "dagster_link": "https://dagster.example/" + "p" * 500,
    }
)


def test_slack_takes_the_longest_message() -> None:
    blocks = json.loads(slack_body(_LONGEST))["blocks"]
    assert len(blocks[0]["text"]["text"].encode("utf-16-le")) // 2 <= 150
    texts = [str(element["text"]) for element in _elements(blocks) if isinstance(element.get("text"), str)]
    assert max(map(len, texts)) <= 2000
    assert all(texts), "it refuses an element without text"
    assert len(blocks[-1]["elements"]) <= 10


def test_teams_and_pagerduty_take_the_longest_message() -> None:
    assert len(teams_body(_LONGEST).encode()) < 28 * 1024
    (event,) = pagerduty_bodies(_LONGEST.model_copy(update={"title": "t" * 4000}), "key")
    assert len(json.loads(event)["payload"]["summary"]) == 1024
    assert len(event.encode()) < 512 * 1024


def test_a_mail_has_no_line_that_a_server_refuses() -> None:
    for long in (_LONGEST, letter().model_copy(update={"text": "x" * 1500, "title": "ü" * 250})):
        lines = mail_of(long, "a@b.example", ["c@d.example"]).as_bytes().splitlines()
        assert max(map(len, lines)) <= 998


def test_an_empty_text_is_no_empty_element() -> None:
    bare = letter().model_copy(update={"text": "", "next_step": ""})
    assert all(element["text"] for element in _elements(json.loads(slack_body(bare))) if "text" in element)
    assert all(element["text"] for element in _elements(json.loads(teams_body(bare))) if "text" in element)


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
