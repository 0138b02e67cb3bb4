"""Each planted fault is found by the exercises that ask about it, and by no other; without one, all is as expected."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from mirror_assets.features.fabric.accept.acceptance import Acceptance, AcceptVerdict
from mirror_assets.features.fabric.accept.bench import FabricService, Patience
from mirror_assets.features.fabric.accept.exercises import EXERCISES
from mirror_assets.features.fabric.accept.scratch import leftovers
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.lakes.access import PlainAccess
from mirror_assets_tests.features.fabric.accept.faults import ALL, FAULTS
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric
from mirror_assets_tests.worlds.fabric.planted import PlantedFabric, PlantedFault


class PollingPatience(Patience):
    """While an exercise waits, the stand-in applies what has landed; the clock moves only then."""

    def __init__(self, planted: PlantedFabric) -> None:
        self._planted, self._seconds = planted, 0.0
        super().__init__(limit_seconds=3.0, pause_seconds=0.0, clock=lambda: self._seconds)

    def pause(self) -> None:
        super().pause()
        self._planted.poll()
        self._seconds += 1.0


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here has to survive a power cut, and a third of the time would be spent on that."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def differing(
    fault: PlantedFault, exercises: Collection[str], folder: Path, fabric: LoopbackFabric, client: FabricClient
) -> dict[str, str]:
    """Run the exercises, one after another; return what those that differ have seen. The others are as expected."""
    planted = PlantedFabric(folder, replace(fault, old_rows={}))
    database = fabric.interface.add(planted.database)
    service = FabricService(planted.store, client, UUID(database.id), str(planted.mirror), "dbo", PlainAccess)
    asked = [one for one in EXERCISES if one.name in exercises]
    answers = Acceptance(service, PollingPatience(planted), lambda _: None, side_by_side=1).run(asked)
    assert [one.name for one in answers] == [one.name for one in asked]
    assert {one.verdict for one in answers} <= {AcceptVerdict.AS_EXPECTED, AcceptVerdict.DIFFERS}, answers
    assert leftovers(planted.store) == ()
    return {one.name: one.seen for one in answers if one.verdict is AcceptVerdict.DIFFERS}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_the_exercises_that_ask_about_it(
    name: str, tmp_path: Path, fabric: LoopbackFabric, client: FabricClient
) -> None:
    fault, expected = FAULTS[name]
    assert differing(fault, expected, tmp_path, fabric, client).keys() == expected


@pytest.mark.long(5)
@pytest.mark.parametrize("name", ["none", *(pytest.param(name, marks=pytest.mark.soak) for name in FAULTS)])
def test_a_fault_is_found_by_no_other_exercise(
    name: str, tmp_path: Path, fabric: LoopbackFabric, client: FabricClient
) -> None:
    fault, expected = FAULTS.get(name, (PlantedFault(), frozenset()))
    assert differing(fault, ALL, tmp_path, fabric, client).keys() == expected
