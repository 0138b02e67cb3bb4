"""A message as an event of PagerDuty's Events API v2: it triggers an incident, or resolves it."""

from __future__ import annotations

import json
from datetime import datetime, timezone

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.render.facts import facts_of
from mirror_assets.alerts.texts import shortened
from mirror_assets.config.alerts import Severity

EVENTS_URL = "https://events.pagerduty.com/v2/enqueue"
_SEVERITIES = {Severity.ERROR: "error", Severity.WARN: "warning", Severity.INFO: "info"}
_LONGEST_SUMMARY = 1024
_CLIENT = "mirror_assets"


def pagerduty_bodies(message: Message, routing_key: str) -> tuple[str, ...]:
    """Return the bodies of the requests, in order; a test resolves at once what it has triggered."""
    if message.told is Told.ENDED:
        return (_resolve(message, routing_key),)
    if message.told is Told.TEST:
        return (_trigger(message, routing_key), _resolve(message, routing_key))
    return (_trigger(message, routing_key),)


def _trigger(message: Message, routing_key: str) -> str:
    began = datetime.fromtimestamp(message.began_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
    details = {"text": message.text, "next_step": message.next_step, **dict(facts_of(message))}
    event = {
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": message.incident,
        "client": _CLIENT,
        "payload": {
            "summary": shortened(message.title, _LONGEST_SUMMARY),
            "source": message.subjects[0] if message.count == 1 else _CLIENT,
            "severity": _SEVERITIES[message.severity],
            "timestamp": began,
            "component": _CLIENT,
            "class": message.code or message.topic.value,
            "custom_details": details,
        },
        "links": [{"href": link, "text": words} for words, link in message.links],
    }
    return json.dumps(event, ensure_ascii=False)


def _resolve(message: Message, routing_key: str) -> str:
    event = {"routing_key": routing_key, "event_action": "resolve", "dedup_key": message.incident}
    return json.dumps(event, ensure_ascii=False)
