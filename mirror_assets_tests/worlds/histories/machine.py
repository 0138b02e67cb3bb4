"""Long histories: anything may happen to source, publishers and consumer, in any order."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from pyspark.sql import SparkSession

from mirror_assets_tests import figures
from mirror_assets_tests.worlds.histories import alterations, by_rust, replacements, rows
from mirror_assets_tests.worlds.histories.faulty import Fault, Happening
from mirror_assets_tests.worlds.histories.setup import CHOOSING_SETUPS, LIMITS, MANY_PARTS, SETUPS, Limits, Setup, Way
from mirror_assets_tests.worlds.histories.statement import PICKS, Pick, bursts
from mirror_assets_tests.worlds.histories.world import PROOF, Burst, Run, World

STATEMENTS = (
    *rows.STATEMENTS,
    *replacements.STATEMENTS,
    *alterations.SCHEMA,
    *alterations.OTHERS,
    *by_rust.STATEMENTS,
)
# A slice takes about 50 requests, 6 of them writes, and a rebuild some more.
FAULTS = st.builds(Fault, st.sampled_from(Happening), st.integers(0, 55), st.just(False)) | st.builds(
    Fault, st.sampled_from(Happening), st.integers(0, 12), st.just(True)
)
RUNS = st.sampled_from([*[Run.PUBLISH] * 5, *[Run.MIRROR] * 3, *Run])
# Whether a history begins with a first load; else its first run may be disturbed, too.
LOADED = st.sampled_from([True, True, False])


class Histories(RuleBasedStateMachine):
    """A history at a time; each run may be killed, unanswered or overtaken at one request."""

    def __init__(self, spark: SparkSession, root: Path, way: Way) -> None:
        super().__init__()
        self._of = (spark, root, way)
        self._world: World | None = None

    @property
    def world(self) -> World:
        """What it happens to."""
        assert self._world
        return self._world

    @initialize(setup=SETUPS, pick=PICKS, limits=LIMITS, loaded=LOADED, salt=st.integers(0, 2**16))
    def begin(self, setup: Setup, pick: Pick, limits: Limits, loaded: bool, salt: int) -> None:
        assume(salt)  # Hypothesis begins with the simplest history of all, in which next to nothing happens
        self._world = World(*self._of, setup)
        self.world.begin(pick, limits)
        if loaded:
            self.world.publish()

    @rule(burst=bursts(STATEMENTS, least=2, most=6), limits=LIMITS, run=RUNS, fault=FAULTS)
    def go_on(self, burst: Burst, limits: Limits, run: Run, fault: Fault) -> None:
        """Statements, and then a run with settings of its own."""
        self.world.commit(burst)
        self.world.cut_by(limits)
        self.world.run(run, fault)

    @invariant()
    def landed_as_it_should(self) -> None:
        if self._world:
            self._world.look()

    def teardown(self) -> None:
        if self._world and sys.exc_info()[0] is None:
            self._world.end()


class ChoosingHistories(Histories):
    """The same, with a condition for rows, a mask and a derived column."""

    @initialize(setup=CHOOSING_SETUPS, pick=PICKS, limits=LIMITS, loaded=LOADED, salt=st.integers(0, 2**16))
    def begin(self, setup: Setup, pick: Pick, limits: Limits, loaded: bool, salt: int) -> None:
        super().begin(setup, pick, limits, loaded, salt)


class ChurningHistories(Histories):
    """The same, with slices of many parts in which most keys change in several commits."""

    @rule(burst=bursts(replacements.CHURN, least=3, most=6), limits=MANY_PARTS, run=RUNS, fault=FAULTS)
    def churn(self, burst: Burst, limits: Limits, run: Run, fault: Fault) -> None:
        """Most rows replaced again and again, and then a run of one slice."""
        self.go_on(burst, limits, run, fault)


def run(
    spark: SparkSession,
    root: Path,
    way: Way,
    histories: int,
    steps: int,
    seed: int | None = None,
    machine: type[Histories] = ChurningHistories,
) -> None:
    """Run that many histories. A failure is not made smaller: that would take hours of Spark."""
    numbers, began = itertools.count(), time.monotonic()

    def begin() -> Histories:
        return machine(spark, root / str(next(numbers)), way)

    seeded = begin if seed is None else hypothesis.seed(seed)(begin)
    run_state_machine_as_test(seeded, settings=_profile(histories, steps))  # type: ignore[arg-type] # any factory will do
    figures.report(PROOF, "seconds", time.monotonic() - began, case=way.value)


def _profile(histories: int, steps: int) -> settings:
    return settings(
        max_examples=histories,
        stateful_step_count=steps,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
