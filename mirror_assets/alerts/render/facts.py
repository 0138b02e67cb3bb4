"""What every form of a message shows beside its title and text, in this order and which pieces of a text are code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import PREFIXES, Message, shown_duration, shown_time
from mirror_assets.alerts.texts import shortened
from mirror_assets.config.alerts import Severity

_CODE = re.compile(r"`([^`\n]+)`")
# Each span costs a form some sixty bytes, and Teams takes 28 KB.
_MOST_CODES = 20
_LONGEST_NAMES = 1000


@dataclass(frozen=True)
class Span:
    """A piece of a text; `is_code` if it stood between backticks, as commands and settings do."""

    text: str
    is_code: bool = False


def spans(text: str) -> tuple[Span, ...]:
    """Return the text in pieces, without the backticks of the first twenty codes. Nothing else in it is markup."""
    found: list[Span] = []
    at = 0
    for match, _ in zip(_CODE.finditer(text), range(_MOST_CODES), strict=False):
        found += [Span(text[at : match.start()]), Span(match[1], is_code=True)]
        at = match.end()
    return tuple(span for span in (*found, Span(text[at:])) if span.text)


def facts_of(message: Message) -> tuple[tuple[str, str], ...]:
    """Return what is named and its value: subjects, code, when it began, how long it has lasted."""
    facts = [("Affected", shortened(message.named, _LONGEST_NAMES))] if message.count > 1 else []
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


def headline(message: Message) -> str:
    """Return the title as it stands beside `word`, which already says ENDED."""
    return message.title.removeprefix(PREFIXES[Told.ENDED]) if message.told is Told.ENDED else message.title


def is_bad(message: Message) -> bool:
    """Return whether something is wrong with severity ERROR."""
    return message.told is not Told.ENDED and message.severity is Severity.ERROR


def is_good(message: Message) -> bool:
    """Return whether nothing is wrong, at the end of an incident or in a test."""
    return message.told in (Told.ENDED, Told.TEST)
