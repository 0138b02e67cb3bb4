"""The publish protocol, as it ships, under every schedule of publishers, service and network within small bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest

from mirror_assets.errors import ErrorRow, MirrorError
from mirror_assets.landing.errors import STAGED_FILE_LOST
from mirror_assets_tests import figures
from mirror_assets_tests.landing.cases import (
    chained,
    cut_twice,
    doubled,
    first,
    following,
    keyed,
    repaired,
    restaged,
    runs,
    stalled,
)
from mirror_assets_tests.landing.chunk_cases import cut_again, gone_on_with, in_chunks
from mirror_assets_tests.landing.damage import (
    foreign_file,
    lost_part,
    manifest_lost,
    rewritten_part,
    unchecked_part,
)
from mirror_assets_tests.landing.rebuild_cases import (
    rebuilt,
    rebuilt_beside_a_publisher,
    rebuilt_beside_a_run,
    rebuilt_twice,
)
from mirror_assets_tests.landing.roll_up_cases import rolled_up, rolled_up_again, rolled_up_and_lost
from mirror_assets_tests.landing.schedules import Case, Search, worlds_of
from mirror_assets_tests.landing.service import Service, keeps_the_last, puts_all_aside, takes_all
from mirror_assets_tests.zones.memory import MemoryStore


@dataclass(frozen=True)
class Bounds:
    """A case, the faults that it may meet, and how many worlds it must have, lest the search become trivial."""

    name: str
    case: Callable[[MemoryStore], Case]
    worlds: int
    losses: int = 0
    crashes: int = 0
    service: Service = keeps_the_last
    refusals: tuple[ErrorRow[MirrorError], ...] = ()

    def __str__(self) -> str:
        faults = (("crashes", self.crashes), ("losses", self.losses))
        return ", ".join((self.name, *(f"{fault} {count}" for fault, count in faults if count)))

    def search(self) -> int:
        """How many worlds there are; also reported."""
        began = time.process_time()
        worlds = worlds_of(self.case) if self._is_calm else Search(self._bounded()).run()
        figures.report("every schedule", "states", worlds, case=str(self))
        figures.report("every schedule", "CPU seconds", time.process_time() - began, case=str(self))
        return worlds

    @property
    def _is_calm(self) -> bool:
        """Whether the case may meet nothing that it does not meet by itself."""
        return (self.losses, self.crashes, self.service, self.refusals) == (0, 0, keeps_the_last, ())

    def _bounded(self) -> Case:
        case = self.case(MemoryStore())
        refusals = (*case.refusals, *self.refusals)
        return replace(case, losses=self.losses, crashes=self.crashes, service=self.service, refusals=refusals)


# Searches of what may meet nothing else are shared with those of the rules that are taken away.
pytestmark = [pytest.mark.long(2), pytest.mark.xdist_group("schedules")]
TWO = partial(following, parts=2)
THREE = partial(following, publishers=3)
CI = (
    Bounds("first slice of two files", partial(first, parts=2), 2_500),
    Bounds("first slice", first, 100_000, losses=1, crashes=1),
    Bounds("next slice of two files", TWO, 4_000),
    Bounds("next slice without files", partial(following, parts=0), 100),
    Bounds("next slice", following, 100_000, losses=1, crashes=1),
    Bounds("next slice", following, 60_000, losses=2),
    Bounds("next slice, three publishers", THREE, 150_000),
    Bounds("next slice, even the last file put aside", following, 20_000, losses=1, service=puts_all_aside),
    Bounds("next slice, even the last file removed", following, 5_000, 0, 1, takes_all, (STAGED_FILE_LOST,)),
    Bounds("keys are added", keyed, 5_000, losses=1),
    Bounds("keys are added, and one knows of none", partial(keyed, keys=(("id",), ())), 5_000, losses=1),
    Bounds("one is overtaken by two slices", stalled, 5_000),
    Bounds("two slices, one publisher each", partial(chained, parts=2), 5_000),
    Bounds("two slices, one publisher each", chained, 10_000, losses=1),
    Bounds("cut as two slices and as one", cut_twice, 5_000),
    Bounds("one attempt, two publishers", partial(doubled, parts=2), 4_500),
    Bounds("repair beside the next slice", repaired, 5_000, losses=1),
    Bounds("repair beside the next slice", partial(repaired, parts=2), 1_000, crashes=1),
    Bounds("repair with a commit, beside the next slice", partial(repaired, last=8), 5_000, losses=1),
    Bounds("late create of a staged part of two", partial(restaged, parts=2), 18_000),
    Bounds("two runs stage for themselves", runs, 20_000, crashes=1),
    Bounds("two runs stage for themselves", runs, 30_000, losses=1),
    Bounds("first load of two chunks", in_chunks, 40_000),
    Bounds("first load of two chunks, one publisher", partial(in_chunks, publishers=1), 2_000, losses=1, crashes=1),
    Bounds("next chunks, two runs", gone_on_with, 8_000),
    Bounds("rest of a load, cut as two chunks and as one", cut_again, 9_000),
    Bounds("history is rolled up", rolled_up, 50_000, losses=1),
    Bounds("history is rolled up, one publisher", partial(rolled_up, publishers=1), 1_000, losses=1, crashes=1),
    Bounds("history is rolled up again", rolled_up_again, 50_000, crashes=1),
    Bounds("history is rolled up again, one", partial(rolled_up_again, publishers=1), 500, 1, 1, puts_all_aside),
    Bounds("history is rolled up, manifest deleted", rolled_up_and_lost, 5_000),
    Bounds("manifest deleted at any time", manifest_lost, 4_000),
    Bounds("rebuild, requests of the ended epoch late", rebuilt, 50_000),
    Bounds("rebuild beside a publisher", rebuilt_beside_a_publisher, 80_000, crashes=1),
    Bounds("rebuild beside a run", rebuilt_beside_a_run, 10_000),
    Bounds("two rebuilds", rebuilt_twice, 30_000),
    Bounds("a foreign file", foreign_file, 1_000),
    Bounds("a committed part is gone", lost_part, 50),
    Bounds("a part rewritten after its checks", rewritten_part, 50),
    Bounds("a part that no check has seen", unchecked_part, 50),
)
SOAK = (
    Bounds("first slice, three publishers", partial(first, publishers=3), 200_000),
    Bounds("next slice, three publishers", THREE, 1_000_000, crashes=1),
    Bounds("next slice, three publishers", THREE, 1_000_000, losses=1),
    Bounds("one attempt, three publishers", partial(doubled, publishers=3), 130_000),
    Bounds("next slice of two files", TWO, 700_000, losses=1, crashes=1),
    Bounds("next slice", following, 250_000, losses=3),
    Bounds("next slice, even the last file removed", following, 500_000, 1, 1, takes_all, (STAGED_FILE_LOST,)),
    Bounds("one is overtaken by two slices", stalled, 1_000_000, losses=1, crashes=1),
    Bounds("cut as two slices and as one", cut_twice, 100_000, losses=1),
    Bounds("cut as two slices and as one", partial(cut_twice, parts=2), 400_000, crashes=1),
    Bounds("three runs stage for themselves", partial(runs, publishers=3), 3_000_000),
    Bounds("two runs of two slices", partial(runs, slices=((7, 1), (8, 1))), 600_000),
    Bounds("first load of two chunks", in_chunks, 650_000, crashes=1),
    Bounds("first load of two chunks", in_chunks, 800_000, losses=1),
    Bounds("next chunks, two runs", gone_on_with, 200_000, crashes=1),
    Bounds("next chunks, two runs", gone_on_with, 150_000, losses=1),
    Bounds("history is rolled up", rolled_up, 50_000, crashes=1),
    Bounds("history is rolled up", rolled_up, 50_000, losses=1),
    Bounds("history is rolled up again", rolled_up_again, 50_000, losses=1),
    Bounds("history is rolled up again, files put aside", rolled_up_again, 350_000, service=puts_all_aside),
    Bounds("manifest deleted at any time", manifest_lost, 50_000, crashes=1),
    Bounds("rebuild, requests of the ended epoch late", rebuilt, 350_000, crashes=1),
    Bounds("rebuild beside a publisher", rebuilt_beside_a_publisher, 2_000_000, losses=1, crashes=1),
    Bounds("rebuild beside a publisher", rebuilt_beside_a_publisher, 1_500_000, losses=2),
    Bounds("rebuild beside a run", rebuilt_beside_a_run, 200_000, crashes=1),
    Bounds("rebuild beside a run", rebuilt_beside_a_run, 200_000, losses=1),
    Bounds("two rebuilds", rebuilt_twice, 1_500_000, crashes=1),
    Bounds("two rebuilds", rebuilt_twice, 1_000_000, losses=1),
)


@pytest.mark.parametrize("bounds", CI, ids=str)
def test_every_schedule_lands_each_slice_once(bounds: Bounds) -> None:
    assert bounds.search() > bounds.worlds


@pytest.mark.soak
@pytest.mark.parametrize("bounds", SOAK, ids=str)
def test_every_schedule_within_larger_bounds(bounds: Bounds) -> None:
    assert bounds.search() > bounds.worlds
