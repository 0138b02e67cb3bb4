"""Runs the exercises side by side, each on its own scratch tables, and removes these, also when interrupted."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from mirror_assets.errors import MirrorError
from mirror_assets.features.fabric.accept.bench import Bench, Interrupted, Patience, Service
from mirror_assets.features.fabric.accept.exercise import Answer, Differs, Exercise, NotRun, Verdict
from mirror_assets.features.fabric.accept.row_exercises import ROW_EXERCISES
from mirror_assets.features.fabric.accept.scratch import remove, run_prefix
from mirror_assets.features.fabric.accept.service_exercises import SERVICE_EXERCISES

EXERCISES: tuple[Exercise, ...] = (*ROW_EXERCISES, *SERVICE_EXERCISES)
_SIDE_BY_SIDE = 12


@dataclass(frozen=True)
class Acceptance:
    """A run of exercises; `report` takes each answer when it is known. With `keep`, scratch tables are kept."""

    service: Service
    patience: Patience
    report: Callable[[Answer], None]
    keep: bool = False
    side_by_side: int = _SIDE_BY_SIDE

    def run(self, exercises: Sequence[Exercise]) -> tuple[Answer, ...]:
        """Run the exercises and return their answers, in the same order.

        After Ctrl-C or SIGTERM, the exercises that are running end at their next wait and remove their tables; those
        that have not ended are answered as not run.
        """
        prefix, answers = run_prefix(), dict[str, Answer]()
        alone = [exercise for exercise in exercises if exercise.is_alone]
        groups = [[one for one in exercises if not one.is_alone], *([one] for one in alone)]
        with _sigterm_as_interrupt(), ThreadPoolExecutor(self.side_by_side) as pool:
            try:
                for group in groups:
                    asked = [pool.submit(self._answer, exercise, prefix) for exercise in group]
                    for answer in _in_order_of_ends(asked):
                        answers[answer.name] = answer
                        self.report(answer)
            except KeyboardInterrupt:
                self.patience.stopped.set()
                pool.shutdown(cancel_futures=True)
        return tuple(answers.get(one.name) or _answer(one, Verdict.NOT_RUN, "interrupted") for one in exercises)

    def _answer(self, exercise: Exercise, prefix: str) -> Answer:
        bench = Bench(self.service, self.patience, f"{prefix}{exercise.name}")
        began = self.patience.clock()
        verdict, seen = self._seen(exercise, bench)
        seconds = self.patience.clock() - began
        if not self.keep:
            try:
                for table in bench.tables:
                    remove(self.service.store, table.name)
            except MirrorError as error:
                seen = f"{seen}. Its tables could not be removed: {error}"
        return _answer(exercise, verdict, seen, seconds, bench)

    def _seen(self, exercise: Exercise, bench: Bench) -> tuple[Verdict, str]:
        try:
            return Verdict.AS_EXPECTED, exercise.run(bench)
        except Differs as difference:
            return Verdict.DIFFERS, str(difference)
        except NotRun as reason:
            return Verdict.NOT_RUN, str(reason)
        except Interrupted:
            return Verdict.NOT_RUN, "interrupted"
        except Exception as error:  # noqa: BLE001 an exercise must not end the others
            return Verdict.UNKNOWN, str(error) if isinstance(error, MirrorError) else f"{type(error).__name__}: {error}"


def _in_order_of_ends(asked: Sequence[Future[Answer]]) -> Iterator[Answer]:
    return (future.result() for future in as_completed(asked))


def _answer(
    exercise: Exercise, verdict: Verdict, seen: str, seconds: float = 0.0, bench: Bench | None = None
) -> Answer:
    follows = {Verdict.AS_EXPECTED: exercise.fits, Verdict.DIFFERS: exercise.otherwise}
    return Answer(
        exercise.name,
        exercise.question,
        exercise.expected,
        seen,
        verdict,
        seconds,
        follows.get(verdict, "Nothing is known: run this exercise again."),
        tuple(bench.steps) if bench else (),
        tuple(bench.statements) if bench else (),
    )


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
