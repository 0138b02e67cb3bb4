"""Delivery: which messages are due follows from what each receiver has accepted, so an unsent message stays due."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from mirror_assets.errors import MirrorError
from mirror_assets.features.alerts.alert_settings import AlertsConfig, ReceiverConfig
from mirror_assets.features.alerts.messages import Message, message_of
from mirror_assets.features.alerts.receivers import send
from mirror_assets.landing.problems import MessageKind, ProblemFile, ProblemKey, Sent, Severity, StoredProblem

# How long one evaluation may send, and how long others leave its claims alone: a killed one loses no message.
_DELIVERY_SECONDS, _CLAIM_MS = 60.0, 180_000
# A single message that a receiver does not accept must not hold up all others; more failures mean that it is down.
_MOST_FAILURES = 2
_LOG = logging.getLogger(__name__)

Send = Callable[[str, ReceiverConfig, Message], None]


def due(
    problem: StoredProblem, receiver: str, minimum: Severity, now_ms: int, remind_ms: int | None
) -> MessageKind | None:
    """Return the message about the problem that the receiver gets next, or None."""
    sent, is_severe = problem.sent.get(receiver), problem.severity.rank >= minimum.rank
    if problem.ended_ms is not None:
        # An evaluator that was killed after its claim may have sent the beginning.
        has_begun = sent.kind is not MessageKind.ENDED if sent else problem.claimed_ms is not None and is_severe
        return MessageKind.ENDED if has_begun else None
    if not problem.is_open or not is_severe:
        return None
    if sent is None or sent.kind is MessageKind.ENDED:
        return MessageKind.BEGUN
    if problem.severity.rank > sent.severity.rank:
        return MessageKind.WORSE
    return MessageKind.REMINDER if remind_ms is not None and now_ms - sent.at_ms >= remind_ms else None


@dataclass
class AlertDelivery:
    """Sends the messages of an evaluation at this time, in ms since 1970, about the problems that it claims."""

    settings: AlertsConfig
    now_ms: int
    send: Send = send
    _plan: dict[ProblemKey, dict[str, MessageKind]] = field(default_factory=dict, init=False)
    _deadline: float = field(default=0.0, init=False)

    def claim(self, file: ProblemFile, spoken_for: Callable[[StoredProblem], bool]) -> ProblemFile:
        """Return the file with claims on the due problems that this evaluation speaks for; others leave them alone."""
        self._plan, self._deadline = {}, time.monotonic() + _DELIVERY_SECONDS  # the file may have changed since a try
        hours = self.settings.remind_hours
        remind_ms = None if hours is None else round(hours * 3_600_000)
        for one in file.problems:
            is_claimed = one.claimed_ms is not None and 0 <= self.now_ms - one.claimed_ms < _CLAIM_MS
            if is_claimed or not spoken_for(one) or file.muted(one.subject, self.now_ms):
                continue
            receivers = self.settings.receivers.items()
            kinds = {name: due(one, name, receiver.severity, self.now_ms, remind_ms) for name, receiver in receivers}
            if any(kinds.values()):
                self._plan[one.key] = {name: kind for name, kind in kinds.items() if kind is not None}
        return _updated(file, {key: {"claimed_ms": self.now_ms} for key in self._plan})

    @property
    def has_claims(self) -> bool:
        """Whether there is something to send."""
        return bool(self._plan)

    def deliver(self, file: ProblemFile) -> dict[ProblemKey, dict[str, Sent]]:
        """Send what is due of the claimed problems; return what each receiver has accepted of each."""
        accepted = dict[ProblemKey, dict[str, Sent]]()
        for name, receiver in self.settings.receivers.items():
            failures = 0
            for kind, problems in self._messages(file, name):
                if failures >= _MOST_FAILURES or time.monotonic() > self._deadline:
                    break
                in_incident = [one for one in file.problems if one.is_open and one.incident == problems[0].incident]
                still_open = [one for one in in_incident if one not in problems]
                try:
                    self.send(name, receiver, message_of(kind, problems, still_open, self.now_ms, self.settings))
                except Exception as error:  # noqa: BLE001 a library's defect must not lose the message
                    failures += 1
                    why = str(error) if isinstance(error, MirrorError) else f"unexpected {type(error).__name__}"
                    _LOG.warning("%s", why)
                    continue
                for one in problems:
                    sent = Sent(kind=kind, severity=one.severity, at_ms=self.now_ms)
                    accepted.setdefault(one.key, {})[name] = sent
        return accepted

    def settle(self, file: ProblemFile, accepted: Mapping[ProblemKey, Mapping[str, Sent]]) -> ProblemFile:
        """Return the file with what was accepted, and without the claims."""
        known = {one.key: one for one in file.problems}
        return _updated(
            file,
            {
                key: {"claimed_ms": None, "sent": {**known[key].sent, **accepted.get(key, {})}}
                for key in self._plan.keys() & known.keys()
            },
        )

    def _messages(self, file: ProblemFile, receiver: str) -> Collection[tuple[MessageKind, list[StoredProblem]]]:
        """Return the receiver's messages: the kind, and the problems of one incident."""
        found = dict[tuple[str, MessageKind], list[StoredProblem]]()
        for one in file.problems:
            kind = self._plan.get(one.key, {}).get(receiver)
            if kind is not None:
                found.setdefault((one.incident or "", kind), []).append(one)
        return [(kind, problems) for (_, kind), problems in found.items()]


def _updated(file: ProblemFile, updates: Mapping[ProblemKey, Mapping[str, object]]) -> ProblemFile:
    problems = tuple(one.model_copy(update=updates[one.key]) if one.key in updates else one for one in file.problems)
    return file.model_copy(update={"problems": problems})
