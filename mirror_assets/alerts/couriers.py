"""Delivers messages beside whoever asks: a thread for each receiver, so that one that hangs keeps nobody waiting."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from mirror_assets.alerts.errors import ReceiverAway, ReceiverRefused
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.outbox import Outcome, Waiting
from mirror_assets.alerts.receivers import send
from mirror_assets.config.alerts import ReceiverConfig

# A thread sends so many messages, and others get their turn at the next look.
_AT_ONCE = 20
# An attempt that takes so many times its timeout hangs: bytes still come, but no answer.
_HANGS_AFTER = 4

Send = Callable[[str, ReceiverConfig, Message], str]


@dataclass
class _Errand:
    """The messages that a thread takes to one receiver, and when it began with the one under way."""

    entries: tuple[Waiting, ...]
    seconds: float
    thread: threading.Thread | None = None
    began: float = field(default_factory=time.monotonic)
    at: int = 0

    @property
    def is_over(self) -> bool:
        return self.thread is None or not self.thread.is_alive()

    @property
    def hangs(self) -> bool:
        return time.monotonic() - self.began > self.seconds * _HANGS_AFTER


class Couriers:
    """The threads that deliver, kept from one look to the next."""

    def __init__(self, sending: Send = send) -> None:
        """Start no thread yet."""
        self._send = sending
        self._errands: dict[str, _Errand] = {}
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()

    def begin(self, entries: Iterable[Waiting], receivers: Mapping[str, ReceiverConfig]) -> None:
        """Begin to deliver, to each receiver in the order of `entries`; one that still has an errand is left alone."""
        by_name = attrgetter("receiver")
        for name, group in groupby(sorted(entries, key=by_name), key=by_name):
            known = self._errands.get(name)
            if known is not None and not known.is_over:
                self._give_up(known)
                continue
            errand = _Errand(tuple(group)[:_AT_ONCE], receivers[name].timeout_seconds)
            errand.thread = threading.Thread(
                target=self._deliver, args=(errand, receivers[name]), name=f"alerts to {name}", daemon=True
            )
            self._errands[name] = errand
            errand.thread.start()

    def outcomes(self, wait_seconds: float) -> list[Outcome]:
        """Return what came of the attempts since the last call; wait so long for those that are under way."""
        deadline = time.monotonic() + wait_seconds
        for errand in self._errands.values():
            if errand.thread is not None:
                errand.thread.join(max(0.0, deadline - time.monotonic()))
        found: list[Outcome] = []
        while not self._outcomes.empty():
            found.append(self._outcomes.get())
        return found

    def _give_up(self, errand: _Errand) -> None:
        """Record an attempt that hangs as failed; its thread ends when the connection does."""
        if errand.hangs:
            entry = errand.entries[errand.at]
            self._outcomes.put(Outcome(entry.receiver, entry.message.id, "it began to answer and did not end"))
            del self._errands[entry.receiver]

    def _deliver(self, errand: _Errand, receiver: ReceiverConfig) -> None:
        """Send one after the other; a receiver that is away is left alone for now."""
        for number, entry in enumerate(errand.entries):
            errand.at, errand.began = number, time.monotonic()
            name, message = entry.receiver, entry.message
            try:
                self._send(name, receiver, message)
            except ReceiverAway as away:
                self._outcomes.put(Outcome(name, message.id, away.what, away.pause))
                return
            except ReceiverRefused as refused:
                self._outcomes.put(Outcome(name, message.id, refused.what))
            except Exception as error:  # noqa: BLE001 a defect here must not end the thread without a word
                self._outcomes.put(Outcome(name, message.id, f"unexpected {type(error).__name__}"))
            else:
                self._outcomes.put(Outcome(name, message.id))
