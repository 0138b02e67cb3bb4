"""The doctor's answers: each with its subject, question, verdict, and the next step if any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from mirror_assets.errors import MirrorError


class DoctorVerdict(str, Enum):
    """The result of a question. `warn`: it works, with a remark. `not asked`: the answer is unknown."""

    OK = "ok"
    WARN = "warn"
    NO = "no"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class DoctorAnswer:
    """The answer to a question about a subject, a table or the landing zone.

    `next_step` is empty if nothing has to be done. Functions that answer one question leave subject and question empty.
    """

    subject: str
    question: str
    verdict: DoctorVerdict
    words: str
    next_step: str = ""

    def about(self, subject: str, question: str) -> DoctorAnswer:
        """Return the answer with its subject and question."""
        return replace(self, subject=subject, question=question)

    @property
    def text(self) -> str:
        """The words, followed by the next step."""
        return f"{self.words.rstrip('.')}. Next: {self.next_step}" if self.next_step else self.words


def ok(words: str) -> DoctorAnswer:
    """Return an answer without a problem."""
    return DoctorAnswer("", "", DoctorVerdict.OK, words)


def warn(words: str, next_step: str) -> DoctorAnswer:
    """Return a warning."""
    return DoctorAnswer("", "", DoctorVerdict.WARN, words, next_step)


def not_asked(why: str) -> DoctorAnswer:
    """Return that the answer is unknown, and why."""
    return DoctorAnswer("", "", DoctorVerdict.NOT_ASKED, why)


def no(words: str, next_step: str) -> DoctorAnswer:
    """Return a failure."""
    return DoctorAnswer("", "", DoctorVerdict.NO, words, next_step)


def failure(error: MirrorError) -> DoctorAnswer:
    """Return a failure, with the message of the error that a run would end with."""
    return no(error.what, error.next_step)


def is_well(answers: Iterable[DoctorAnswer]) -> bool:
    """Return whether no answer is `no`."""
    return all(answer.verdict is not DoctorVerdict.NO for answer in answers)
