"""One run of a process with mishaps at its requests, and everything that must hold whatever they were."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.zones import Store
from mirror_assets_tests.landing import zone
from mirror_assets_tests.landing.staging import position_of, stage
from mirror_assets_tests.worlds.faults.bench import Bench
from mirror_assets_tests.worlds.faults.kinds import Kind
from mirror_assets_tests.worlds.faults.scenarios import Scenario, Work, landing
from mirror_assets_tests.worlds.onelake import Call, Fault, Held, Moment, Record

_STARTS = 5
_WITHOUT_END = 1 << 30


class Arrival(Enum):
    """When a request that was held takes effect."""

    MEANWHILE = "while its sender goes on"
    ENDED = "when its sender has ended"
    OVERTAKEN = "when another publisher has gone on"
    CONSUMED = "when another has gone on and the service has moved the files"


@dataclass(frozen=True)
class Mishap:
    """A kind of fault at the `at`-th request, from 1; `lasting`: and at all that follow, until the process ends."""

    at: int
    kind: Kind
    lasting: bool = False
    arrival: Arrival = Arrival.ENDED

    def __str__(self) -> str:
        arrival = f", {self.arrival.value}" if self.kind is Kind.HELD else ""
        return f"request {self.at}{' and all after it' if self.lasting else ''}: {self.kind}{arrival}"

    def faults(self, bench: Bench) -> tuple[Fault, ...]:
        times = _WITHOUT_END if self.lasting else 1
        fault = Fault(self.kind.action(bench.server), nth=self.at, times=times)
        if self.kind is not Kind.HELD or self.arrival is not Arrival.MEANWHILE:
            return (fault,)
        # The request is asked again at once; the one that was held arrives behind that.
        return (fault, Fault(Call(lambda _: _release(bench.server.faults.held), Moment.BEFORE), nth=self.at + 2))


@dataclass(frozen=True)
class Trial:
    """How it went: how often the process ended with an error, and whether the last mishap came to pass."""

    errors: int
    met: bool


Case = tuple[Mishap] | tuple[Mishap, Mishap]


class Broken(AssertionError):
    """A promise is broken, or the harness has seen a publisher do what none of ours may."""


def requests_of(bench: Bench, context: Work) -> tuple[Record, ...]:
    """The requests of the process when nothing happens to them."""
    bench.begin()
    context.process(bench.store)
    records = bench.server.log.storage
    require_done(bench, context)
    return records


def run(bench: Bench, context: Work, first: Mishap, second: Mishap | None = None) -> Trial:
    """The process under these mishaps, started again until it ends well. Raises Broken.

    The second one counts requests from the beginning too; behind a lasting one, from the start after it.
    """
    bench.begin()
    bench.server.faults.add(*first.faults(bench))
    if second is not None and not first.lasting:
        bench.server.faults.add(*second.faults(bench))
    errors = _run_to_the_end(bench, context, second if first.lasting else None, lasting=first.lasting)
    met = not bench.server.faults.unmet
    _arrive(bench, first.arrival)
    require_done(bench, context)
    return Trial(errors, met)


def _run_to_the_end(bench: Bench, context: Work, then: Mishap | None, *, lasting: bool) -> int:
    """Start the process until it ends well; how often it ended with an error, which may say only: try again.

    What lasts ends with the first of them, and `then` begins.
    """
    for errors in range(_STARTS):
        try:
            context.process(bench.store)
        except MirrorError as error:
            if not isinstance(error, RetryError | UnknownOutcome):
                raise Broken(f"ended with {error!r}") from error
            if lasting and errors == 0:
                bench.server.faults.end()
                bench.server.faults.add(*then.faults(bench) if then else ())
        else:
            return errors
    raise Broken(f"does not end well in {_STARTS} starts")


def _arrive(bench: Bench, arrival: Arrival) -> None:
    """Let what was held take effect, in the order in which it was sent."""
    held = bench.server.faults.held
    bench.server.faults.clear()
    if arrival in (Arrival.OVERTAKEN, Arrival.CONSUMED):
        follow(bench.store)
    if arrival is Arrival.CONSUMED:
        bench.consume()
    _release(held)


def follow(store: Store) -> None:
    """Another process stages the next slice and publishes it."""
    position = position_of(store)
    landing(stage(store, position, position.covered + 1, attempt="another process"))(store)


def require_done(bench: Bench, context: Work) -> None:
    """Raise Broken unless all has landed exactly once, nothing else was ever visible, and others can go on."""
    if bench.eyes.wrong:
        raise Broken("; ".join(bench.eyes.wrong))
    memory = bench.memory()
    try:
        context.process(memory)
        follow(memory)
        follow(memory)
        position = position_of(memory)
        followed = [(last, 0) for last in range(context.covered + 1, position.covered + 1)]
        zone.require_exactly_once(memory, [*context.contents, *followed], position.covered)
        assert set(zone.staged_generations(memory)) <= {position.generation - 1}
    except (MirrorError, AssertionError) as error:
        raise Broken(f"afterwards: {error!r}") from error


def _release(held: Iterable[Held]) -> None:
    for request in held:
        request.release()


@dataclass(frozen=True)
class Tally:
    """How many cases came to pass, and how often their processes ended with an error and were started again."""

    cases: int
    restarts: int


class Sweep:
    """A scenario on the bench, with the requests of its process."""

    def __init__(self, bench: Bench, scenario: Scenario, files: Path) -> None:
        self._bench, self._name = bench, scenario.name
        self._context: Work = scenario.prepare(bench, files)
        bench.save()
        self.records: tuple[Record, ...] = requests_of(bench, self._context)

    def run(self, cases: Iterable[Case]) -> Tally:
        """Try the cases; counts those whose mishaps came to pass. Raises Broken at the first that breaks a promise."""
        trials = [trial for case in cases if (trial := self._try(case)).met]
        return Tally(len(trials), sum(trial.errors for trial in trials))

    def _try(self, case: Case) -> Trial:
        try:
            return run(self._bench, self._context, *case)
        except Exception as error:
            raise Broken(f"{self._name}, {' then '.join(map(str, case))}") from error
