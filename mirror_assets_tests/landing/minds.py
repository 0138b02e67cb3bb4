"""A publisher as a pure function of the answers it got: what it was told so far, and what it wants next."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from mirror_assets.errors import MirrorError
from mirror_assets.landing.steps import Request, Steps

# The steps of a publisher that is started for the n-th time.
Start = Callable[[int], Steps[object]]


@dataclass(frozen=True)
class Raised:
    """An error as an answer; two of the same text are the same answer."""

    text: str
    error: MirrorError = field(compare=False)


@dataclass(frozen=True)
class Ended:
    """How a publisher's steps ended."""

    error: MirrorError | None = None


class Minds:
    """What each publisher was answered so far, interned as a number; what it does next is replayed once."""

    def __init__(self, starts: tuple[Start, ...]) -> None:
        self._starts = starts
        self._numbers: dict[Hashable, int] = {}
        self._answers: list[tuple[int, int, tuple[Hashable, ...]]] = []
        self._next: list[Request | Ended] = []

    def born(self, publisher: int, epoch: int) -> int:
        """The mind of a publisher that was just started for the `epoch`-th time."""
        return self._intern((publisher, epoch), publisher, epoch, ())

    def after(self, mind: int, answer: Hashable) -> int:
        """The mind after one more answer."""
        known = self._numbers.get((mind, answer))
        if known is not None:
            return known
        publisher, epoch, answers = self._answers[mind]
        return self._intern((mind, answer), publisher, epoch, (*answers, answer))

    def reborn(self, mind: int) -> int:
        """The mind of the same publisher, started once more."""
        publisher, epoch, _ = self._answers[mind]
        return self.born(publisher, epoch + 1)

    def wants(self, mind: int) -> Request | Ended:
        """The publisher's next request, or how it ended."""
        return self._next[mind]

    def _intern(self, key: Hashable, publisher: int, epoch: int, answers: tuple[Hashable, ...]) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._answers)
            self._answers.append((publisher, epoch, answers))
            self._next.append(_replayed(self._starts[publisher](epoch), answers))
        return self._numbers[key]


def _replayed(steps: Steps[object], answers: tuple[Hashable, ...]) -> Request | Ended:
    try:
        request = next(steps)
        for answer in answers:
            request = steps.throw(answer.error) if isinstance(answer, Raised) else steps.send(answer)
    except StopIteration:
        return Ended()
    except MirrorError as error:
        return Ended(error)
    return request
