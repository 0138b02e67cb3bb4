"""A message as an adaptive card, for a Teams workflow that is started by a webhook request."""

from __future__ import annotations

import json

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.render.facts import facts_of, word
from mirror_assets.config.alerts import Severity

_SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
_COLOURS = {Severity.ERROR: "Attention", Severity.WARN: "Warning", Severity.INFO: "Accent"}


def teams_body(message: Message) -> str:
    """Return the body of the request."""
    good = message.told in (Told.ENDED, Told.TEST)
    colour = "Good" if good else _COLOURS[message.severity]
    body = [_line(word(message), color=colour, weight="Bolder"), _line(message.title, size="Large", weight="Bolder")]
    body.append(_line(message.text))
    if message.next_step:
        body.append(_line(f"Next: {message.next_step}", weight="Bolder"))
    body += [_line(f"{name}: {value}", size="Small", isSubtle=True) for name, value in facts_of(message)]
    card = {
        "$schema": _SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": words, "url": link} for words, link in message.links],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return json.dumps({"type": "message", "attachments": [attachment]}, ensure_ascii=False)


def _line(text: str, **style: str | bool) -> dict[str, object]:
    """Return a line of text. A TextBlock would take names like `_a_b_` for Markdown; a TextRun does not."""
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}
