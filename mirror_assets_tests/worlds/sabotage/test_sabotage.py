"""Each planted fault is stopped before publishing, or the next comparison reports it; without faults, nothing is."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests import figures
from mirror_assets_tests.worlds.sabotage.faults import CONSERVATION, FAULTS, RECONCILE, Fault
from mirror_assets_tests.worlds.sabotage.trial import try_fault
from mirror_assets_tests.worlds.sabotage.worlds import World, Worlds, advance

# A comparison takes seconds: of the faults that only it finds, most are left to `make soak`.
_SMOKE = (
    "a row is dropped (first load)",
    "a row in place of another (first load)",
    "an added column is NULL (first load)",
    "added rows are read as removed, and removed ones as added (changes)",
    "a file is left out (first load)",
    "a file is left out (appends)",
    "a file is read twice (first load)",
    "hidden rows are shown (first load)",
    "a vector is inverted (first load)",
    "a commit that deletes is skipped (changes)",
    "the rows of two commits are exchanged (net changes)",
    "a live file that is added again counts as new (a live file is added again)",
    "an update lands as insert (changes)",
    "the same, and the Observations counted without it (changes, `where` and a mask)",
    "the condition is turned round (first load, `where` and a mask)",
    "the type table says DOUBLE for FLOAT (first load)",
    "a decimal loses its fraction (first load)",
    "returns what was read, and the reader drops a row (first load)",
    "ignores deletion vectors (first load)",
)


@pytest.fixture(scope="session")
def worlds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """The worlds, of which each test gets copies."""
    return Worlds(spark, tmp_path_factory.mktemp("sabotage"))


def _cases() -> list[object]:
    return [
        fault if str(fault).partition(": ")[2] in _SMOKE else pytest.param(fault, marks=pytest.mark.soak)
        for fault in FAULTS
    ]


def test_the_faults_are_many_and_different() -> None:
    assert len({fault.name for fault in FAULTS}) >= 24
    assert len(set(map(str, FAULTS))) == len(FAULTS)
    assert set(_SMOKE) <= {str(fault).partition(": ")[2] for fault in FAULTS}


@pytest.mark.parametrize("fault", _cases(), ids=str)
def test_a_fault_is_found(worlds: Worlds, fault: Fault, request: pytest.FixtureRequest) -> None:
    began = time.monotonic()
    finding = try_fault(fault, worlds.copy(fault.world, f"fault{FAULTS.index(fault)}"))
    assert (finding.found_by, finding.before_publishing) == (fault.found_by, fault.found_by != RECONCILE), finding
    assert finding.read_again or not fault.read_again, finding
    if fault.found_by == CONSERVATION:
        assert "orders" in finding.message
        assert "version" in finding.message
    figures.report("sabotage", "seconds", time.monotonic() - began, case=request.node.callspec.id)


@pytest.mark.soak
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.lands_wrong_rows], ids=str)
def test_the_comparison_alone_finds_a_fault(worlds: Worlds, fault: Fault) -> None:
    finding = try_fault(fault, worlds.copy(fault.world, f"alone{FAULTS.index(fault)}"), with_checks=False)
    assert (finding.found_by, finding.before_publishing) == (RECONCILE, False), finding


_QUICK = (World.LOAD, World.FEED)


@pytest.mark.parametrize(
    "world", [one if one in _QUICK else pytest.param(one, marks=pytest.mark.soak) for one in World], ids=str
)
def test_without_a_fault_a_world_lands_and_equals_its_source(worlds: Worlds, world: World) -> None:
    lab = worlds.copy(world, f"right-{world.name}")
    records = advance(world, lab)
    assert records
    assert lab.is_equal
    if world is not World.REWRITE:  # whose feed can't be read, on purpose
        assert not any(record.compared and record.compared.because for record in records)
