"""A message as an adaptive card, for a Teams workflow that is started by a webhook request."""

from __future__ import annotations

import json

from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.render.facts import Span, facts_of, headline, is_good, spans, word
from mirror_assets.config.alerts import Severity

_SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
_COLOURS = {Severity.ERROR: "Attention", Severity.WARN: "Warning", Severity.INFO: "Accent"}
_NO_BREAK = "\u2060"

_Style = str | bool
_Element = dict[str, object]


def teams_body(message: Message) -> str:
    """Return the body of the request."""
    colour = "Good" if is_good(message) else _COLOURS[message.severity]
    body = [
        _line([_run(word(message), color=colour, weight="Bolder")]),
        _line([_run(headline(message), size="Large", weight="Bolder")], spacing="None"),
        _line(_styled(message.text)),
    ]
    if message.next_step:
        body.append(_line([_run("Next: ", weight="Bolder"), *_styled(message.next_step)]))
    for number, (name, value) in enumerate(facts_of(message)):
        shown = _run(f"{name}: {value}", size="Small", isSubtle=True)
        body.append(_line([shown], spacing="None" if number else "Default"))
    card = {
        "$schema": _SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": _unfilled(f"[{word(message)}] {headline(message)}"),
        "msteams": {"width": "Full"},
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": words, "url": link} for words, link in message.links],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return json.dumps({"type": "message", "attachments": [attachment]}, ensure_ascii=False)


def _line(runs: list[_Element], **style: _Style) -> _Element:
    """Return a line of text. A TextBlock would take names like `_a_b_` for Markdown; a TextRun does not."""
    return {"type": "RichTextBlock", "inlines": runs, **style}


def _styled(text: str) -> list[_Element]:
    return [_piece(span) for span in spans(text)] or [_run(" ")]


def _piece(span: Span) -> _Element:
    return _run(span.text, fontType="Monospace") if span.is_code else _run(span.text)


def _run(text: str, **style: _Style) -> _Element:
    return {"type": "TextRun", "text": _unfilled(text), **style}


def _unfilled(text: str) -> str:
    """Return the text without what a card fills in: {{DATE(…)}} and {{TIME(…)}}."""
    return text.replace("{{", f"{{{_NO_BREAK}{{")
