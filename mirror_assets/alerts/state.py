"""The memory of alerts, and delivery: each message is sent until its receiver has taken it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import pydantic

from mirror_assets.alerts.incidents import Incident, Sent, Value
from mirror_assets.alerts.messages import Message, message_of
from mirror_assets.config.alerts import AlertsConfig, ReceiverConfig
from mirror_assets.errors import MirrorError

_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 15_000, 15 * 60_000
# How long a delivery may take, and how many incidents are saved for a receiver that takes nothing.
_DELIVERY_SECONDS, _MOST_ENDED = 15.0, 1000
_LOG = logging.getLogger(__name__)

Send = Callable[[str, ReceiverConfig, Message], None]


class Pause(Value):
    """A receiver that did not take a message: how often in a row, when it is tried again, and why."""

    attempts: int
    until_ms: int
    why: str


class AlertState(Value):
    """The incidents that are open or have receivers that were not sent their end, and receivers that are paused."""

    incidents: tuple[Incident, ...] = ()
    pauses: dict[str, Pause] = pydantic.Field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> AlertState:
        """Return the state in the text; an empty one if there is none, or if another version wrote it."""
        try:
            return cls.model_validate_json(text) if text else cls()
        except pydantic.ValidationError as error:
            _LOG.warning("alerts start without their old state, which can't be read (%d errors)", error.error_count())
            return cls()

    def delivered(self, settings: AlertsConfig, send: Send, now_ms: int) -> AlertState:
        """Send what is due, oldest incident first, and return the state after it."""
        incidents, pauses = list(self.incidents), dict[str, Pause]()
        deadline = time.monotonic() + _DELIVERY_SECONDS
        for name in settings.receivers:
            pause = self.pauses.get(name)
            if pause is None or pause.until_ms <= now_ms:
                pause = _deliver(incidents, name, settings, send, pause, now_ms, deadline)
            pauses |= {name: pause} if pause is not None else {}
        receivers = settings.receivers.items()
        unsent = [
            one
            for one in incidents
            if one.has_ended(now_ms) and any(one.due(name, r.severity, now_ms, None) for name, r in receivers)
        ]
        still_open = [one for one in incidents if not one.has_ended(now_ms)]
        return AlertState(incidents=(*unsent[-_MOST_ENDED:], *still_open), pauses=pauses)


def _deliver(
    incidents: list[Incident],
    name: str,
    settings: AlertsConfig,
    send: Send,
    pause: Pause | None,
    now_ms: int,
    deadline: float,
) -> Pause | None:
    """Send to one receiver, and note it in the incidents; return its pause if it did not take a message.

    After a message that it does not take, one other is tried: a single message must not hold up all others.
    """
    receiver, attempts, reasons = settings.receivers[name], pause.attempts if pause else 0, list[str]()
    remind_ms = None if settings.remind_hours is None else round(settings.remind_hours * 3_600_000)
    for number, waiting in enumerate(incidents):
        incident = waiting
        while event := incident.due(name, receiver.severity, now_ms, remind_ms):
            if len(reasons) > 1 or time.monotonic() > deadline:
                break
            try:
                send(name, receiver, message_of(event, incident, now_ms, settings))
            except Exception as error:  # noqa: BLE001 a library's defect must not lose the message
                reasons.append(error.what if isinstance(error, MirrorError) else f"unexpected {type(error).__name__}")
                break
            attempts, sent = 0, Sent(event=event, severity=incident.example.severity, at_ms=now_ms)
            incident = incident.model_copy(update={"sent": {**incident.sent, name: sent}})
        incidents[number] = incident
    length = min(_FIRST_PAUSE_MS * 2 ** min(attempts, 10), _LONGEST_PAUSE_MS)
    return Pause(attempts=attempts + 1, until_ms=now_ms + length, why=reasons[0]) if reasons else None
