"""Each planted fault is found by the exercises that ask about it, and by no other; without one, all is as expected."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import pytest

from mirror_assets.features.fabric.accept.acceptance import Acceptance, Answer, Verdict
from mirror_assets.features.fabric.accept.bench import Patience, Service
from mirror_assets.features.fabric.accept.exercises import EXERCISES
from mirror_assets.features.fabric.accept.scratch import leftovers
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.landing.names import TableName
from mirror_assets_tests.features.fabric.accept.faults import ALL, FAULTS
from mirror_assets_tests.pages import DOCS, sections
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric
from mirror_assets_tests.worlds.fabric.planted import PlantedFabric


class PollingPatience(Patience):
    """While an exercise waits, the stand-in applies what has landed; the clock moves only then."""

    def __init__(self, planted: PlantedFabric) -> None:
        self._planted, self._seconds = planted, 0.0
        super().__init__(limit_seconds=3.0, pause_seconds=0.0, clock=lambda: self._seconds)

    def pause(self) -> None:
        super().pause()
        self._planted.poll()
        self._seconds += 1.0


def answers_of(planted: PlantedFabric, fabric: LoopbackFabric, client: FabricClient) -> tuple[Answer, ...]:
    """Run all exercises, one after another."""
    database = fabric.interface.add(planted.database)
    service = Service(planted.store, client, UUID(database.id), str(planted.mirror), "dbo", PlainAccess)
    return Acceptance(service, PollingPatience(planted), lambda _: None, side_by_side=1).run(EXERCISES)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_the_exercises_that_ask_about_it(
    name: str, tmp_path: Path, fabric: LoopbackFabric, client: FabricClient
) -> None:
    fault, expected = FAULTS[name]
    planted = PlantedFabric(tmp_path, replace(fault, old_rows={}))
    answers = answers_of(planted, fabric, client)
    assert {one.name: one.seen for one in answers if one.verdict is Verdict.DIFFERS}.keys() == expected, answers
    assert {one.verdict for one in answers if one.name not in expected} <= {Verdict.AS_EXPECTED}
    assert {one.name for one in answers} == ALL
    assert leftovers(planted.store) == ()
