"""The JSON of a webhook, as docs/alerts.md describes it field by field."""

from __future__ import annotations

from datetime import datetime, timezone

import pydantic

from mirror_assets.alerts.messages import Message


class Links(pydantic.BaseModel):
    """Where more is told; null where no address is set."""

    dagster: str | None
    docs: str | None


class WebhookBody(pydantic.BaseModel):
    """The body of a request to a webhook. Fields are added to a format, never renamed or removed."""

    format: int = 1
    id: str
    incident: str
    event: str
    severity: str
    topic: str
    title: str
    text: str
    next_step: str
    code: str | None
    subjects: tuple[str, ...]
    subject_count: int
    began_at: str
    at: str
    links: Links


def webhook_body(message: Message) -> str:
    """Return the body of the request."""
    body = WebhookBody(
        id=message.id,
        incident=message.incident,
        event=message.told.value,
        severity=message.severity.value,
        topic=message.topic.value,
        title=message.title,
        text=message.text,
        next_step=message.next_step,
        code=message.code,
        subjects=message.subjects,
        subject_count=message.count,
        began_at=_iso(message.began_ms),
        at=_iso(message.at_ms),
        links=Links(dagster=message.dagster_link, docs=message.docs_link),
    )
    return body.model_dump_json()


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
