"""The doctor's answers: each with its subject, its question, a verdict, and the next step where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from mirror_assets.errors import MirrorError


class Verdict(str, Enum):
    """`warn`: it works, and something is to be known. `not asked`: nothing is known."""

    OK = "ok"
    WARN = "warn"
    NO = "no"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Finding:
    """What a question has found; `next_step` is empty where there is nothing to do."""

    verdict: Verdict
    words: str
    next_step: str = ""


@dataclass(frozen=True)
class Answer:
    """A finding with its subject, a table or the landing zone, and its question."""

    subject: str
    question: str
    verdict: Verdict
    words: str
    next_step: str = ""

    @classmethod
    def of(cls, subject: str, question: str, finding: Finding) -> Answer:
        """Return the finding as the answer to a question."""
        return cls(subject, question, finding.verdict, finding.words, finding.next_step)

    @property
    def text(self) -> str:
        """The words, with the next step behind them."""
        return f"{self.words.rstrip('.')}. Next: {self.next_step}" if self.next_step else self.words


def ok(words: str) -> Finding:
    """Return that it is as it should be."""
    return Finding(Verdict.OK, words)


def warn(words: str, next_step: str) -> Finding:
    """Return that it works, and what is to be known."""
    return Finding(Verdict.WARN, words, next_step)


def not_asked(why: str) -> Finding:
    """Return that nothing is known, and why."""
    return Finding(Verdict.NOT_ASKED, why)


def no(error: MirrorError) -> Finding:
    """Return what is wrong, in the words of the error that a run would end with."""
    return Finding(Verdict.NO, error.what, error.next_step)


def is_well(answers: Iterable[Answer]) -> bool:
    """Return whether no answer is `no`."""
    return all(answer.verdict is not Verdict.NO for answer in answers)
