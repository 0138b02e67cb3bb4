"""Whoever is killed, wherever: everything lands once, and a control shows that this could fail."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from mirror_assets.landing.names import landing_name
from mirror_assets_tests import figures
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.kills.__main__ import print_line
from mirror_assets_tests.worlds.kills.place import OnDisk
from mirror_assets_tests.worlds.kills.points import Point, named
from mirror_assets_tests.worlds.kills.series import Series, Where
from mirror_assets_tests.worlds.kills.verdict import judge
from mirror_assets_tests.worlds.onelake import LoopbackOneLake

# Each run has a limit of its own. A kill costs the start of a Spark: most of them are left to `make soak`.
pytestmark = [pytest.mark.timeout(0), pytest.mark.long(60), pytest.mark.xdist_group("kills")]
_SEED = 4
_PROOF = "kill -9 of mirror-assets run"
_SOAK_KILLS = int(os.environ.get("KILLS", "200"))


@dataclass(frozen=True)
class Campaign:
    """The kills of one landing zone: at named points, then at random moments."""

    where: Where
    points: tuple[Point, ...]
    random: int

    def __str__(self) -> str:
        return f"{self.where}, {len(self.points)} points, {self.random} random"


CAMPAIGNS = (
    Campaign(Where.DISK, (named("between renames"),), 0),
    Campaign(Where.DISK, Where.DISK.points, _SOAK_KILLS * 6 // 10),
    Campaign(Where.UPLOAD, Where.UPLOAD.points, _SOAK_KILLS * 2 // 10),
    Campaign(Where.DIRECT, Where.DIRECT.points, _SOAK_KILLS * 2 // 10),
)


@pytest.mark.parametrize("campaign", smoke_first(CAMPAIGNS), ids=str)
def test_everything_lands_once_whenever_runs_are_killed(
    campaign: Campaign, tmp_path: Path, onelake: LoopbackOneLake
) -> None:
    with campaign.where.opened(tmp_path / "series", onelake) as place:
        series = Series(place, Random(_SEED), print_line)
        series.kill_at(campaign.points)
        series.kill_at_random(campaign.random)
        verdict = series.finish()
    for figure, amount in (
        ("kills", series.kills),
        ("at named points", len(campaign.points)),
        ("times two publishers", series.together),
        ("late requests", series.late),
        ("landing files", verdict.files),
        ("rows", verdict.rows),
        ("exactly once", int(not verdict.problems)),
    ):
        figures.report(_PROOF, figure, amount, case=str(campaign.where))
    assert verdict.problems == ()


@pytest.mark.soak
def test_a_run_that_does_not_redo_is_caught(tmp_path: Path) -> None:
    with OnDisk.opened(tmp_path / "series") as place:
        series = Series(place, Random(0), print_line)
        series.attack(None)
        place.source._insert(Random(0))
        series.attack(named("manifest swapped"))
        assert place.start("control", redo=False).end().code == 0
        found = judge(place).problems
        assert any("were committed and have not landed" in problem for problem in found), found
        series.attack(None)
        assert judge(place).problems == ()
        _land_again(place, place.eyes.newest)
        twice = " ".join(judge(place).problems)
        assert "changes too many" in twice
        assert "mirror and source differ" in twice
    figures.report(_PROOF, "controls caught", 2, case="controls")


def _land_again(place: OnDisk, number: int) -> None:
    """As a publisher would that numbers by the highest file it sees, and takes a lost reply for a failure."""
    folder = place.root / "landing" / TABLE.folder
    copy = folder / "_copy"
    copy.write_bytes((folder / landing_name(number)).read_bytes())
    copy.rename(folder / landing_name(number + 1))
