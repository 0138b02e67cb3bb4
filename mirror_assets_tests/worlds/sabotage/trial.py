"""Plants one fault, mirrors its world, and compares the result while the fault is still there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mirror_assets.errors import MirrorError
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.worlds.histories.bugs import unchecked
from mirror_assets_tests.worlds.sabotage.faults import NOBODY, RECONCILE, Fault
from mirror_assets_tests.worlds.sabotage.worlds import World, advance


@dataclass(frozen=True)
class Finding:
    """The check or error that found a fault, with its message; `before_publishing` unless wrong rows have landed.

    `read_again`: the slice was read by the files that differ after a check had refused it.
    """

    found_by: str
    before_publishing: bool
    message: str
    read_again: bool = False

    @property
    def when(self) -> str:
        """When it was found."""
        if not self.before_publishing:
            after = ", after a check had refused the feed's rows" if self.read_again else ""
            return f"the next comparison{after}"
        return "before publishing; read again by files" if self.read_again else "before publishing"


def try_fault(fault: Fault, lab: Lab, *, with_checks: bool = True) -> Finding:
    """Mirror a copy of the fault's world, and compare it, with the fault planted all the time."""
    with pytest.MonkeyPatch.context() as patch:
        if not with_checks:
            unchecked(patch)
        fault.inject(patch)
        try:
            again = _advanced(fault.world, lab)
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


def _advanced(world: World, lab: Lab) -> str:
    """Mirror or repair; return why a slice was read by files instead of the feed, if one was."""
    reasons = [record.compared.because for record in advance(world, lab) if record.compared]
    return next((reason for reason in reasons if reason), "")
