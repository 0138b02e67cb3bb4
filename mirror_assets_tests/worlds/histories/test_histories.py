"""Histories at random: after every step nothing is lost, doubled or partial, and each ends equal to its source.

With a bug in the encoder or the plan, and no checks of staged parts, a history fails soon.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests import figures
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.histories.bugs import BUGS, Bug, unchecked
from mirror_assets_tests.worlds.histories.history import MANY_PARTS, SALT, Choices, History, Outcome, Way
from mirror_assets_tests.worlds.histories.steps import ROWS, RUST

# All that a history does follows from its seed and its way, and a longer one begins like a shorter one. A seed that
# makes one fail belongs here until it is a test.
_SEEDS = {Way.FEED: 101, Way.COMPACT: 102, Way.FILES: 103, Way.TRACKED: 104, Way.KEYLESS: 105, Way.APPENDS: 106}
_MANY = tuple((number, tuple(Way)[number % len(Way)]) for number in range(72))
_OF_ROWS = Choices((*ROWS, *RUST[:5]), commits=(100,), rows=(1000,), target_rows=(1, 1000), is_plain=True)


def _run(history: History, bursts: int, proof: str = "histories") -> Outcome:
    outcome = history.run(bursts)
    for figure, amount in outcome.figures.items():
        figures.report(proof, figure, amount, case=history.way.value)
    return outcome


@pytest.mark.long(30)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("bursts", smoke_first([5, 15]))
@pytest.mark.parametrize(("way", "seed"), [pytest.param(way, seed, id=way.value) for way, seed in _SEEDS.items()])
def test_every_history_ends_equal_to_its_source(
    adaptive_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way, seed: int, bursts: int
) -> None:
    monkeypatch.setenv("SALT", SALT)
    outcome = _run(History(adaptive_spark, tmp_path, seed, way), bursts)
    assert outcome.failure is None, "\n".join([outcome.failure or "", *outcome.steps])


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("number", "way"), _MANY, ids=lambda value: getattr(value, "value", value))
def test_many_long_histories_end_equal_to_their_source(
    adaptive_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    number: int,
    way: Way,
) -> None:
    monkeypatch.setenv("SALT", SALT)
    seed = int(request.config.getoption("--hypothesis-seed") or 0) + number
    outcome = _run(History(adaptive_spark, tmp_path, seed, way), bursts=15)
    assert outcome.failure is None, "\n".join([outcome.failure or "", *outcome.steps])


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_bug_still_fits_the_encoder(monkeypatch: pytest.MonkeyPatch, bug: Bug) -> None:
    bug.inject(monkeypatch)


@pytest.mark.long(15)
@pytest.mark.parametrize("bug", smoke_first(BUGS, 3), ids=str)
def test_a_bug_is_found(
    adaptive_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: Bug
) -> None:
    unchecked(monkeypatch)
    bug.inject(monkeypatch)
    choices = MANY_PARTS if bug.needs_many_parts else _OF_ROWS
    for seed in range(10):
        outcome = _run(History(adaptive_spark, tmp_path / str(seed), seed, bug.way, choices), 6, proof="bugs")
        if outcome.failure:
            break
    assert "the mirror lacks" in (outcome.failure or ""), outcome.failure
