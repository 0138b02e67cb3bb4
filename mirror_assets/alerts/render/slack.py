"""A message as Slack's incoming webhooks take it: blocks whose texts are not markup, and a line for notifications."""

from __future__ import annotations

import json

from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.render.facts import facts_of, headline, is_good, spans, word
from mirror_assets.alerts.texts import shortened
from mirror_assets.config.alerts import Severity

_SIGNS = {Severity.ERROR: "🔴", Severity.WARN: "🟠", Severity.INFO: "🔵"}
_GOOD = "🟢"
# Slack refuses a header of more than 150 characters, of which the sign may count as two, and a fact of more than 2,000.
_HEADER, _FACT = 148, 1900

_Element = dict[str, object]


def slack_body(message: Message) -> str:
    """Return the body of the request.

    Notifications and screen readers have only `text`; the channel shows only `blocks`. A colour at the side would need
    an attachment, which Slack folds, and above which it shows `text`, too.
    """
    sign = _GOOD if is_good(message) else _SIGNS[message.severity]
    title = shortened(f"{sign} {word(message)} · {headline(message)}", _HEADER)
    blocks: list[_Element] = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
        *(_rich_text(elements) for elements in _paragraphs(message)),
    ]
    facts = [_plain(f"{name}: {value}") for name, value in facts_of(message)]
    if facts:
        blocks.append({"type": "context", "elements": facts})
    notification = f"[{word(message)}] {_escaped(headline(message))}"
    return json.dumps({"text": notification, "blocks": blocks}, ensure_ascii=False)


def _paragraphs(message: Message) -> list[list[_Element]]:
    """Return the text, the next step and the links. In rich text, unlike in mrkdwn, no text is markup or a mention."""
    paragraphs = [_styled(message.text)] if message.text else []
    if message.next_step:
        paragraphs.append([{"type": "text", "text": "Next: ", "style": {"bold": True}}, *_styled(message.next_step)])
    links: list[_Element] = []
    for words, link in message.links:
        links += [{"type": "text", "text": "  ·  "}] if links else []
        links.append({"type": "link", "url": link, "text": words})
    return [*paragraphs, links] if links else paragraphs


def _styled(text: str) -> list[_Element]:
    return [
        {"type": "text", "text": span.text, **({"style": {"code": True}} if span.is_code else {})}
        for span in spans(text)
    ]


def _rich_text(elements: list[_Element]) -> _Element:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _plain(text: str) -> _Element:
    return {"type": "plain_text", "text": shortened(text, _FACT), "emoji": False}


def _escaped(text: str) -> str:
    """Return the text as Slack shows it unchanged: these three characters are its markup for links and mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
