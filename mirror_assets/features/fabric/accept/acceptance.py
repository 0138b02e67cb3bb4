"""Runs the exercises side by side, each on its own scratch tables, and removes these, also when interrupted."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import FrameType

from mirror_assets.errors import MirrorError
from mirror_assets.features.fabric.accept.bench import Differs, ExerciseBench, FabricService, NotRun, Patience
from mirror_assets.features.fabric.accept.exercises import Exercise
from mirror_assets.features.fabric.accept.scratch import PREFIX, remove

_AGAIN = "Nothing: run this exercise again."


class AcceptVerdict(str, Enum):
    """The result of an exercise; UNKNOWN if it could not be observed, for example after an error of a request."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    UNKNOWN = "unknown"
    NOT_RUN = "not run"


PROBLEMS = (AcceptVerdict.DIFFERS, AcceptVerdict.UNKNOWN)


@dataclass(frozen=True)
class ExerciseAnswer:
    """What an exercise has seen, and what follows. `steps` are seconds, `statements` SQL for the SQL endpoint."""

    name: str
    expected: str
    seen: str
    verdict: AcceptVerdict
    seconds: float
    follows: str
    steps: dict[str, float]
    statements: list[str]


@dataclass(frozen=True)
class Acceptance:
    """A run of exercises; `report` takes each answer when it is known. With `keep`, scratch tables remain."""

    service: FabricService
    patience: Patience
    report: Callable[[ExerciseAnswer], None]
    keep: bool = False
    side_by_side: int = 24

    def run(self, exercises: Sequence[Exercise]) -> tuple[ExerciseAnswer, ...]:
        """Run the exercises and return the answers of those that have begun, in the same order.

        After Ctrl-C or SIGTERM, the exercises end at their next wait, and remove their tables.
        """
        prefix, answers = f"{PREFIX}{secrets.token_hex(3)}_", dict[str, ExerciseAnswer]()
        groups = [[one for one in exercises if not one.is_alone], *([one] for one in exercises if one.is_alone)]
        with _sigterm_as_interrupt(), ThreadPoolExecutor(self.side_by_side) as pool:
            for group in groups:
                asked = [pool.submit(self._answer, one, f"{prefix}{one.name}") for one in group]
                try:
                    for future in as_completed(asked):
                        answers[future.result().name] = future.result()
                        self.report(future.result())
                except KeyboardInterrupt:
                    self.patience.interrupted.set()
                    pool.shutdown(cancel_futures=True)
                    answers |= {one.result().name: one.result() for one in asked if not one.cancelled()}
                    break
        return tuple(answers[one.name] for one in exercises if one.name in answers)

    def _answer(self, exercise: Exercise, prefix: str) -> ExerciseAnswer:
        bench, began = ExerciseBench(self.service, self.patience, prefix), self.patience.clock()
        verdict, seen = _verdict(exercise, bench)
        seconds = self.patience.clock() - began
        for table in () if self.keep else bench.tables:
            try:
                remove(self.service.store, table.name)
            except MirrorError as error:
                seen = f"{seen}; {table.name} was not deleted: {error}"
        advice = {AcceptVerdict.AS_EXPECTED: exercise.fits, AcceptVerdict.DIFFERS: exercise.otherwise}
        follows, (name, expected) = advice.get(verdict, _AGAIN), (exercise.name, exercise.expected)
        return ExerciseAnswer(name, expected, seen, verdict, seconds, follows, bench.steps, bench.statements)


def _verdict(exercise: Exercise, bench: ExerciseBench) -> tuple[AcceptVerdict, str]:
    try:
        return AcceptVerdict.AS_EXPECTED, exercise.run(bench)
    except Differs as difference:
        return AcceptVerdict.DIFFERS, str(difference)
    except NotRun as reason:
        return AcceptVerdict.NOT_RUN, str(reason)
    except Exception as error:  # noqa: BLE001 one exercise must not end the others
        kind = "" if isinstance(error, MirrorError) else f"{type(error).__name__}: "
        return AcceptVerdict.UNKNOWN, f"{kind}{error}"


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM as Ctrl-C within the block."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
