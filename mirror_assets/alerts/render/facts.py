"""What every form of a message shows beside its title and text, in this order."""

from __future__ import annotations

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message, shown_duration, shown_time
from mirror_assets.config.alerts import Severity


def facts_of(message: Message) -> tuple[tuple[str, str], ...]:
    """Return what is named and its value: subjects, code, when it began, how long it has lasted."""
    facts = [("Affected", message.named)] if message.count > 1 else []
    if message.code:
        facts.append(("Code", message.code))
    if message.told is not Told.TEST:
        facts.append(("Began", shown_time(message.began_ms)))
    if message.told in (Told.REMINDER, Told.ENDED, Told.WORSE):
        facts.append(("Lasted", shown_duration(message.at_ms - message.began_ms)))
    return tuple(facts)


def word(message: Message) -> str:
    """Return the state in one word: `ERROR`, `WARN`, `INFO`, `ENDED` or `TEST`."""
    return message.told.value.upper() if message.told in (Told.ENDED, Told.TEST) else message.severity.value.upper()


def is_bad(message: Message) -> bool:
    """Return whether something is wrong with severity ERROR."""
    return message.told is not Told.ENDED and message.severity is Severity.ERROR
