"""Whatever goes wrong at whichever request, a publisher that is started again lands everything exactly once."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

import pytest

from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import Outcome, publish
from mirror_assets.landing.steps import Request, Steps
from mirror_assets.zones import Store
from mirror_assets_tests.landing import zone
from mirror_assets_tests.landing.faults import Fault, Point, points, run_with, shown
from mirror_assets_tests.landing.staging import CHECKS, TABLE, land, land_next, position_of, stage, stage_repair
from mirror_assets_tests.zones.memory import MemoryStore


@dataclass(frozen=True)
class Scenario:
    """Which slices have landed before, as (last version, parts), and which one is published under faults."""

    before: tuple[tuple[int, int], ...]
    last: int
    parts: int
    is_repair: bool = False

    def prepare(self, store: Store) -> SliceRecord:
        """The slice to publish: staged, as is one after it; the service took what it had processed."""
        for last, parts in self.before:
            land_next(store, last, parts)
            zone.consume(store)
        position = position_of(store)
        staged = stage_repair if self.is_repair else stage
        record = staged(store, position, self.last, self.parts, attempt="under test")
        stage(store, position.after(covered=self.last, files=self.parts), self.last + 1, attempt="ahead")
        return record

    def check(self, store: Store, record: SliceRecord) -> None:
        """Fail unless a publisher that starts now finds or leaves everything landed exactly once, and the zone tidy."""
        land(store, record)
        assert land(store, record).outcome is Outcome.COVERED
        slices = (*self.before, (self.last, self.parts))
        zone.require_exactly_once(store, [(last, i) for last, parts in slices for i in range(parts)], covered=self.last)
        assert zone.staged_generations(store) == [record.generation + 1]


SCENARIOS = {
    "first slice of three files": Scenario((), last=7, parts=3),
    "two files after the service moved three": Scenario(((5, 1), (7, 3)), last=8, parts=2),
    "slice without parts": Scenario(((7, 2),), last=9, parts=0),
    "repair without a new commit": Scenario(((7, 1),), last=7, parts=2, is_repair=True),
}


def steps_of(record: SliceRecord) -> Steps[object]:
    return publish(TABLE, record, CHECKS)


def requests_of(scenario: Scenario) -> list[Request]:
    store = MemoryStore()
    record = scenario.prepare(store)
    return run_with(steps_of(record), store, None)


@pytest.mark.parametrize("consuming", [False, True], ids=["", "while the service moves files"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_any_number_of_faults_in_memory(name: str, consuming: bool) -> None:
    """Follow every fault into every recovery, and every fault of that, until no new state of the zone turns up."""
    scenario, first = SCENARIOS[name], MemoryStore()
    record = scenario.prepare(first)
    runs, seen = 0, dict[Hashable, str]({first.fingerprint(): "nothing yet"})
    queue = deque([first])
    while queue:
        before = queue.popleft()
        story = seen[before.fingerprint()]
        for point in points(len(run_with(steps_of(record), before.clone(), None))):
            after = before.clone()
            requested = run_with(steps_of(record), after, point)
            runs += 1
            if consuming:
                zone.consume(after)
            if after.fingerprint() not in seen:
                seen[after.fingerprint()] = f"{story}; {point}: {shown(requested[point.at])}"
                queue.append(after)
        try:
            scenario.check(before.clone(), record)
        except Exception as error:
            raise AssertionError(story) from error
    assert runs > 100
    assert len(seen) > scenario.parts + 3


def test_a_commit_without_an_answer_is_read_back_and_goes_on() -> None:
    """Taken for a lost race, it would be staged and checked a second time for nothing."""
    scenario, store = SCENARIOS["first slice of three files"], MemoryStore()
    record = scenario.prepare(store)
    commit = [shown(request) for request in requests_of(scenario)].index(f"Create {TABLE.manifest}")
    requested = run_with(steps_of(record), store, Point(commit, Fault.ANSWER_LOST))
    assert shown(requested[commit + 1]) == f"Read {TABLE.manifest}"
    scenario.check(store, record)
