"""Every kind of fault at every request of every scenario: all lands exactly once, and nothing partial is ever seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets_tests import figures
from mirror_assets_tests.faults.bench import Bench
from mirror_assets_tests.faults.kinds import Kind
from mirror_assets_tests.faults.matrix import every, rotating
from mirror_assets_tests.faults.pairs import every_pair, some_pairs
from mirror_assets_tests.faults.scenarios import SCENARIOS, Scenario
from mirror_assets_tests.faults.sweep import Sweep, Tally
from mirror_assets_tests.faults.trial import Arrival
from mirror_assets_tests.onelake import Operation, Record

SINGLE, PAIRS = "one fault on the loopback OneLake", "two faults on the loopback OneLake"
SweepOf = Callable[[Scenario], Sweep]


@pytest.fixture
def sweep_of(bench: Bench, tmp_path: Path) -> SweepOf:
    return lambda scenario: Sweep(bench, scenario, tmp_path / "files")


def show(proof: str, scenario: Scenario, tally: Tally) -> None:
    for figure, amount in (("cases", tally.cases), ("restarts", tally.restarts), ("exactly once", tally.cases)):
        figures.report(proof, figure, amount, case=scenario.name)


@pytest.mark.long(8)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_fault_at_any_request(sweep_of: SweepOf, scenario: Scenario) -> None:
    sweep = sweep_of(scenario)
    show(SINGLE, scenario, sweep.run((mishap,) for mishap in rotating(sweep.records, SCENARIOS.index(scenario))))


@pytest.mark.soak
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_every_fault_at_every_request(sweep_of: SweepOf, scenario: Scenario) -> None:
    sweep = sweep_of(scenario)
    show(SINGLE, scenario, sweep.run((mishap,) for mishap in every(sweep.records)))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_second_fault_during_recovery(sweep_of: SweepOf, scenario: Scenario) -> None:
    sweep = sweep_of(scenario)
    show(PAIRS, scenario, sweep.run(some_pairs(sweep.records)))


@pytest.mark.soak
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_every_second_fault_during_recovery(sweep_of: SweepOf, scenario: Scenario) -> None:
    sweep = sweep_of(scenario)
    show(PAIRS, scenario, sweep.run(every_pair(sweep.records)))


def records(*operations: Operation) -> tuple[Record, ...]:
    return tuple(Record(operation, "", "", 200, 0, 10) for operation in operations)


def test_what_changes_from_request_to_request_comes_round_to_every_kind() -> None:
    requested = records(*[Operation.READ, Operation.RENAME] * 30)
    assert {mishap.kind for mishap in rotating(requested)} == set(Kind)
    assert {mishap.kind for mishap in rotating(requested, 1) if mishap.lasting} == {
        kind for kind in Kind if kind.can_last
    }
    assert {mishap.arrival for mishap in rotating(requested)} == set(Arrival)
    assert set(rotating(requested)) <= set(every(requested))
    assert len(set(every(requested))) == len(list(every(requested)))
