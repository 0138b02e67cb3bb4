"""The machine finds bugs: with one in the encoder or the plan, and no checks of staged parts, it fails soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from pyspark.sql import SparkSession

from mirror_assets_tests import figures
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.histories import by_rust, replacements, rows
from mirror_assets_tests.worlds.histories.bugs import BUGS, Bug, unchecked
from mirror_assets_tests.worlds.histories.faulty import Fault
from mirror_assets_tests.worlds.histories.machine import FAULTS, Histories, run
from mirror_assets_tests.worlds.histories.setup import MANY_PARTS, Limits, Setup
from mirror_assets_tests.worlds.histories.statement import PICKS, Pick, bursts
from mirror_assets_tests.worlds.histories.world import Burst, Run
from mirror_assets_tests.worlds.operations.features import PLAIN

SEED = 1
_SETUPS = st.builds(Setup, st.just(PLAIN), hold=st.just(False), keep_dropped=st.just(True), feed=st.just(True))
_LIMITS = st.builds(
    Limits,
    commits=st.just(100),
    rows=st.just(1000),
    target_rows=st.sampled_from([1, 1000]),
    compact=st.just(False),
    polls=st.just(False),
)


class Found(BaseException):
    """Mirror and source differ. Hypothesis does not catch it: it would only run the same history again."""


class RowChanges(Histories):
    """The machine, kept to what bugs of the encoder show in: statements on rows, several commits in a slice."""

    @initialize(setup=_SETUPS, pick=PICKS, limits=_LIMITS, loaded=st.just(True), salt=st.integers(0, 2**16))
    def begin(self, setup: Setup, pick: Pick, limits: Limits, loaded: bool, salt: int) -> None:
        super().begin(setup, pick, limits, loaded, salt)

    @rule(
        burst=bursts((*rows.STATEMENTS, *by_rust.STATEMENTS, *by_rust.STATEMENTS), least=4, most=6),
        limits=_LIMITS,
        run=st.just(Run.PUBLISH),
        fault=FAULTS,
    )
    def go_on(self, burst: Burst, limits: Limits, run: Run, fault: Fault) -> None:
        try:
            super().go_on(burst, limits, run, fault)
        except AssertionError as error:
            raise Found(str(error)) from error


class ManyParts(RowChanges):
    """The same with slices of many parts, in which most keys change in several commits."""

    @rule(burst=bursts(replacements.CHURN, least=4, most=6), limits=MANY_PARTS, run=st.just(Run.PUBLISH), fault=FAULTS)
    def go_on(self, burst: Burst, limits: Limits, run: Run, fault: Fault) -> None:
        super().go_on(burst, limits, run, fault)


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
    began = time.monotonic()
    machine = ManyParts if bug.needs_many_parts else RowChanges
    with pytest.raises(Found, match="the mirror lacks"):
        run(adaptive_spark, tmp_path, bug.way, histories=10, steps=6, seed=SEED, machine=machine)
    figures.report("bugs", "histories", len(list(tmp_path.iterdir())), case=bug.name)
    figures.report("bugs", "seconds", time.monotonic() - began, case=bug.name)
