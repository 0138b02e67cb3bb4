"""Jobs whose scheduled runs don't end well any more are overdue, and those that were never scheduled are not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import time_machine

from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.reporting import overdue_results
from mirror_assets.orchestration.runs import EVALUATED_SOME, EVALUATED_TAG, mirror_tags
from mirror_assets_tests.pipeline.paper import Paper

_HOUR = 3600


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


@pytest.fixture
def assets(tmp_path: Path) -> MirrorAssets:
    return MirrorAssets(Paper(tmp_path).config)


def _run(instance: dg.DagsterInstance, assets: MirrorAssets, *, fails: bool, evaluated: bool = False) -> None:
    @dg.op
    def work() -> None:
        if fails:
            message = "Spark did not start"
            raise dg.Failure(message)

    @dg.job(name="reconcile")
    def job() -> None:
        work()

    tags = mirror_tags(assets.config) | ({EVALUATED_TAG: EVALUATED_SOME} if evaluated else {})
    job.execute_in_process(instance=instance, raise_on_error=False, tags=tags)


def _overdue(instance: dg.DagsterInstance, assets: MirrorAssets, hours: float) -> list[str | None]:
    found = overdue_results(instance, assets, {"reconcile": 24}, time.time() + hours * _HOUR)
    return [None if failed is None else failed.text for _, failed in found]


def test_a_job_is_overdue_when_no_run_has_ended_well_for_twice_its_interval(
    instance: dg.DagsterInstance, assets: MirrorAssets
) -> None:
    assert _overdue(instance, assets, 100) == [], "its schedule was never on"
    _run(instance, assets, fails=False)
    _run(instance, assets, fails=True)
    assert _overdue(instance, assets, 47) == [None]
    (text,) = _overdue(instance, assets, 49)
    assert text is not None
    assert text.startswith("No run of the job reconcile has ended well since ")
    assert text.endswith("; one is due every 24 hours.")


def test_a_run_that_failed_because_of_what_it_found_has_ended_well(
    instance: dg.DagsterInstance, assets: MirrorAssets
) -> None:
    """It ends 30 hours after the first run, which has not ended well."""
    _run(instance, assets, fails=True)
    with time_machine.travel(time.time() + 30 * _HOUR):
        _run(instance, assets, fails=True, evaluated=True)
    assert _overdue(instance, assets, 30 + 47) == [None]
    assert _overdue(instance, assets, 30 + 49) != [None]


def test_a_job_whose_runs_all_fail_is_overdue(instance: dg.DagsterInstance, assets: MirrorAssets) -> None:
    _run(instance, assets, fails=True)
    assert _overdue(instance, assets, 47) == [None]
    (text,) = _overdue(instance, assets, 49)
    assert text is not None
