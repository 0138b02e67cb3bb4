"""Each planted fault is stopped before publishing, or the next comparison reports it; without faults, nothing is."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from mirror_assets.errors import MirrorError
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests import figures
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.histories.bugs import unchecked
from mirror_assets_tests.worlds.sabotage.faults import CONSERVATION, FAULTS, NOBODY, RECONCILE, Fault
from mirror_assets_tests.worlds.sabotage.worlds import World, Worlds


@dataclass(frozen=True)
class Finding:
    """The check or error that found a fault, with its message; `before_publishing` unless wrong rows have landed.

    `read_again`: the slice was read by the files that differ after a check had refused it.
    """

    found_by: str
    before_publishing: bool
    message: str
    read_again: bool = False


def try_fault(fault: Fault, lab: Lab, *, with_checks: bool = True) -> Finding:
    """Mirror a copy of the fault's world, and compare it, with the fault planted all the time."""
    with pytest.MonkeyPatch.context() as patch:
        if not with_checks:
            unchecked(patch)
        fault.inject(patch)
        try:
            again = _advanced(lab)
        except ChecksFailed as error:
            failed = next(result for result in error.results if result.problems)
            return Finding(failed.check, before_publishing=True, message=failed.message)
        except MirrorError as error:
            return Finding(type(error).__name__, before_publishing=True, message=error.what)
        found = lab.compare()
        if found.state is ReconcileState.DIFFERENT:
            differing = ", ".join(found.columns) or f"{found.source_rows} and {found.mirror_rows} rows"
            return Finding(RECONCILE, before_publishing=False, message=differing, read_again=bool(again))
        if again:
            check = next(name for name in BLOCKING_CHECKS if f"{name}:" in again)
            return Finding(check, before_publishing=True, message=again, read_again=True)
        return Finding(NOBODY, before_publishing=False, message=found.state.value)


def _advanced(lab: Lab) -> str:
    """Mirror what waits; return why a slice was read by files instead of the feed, if one was."""
    reasons = [slice_.record.compared.because for slice_ in lab.mirror() if slice_.record.compared]
    return next((reason for reason in reasons if reason), "")


@pytest.fixture(scope="session")
def worlds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(spark, tmp_path_factory.mktemp("sabotage"))


_CASES = [fault if fault.smoke else pytest.param(fault, marks=pytest.mark.soak) for fault in FAULTS]


@pytest.mark.parametrize("fault", _CASES, ids=str)
def test_a_fault_is_found(worlds: Worlds, fault: Fault, request: pytest.FixtureRequest) -> None:
    began = time.monotonic()
    finding = try_fault(fault, worlds.copy(fault.world, f"fault{FAULTS.index(fault)}"))
    assert (finding.found_by, finding.before_publishing) == (fault.found_by, fault.found_by != RECONCILE), finding
    assert finding.read_again or not fault.read_again, finding
    if fault.found_by == CONSERVATION:
        assert "orders" in finding.message
        assert "version" in finding.message
    figures.report("sabotage", "seconds", time.monotonic() - began, case=request.node.callspec.id)


@pytest.mark.parametrize("fault", smoke_first(FAULTS), ids=str)
def test_the_comparison_alone_finds_a_fault(worlds: Worlds, fault: Fault) -> None:
    finding = try_fault(fault, worlds.copy(fault.world, f"alone{FAULTS.index(fault)}"), with_checks=False)
    assert (finding.found_by, finding.before_publishing) == (RECONCILE, False), finding


_QUICK = (World.LOAD, World.FEED)


@pytest.mark.parametrize(
    "world", [one if one in _QUICK else pytest.param(one, marks=pytest.mark.soak) for one in World], ids=str
)
def test_without_a_fault_a_world_lands_and_equals_its_source(worlds: Worlds, world: World) -> None:
    lab = worlds.copy(world, f"right-{world.name}")
    assert _advanced(lab) == ""
    assert lab.files
    assert lab.is_equal
