"""Every kind of fault at every request of every scenario: all lands exactly once, and nothing partial is ever seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from mirror_assets_tests import figures
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.faults.bench import Bench
from mirror_assets_tests.worlds.faults.kinds import Kind
from mirror_assets_tests.worlds.faults.matrix import every, every_pair, rotating, some_pairs
from mirror_assets_tests.worlds.faults.scenarios import SCENARIOS, Scenario
from mirror_assets_tests.worlds.faults.trial import Arrival, Case, Sweep
from mirror_assets_tests.worlds.onelake import Operation, Record

SINGLE, PAIRS = "one fault on the loopback OneLake", "two faults on the loopback OneLake"
Cases = Callable[[Sequence[Record], int], Iterable[Case]]
_CASES: dict[str, tuple[str, Cases]] = {
    "one fault at any request": (SINGLE, lambda records, turn: ((mishap,) for mishap in rotating(records, turn))),
    "a second fault during recovery": (PAIRS, lambda records, _: some_pairs(records)),
    "every fault at every request": (SINGLE, lambda records, _: ((mishap,) for mishap in every(records))),
    "every second fault during recovery": (PAIRS, lambda records, _: every_pair(records)),
}


@pytest.mark.long(8)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
@pytest.mark.parametrize(("proof", "cases"), smoke_first(list(_CASES.values()), 2), ids=_CASES)
def test_all_lands_once(
    bench: Bench,
    tmp_path: Path,
    proof: str,
    cases: Cases,
    scenario: Scenario,
) -> None:
    sweep = Sweep(bench, scenario, tmp_path / "files")
    tally = sweep.run(cases(sweep.records, SCENARIOS.index(scenario)))
    for figure, amount in (("cases", tally.cases), ("restarts", tally.restarts), ("exactly once", tally.cases)):
        figures.report(proof, figure, amount, case=scenario.name)


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
