"""Tries one mishap, or pair of mishaps, after another, and counts them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mirror_assets_tests.worlds.faults.bench import Bench
from mirror_assets_tests.worlds.faults.scenarios import Scenario, Work
from mirror_assets_tests.worlds.faults.trial import Broken, Mishap, Trial, requests_of, run
from mirror_assets_tests.worlds.onelake import Record

Case = tuple[Mishap] | tuple[Mishap, Mishap]


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
