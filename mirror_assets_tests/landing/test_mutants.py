"""Each rule of the protocol is needed: without it some schedule breaks, and with it the same case holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mirror_assets_tests import figures
from mirror_assets_tests.landing.mutants import MUTANTS, Mutant
from mirror_assets_tests.landing.schedules import Search, Violation, worlds_of

# What holds as it is, is searched once for the schedules, too.
pytestmark = [pytest.mark.long(2), pytest.mark.xdist_group("schedules")]


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_without_the_rule_a_schedule_breaks(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    assert worlds_of(mutant.sound or mutant.case) > 50
    case = mutant.case(mutant.store())
    if mutant.patch:
        monkeypatch.setattr(*mutant.patch)
    with pytest.raises(Violation, match=mutant.broken) as schedule:
        Search(case).run()
    record_property("schedule", f"{mutant.story}\n{schedule.value}")
    figures.report("mutants", "caught", 1)
    figures.report("mutants", "steps", len(str(schedule.value).splitlines()) - 1, case=mutant.rule)
