"""The doctor's answers: each with its subject, its question, a verdict, and the next step if any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from mirror_assets.errors import MirrorError


class DoctorVerdict(str, Enum):
    """The result of a question. `warn`: it works, with a remark. `not asked`: the answer is unknown."""

    OK = "ok"
    WARN = "warn"
    NO = "no"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Reply:
    """The reply to a question; `next_step` is empty if nothing has to be done."""

    verdict: DoctorVerdict
    words: str
    next_step: str = ""


@dataclass(frozen=True)
class DoctorAnswer:
    """A reply with its subject, a table or the landing zone, and its question."""

    subject: str
    question: str
    verdict: DoctorVerdict
    words: str
    next_step: str = ""

    @classmethod
    def of(cls, subject: str, question: str, reply: Reply) -> DoctorAnswer:
        """Return the reply as the answer to a question."""
        return cls(subject, question, reply.verdict, reply.words, reply.next_step)

    @property
    def text(self) -> str:
        """The words, followed by the next step."""
        return f"{self.words.rstrip('.')}. Next: {self.next_step}" if self.next_step else self.words


def ok(words: str) -> Reply:
    """Return a reply without a problem."""
    return Reply(DoctorVerdict.OK, words)


def warn(words: str, next_step: str) -> Reply:
    """Return a reply with a warning."""
    return Reply(DoctorVerdict.WARN, words, next_step)


def not_asked(why: str) -> Reply:
    """Return that the answer is unknown, and why."""
    return Reply(DoctorVerdict.NOT_ASKED, why)


def no(error: MirrorError) -> Reply:
    """Return a failure, with the message of the error that a run would end with."""
    return Reply(DoctorVerdict.NO, error.what, error.next_step)


def is_well(answers: Iterable[DoctorAnswer]) -> bool:
    """Return whether no answer is `no`."""
    return all(answer.verdict is not DoctorVerdict.NO for answer in answers)
