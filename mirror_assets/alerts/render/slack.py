"""A message as Slack's incoming webhooks take it: blocks in an attachment with a colour."""

from __future__ import annotations

import json

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.render.facts import facts_of, word
from mirror_assets.config.alerts import Severity

_COLOURS = {Severity.ERROR: "#c4314b", Severity.WARN: "#e8a200", Severity.INFO: "#2f6fde"}
_GOOD = "#2f9e44"
# Slack refuses a header of more than 150 characters, and a text of more than 3,000.
_HEADER, _TEXT = 150, 2900


def slack_body(message: Message) -> str:
    """Return the body of the request."""
    lines = [_escaped(message.text)]
    if message.next_step:
        lines.append(f"*Next:* {_escaped(message.next_step)}")
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": {"type": "plain_text", "text": message.title[:_HEADER], "emoji": False}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:_TEXT]}},
    ]
    facts = [f"*{name}:* {_escaped(value)}" for name, value in facts_of(message)]
    facts += [f"<{link}|{words}>" for words, link in message.links]
    if facts:
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": " · ".join(facts)[:_TEXT]}]})
    good = message.told in (Told.ENDED, Told.TEST)
    attachment = {"color": _GOOD if good else _COLOURS[message.severity], "blocks": blocks}
    fallback = f"[{word(message)}] {_escaped(message.title)}"
    return json.dumps({"text": fallback, "attachments": [attachment]}, ensure_ascii=False)


def _escaped(text: str) -> str:
    """Return the text as Slack shows it unchanged: these three characters are its markup for links and mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
