"""The outbox: messages that wait for their receivers, and when each is tried again. Pure, as the incidents are."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mirror_assets.alerts.conditions import Value
from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message
from mirror_assets.config.alerts import ReceiverConfig

_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 15_000, 15 * 60_000
_KEPT_MS = 7 * 86_400_000
_MOST = 1000
_LOG = logging.getLogger(__name__)


class Waiting(Value):
    """A message that a receiver has not confirmed yet; `next_ms` is when it is tried again."""

    receiver: str
    message: Message
    attempts: int = 0
    next_ms: int = 0
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: delivered, or why not, and for how many seconds the receiver wants to be left alone."""

    receiver: str
    message: str
    why: str | None = None
    pause: float | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver has confirmed the message."""
        return self.why is None


def queued(
    outbox: Iterable[Waiting], messages: Iterable[Message], receivers: Mapping[str, ReceiverConfig]
) -> tuple[Waiting, ...]:
    """Return the outbox with the messages added, for each receiver that wants them.

    A reminder is left out where a message of its incident still waits: that one says the same.
    """
    waiting = [entry for entry in outbox if entry.receiver in receivers]
    for message in messages:
        for name, receiver in receivers.items():
            if not _wants(receiver, message):
                continue
            if message.told is Told.REMINDER and any(_same_incident(entry, name, message) for entry in waiting):
                continue
            waiting.append(Waiting(receiver=name, message=message))
    surplus = {(name, message) for name in receivers for message in _surplus(name, waiting)}
    return tuple(entry for entry in waiting if (entry.receiver, entry.message.id) not in surplus)


def _surplus(receiver: str, waiting: Iterable[Waiting]) -> list[str]:
    """Return the ids of messages that are left out, because more than a thousand wait for the receiver.

    First go incidents that have begun and ended meanwhile, the oldest first; then the oldest messages.
    """
    own = [entry.message for entry in waiting if entry.receiver == receiver]
    if len(own) <= _MOST:
        return []
    begun = {message.incident for message in own if message.told is Told.BEGUN}
    over = {message.incident for message in own if message.told is Told.ENDED} & begun
    of_over = [message for message in own if message.incident in over]
    gone = {message.incident for message in of_over[: len(own) - _MOST]}
    left = [message for message in own if message.incident not in gone]
    out = [message.id for message in own if message.incident in gone] + [message.id for message in left[:-_MOST]]
    _LOG.warning("alerts: %d messages wait for the receiver %s; %d are left out", len(own), receiver, len(out))
    return out


def ready(outbox: Iterable[Waiting], receivers: Mapping[str, ReceiverConfig], now_ms: int) -> tuple[Waiting, ...]:
    """Return what may be sent now: no quiet hours, no pause, and nothing earlier of the same incident waits."""
    blocked: set[tuple[str, str]] = set()
    found: list[Waiting] = []
    for entry in outbox:
        key = (entry.receiver, entry.message.incident)
        if key not in blocked and entry.next_ms <= now_ms and not _is_quiet(receivers, entry, now_ms):
            found.append(entry)
        blocked.add(key)
    return tuple(found)


def settled(outbox: Iterable[Waiting], outcomes: Iterable[Outcome], now_ms: int) -> tuple[Waiting, ...]:
    """Return the outbox without what was delivered; what was not gets a pause, twice as long each time.

    What could not be delivered for a week is dropped.
    """
    by_id = {(outcome.receiver, outcome.message): outcome for outcome in outcomes}
    left: list[Waiting] = []
    for entry in outbox:
        outcome = by_id.get((entry.receiver, entry.message.id))
        if outcome is not None and outcome.is_delivered:
            continue
        if outcome is not None:
            entry = _paused(entry, outcome, now_ms)  # noqa: PLW2901 the same entry, later
        if now_ms - entry.message.at_ms < _KEPT_MS:
            left.append(entry)
    return tuple(left)


def _paused(entry: Waiting, outcome: Outcome, now_ms: int) -> Waiting:
    pause = min(_FIRST_PAUSE_MS * 2 ** min(entry.attempts, 10), _LONGEST_PAUSE_MS)
    pause = max(pause, min(round((outcome.pause or 0) * 1000), _LONGEST_PAUSE_MS))
    update = {"attempts": entry.attempts + 1, "next_ms": now_ms + pause, "why": (outcome.why or "")[:500]}
    return entry.model_copy(update=update)


def _wants(receiver: ReceiverConfig, message: Message) -> bool:
    if message.severity.rank < receiver.severity.rank:
        return False
    return receiver.topics is None or message.topic in receiver.topics


def _is_quiet(receivers: Mapping[str, ReceiverConfig], entry: Waiting, now_ms: int) -> bool:
    hours = receivers[entry.receiver].quiet_hours if entry.receiver in receivers else None
    if hours is None or not hours.cover(now_ms):
        return False
    return hours.unless is None or entry.message.severity.rank < hours.unless.rank


def _same_incident(entry: Waiting, receiver: str, message: Message) -> bool:
    return entry.receiver == receiver and entry.message.incident == message.incident
