"""The memory of alerts: open incidents, and messages that are sent until their receivers have taken them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import pydantic

from mirror_assets.alerts.conditions import Value
from mirror_assets.alerts.incidents import Event, Incident
from mirror_assets.alerts.messages import Message
from mirror_assets.config.alerts import ReceiverConfig
from mirror_assets.errors import MirrorError

_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 15_000, 15 * 60_000
# Messages saved for a receiver that takes none, and messages sent to one receiver in a row.
_MOST, _AT_ONCE = 1000, 20
_LOG = logging.getLogger(__name__)

Send = Callable[[str, ReceiverConfig, Message], None]


class Waiting(Value):
    """A message that a receiver has not taken yet; `next_ms` is when it is sent again, `why` the last error."""

    receiver: str
    message: Message
    attempts: int = 0
    next_ms: int = 0
    why: str = ""

    def failed(self, why: str, now_ms: int) -> Waiting:
        """Return the entry after an attempt that failed; the pauses double."""
        pause = min(_FIRST_PAUSE_MS * 2 ** min(self.attempts, 10), _LONGEST_PAUSE_MS)
        return self.model_copy(update={"attempts": self.attempts + 1, "next_ms": now_ms + pause, "why": why})


Outcomes = dict[tuple[str, Message], str | None]
"""Why sending a message to a receiver failed, None if it did not."""


class AlertState(Value):
    """The open incidents and the messages that wait."""

    incidents: tuple[Incident, ...] = ()
    outbox: tuple[Waiting, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> AlertState:
        """Return the state in the text; an empty one if there is none, or if another version wrote it."""
        try:
            return cls.model_validate_json(text) if text else cls()
        except pydantic.ValidationError as error:
            _LOG.warning("alerts start without their old state, which can't be read (%d errors)", error.error_count())
            return cls()

    def queued(self, messages: Iterable[Message], receivers: Mapping[str, ReceiverConfig]) -> AlertState:
        """Return the state with the messages for each receiver whose minimum severity they reach.

        A reminder is left out while an earlier message of its incident waits. The oldest are dropped beyond a thousand.
        """
        waiting = {name: [entry for entry in self.outbox if entry.receiver == name] for name in receivers}
        for message in messages:
            for name, receiver in receivers.items():
                is_late = any(entry.message.incident == message.incident for entry in waiting[name])
                if message.severity.rank >= receiver.severity.rank and not (
                    message.event is Event.REMINDER and is_late
                ):
                    waiting[name].append(Waiting(receiver=name, message=message))
        for name, entries in waiting.items():
            if len(entries) > _MOST:
                _LOG.warning("alerts: dropped %d messages that wait for the receiver %s", len(entries) - _MOST, name)
        outbox = tuple(entry for entries in waiting.values() for entry in entries[-_MOST:])
        return self.model_copy(update={"outbox": outbox})

    def ready(self, receiver: str, now_ms: int) -> tuple[Waiting, ...]:
        """Return what may be sent to the receiver now; messages of one incident keep their order."""
        blocked, found = set[str](), list[Waiting]()
        for entry in (one for one in self.outbox if one.receiver == receiver):
            if entry.next_ms <= now_ms and entry.message.incident not in blocked:
                found.append(entry)
            else:
                blocked.add(entry.message.incident)
        return tuple(found[:_AT_ONCE])

    def settled(self, outcomes: Outcomes, now_ms: int) -> AlertState:
        """Return the state without delivered messages; others get a pause."""
        left = list[Waiting]()
        for entry in self.outbox:
            why = outcomes.get((entry.receiver, entry.message), "")
            if why is not None:
                left.append(entry.failed(why, now_ms) if why else entry)
        return self.model_copy(update={"outbox": tuple(left)})


def deliver(entries: Sequence[Waiting], config: ReceiverConfig, send: Send) -> Outcomes:
    """Send the messages one after another until one fails; return the outcomes."""
    outcomes: Outcomes = {}
    for entry in entries:
        try:
            send(entry.receiver, config, entry.message)
        except Exception as error:  # noqa: BLE001 a library's defect must not lose the message
            why = error.what if isinstance(error, MirrorError) else f"unexpected {type(error).__name__}"
            return {**outcomes, (entry.receiver, entry.message): why}
        outcomes[entry.receiver, entry.message] = None
    return outcomes
