"""The checks of an asset as one step: each selected one runs, whatever the others do."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.check_runs import asset_step
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.orchestration.mirrors import failure_of
from mirror_assets_tests.pipeline.paper import TABLE, Paper

_NAMES = ("first", "second", "third")


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    return Paper(tmp_path)


def _run(paper: Paper, broken: str, selected: tuple[str, ...]) -> dg.ExecuteInProcessResult:
    """Run the selected checks, of which the broken one can't run."""

    def run(name: str, checked: CheckedTable) -> CheckResult:
        if name == broken:
            raise StopError(f"{checked.table.name}: the disk is full.", "free some.", code=ErrorCode.STORE_FULL)
        return CheckResult(name)

    checks = [Check(name, AssetKind.LANDING, name, partial(run, name)) for name in _NAMES]
    step = asset_step(MirrorAssets(paper.config), paper.config.table(str(TABLE)), checks)
    selection = dg.AssetSelection.checks(
        *(check.key(MirrorAssets(paper.config), TABLE) for check in checks if check.name in selected)
    )
    job = dg.define_asset_job("checks", selection)
    definitions = dg.Definitions(asset_checks=[step], jobs=[job], resources=resources(MirrorAssets(paper.config)))
    return definitions.resolve_job_def("checks").execute_in_process(raise_on_error=False)


@pytest.mark.parametrize("broken", _NAMES)
def test_a_check_that_can_not_run_fails_the_step_after_the_others(paper: Paper, broken: str) -> None:
    result = _run(paper, broken, _NAMES)
    assert {evaluation.check_name for evaluation in result.get_asset_check_evaluations()} == {*_NAMES} - {broken}
    assert "the disk is full" in (failure_of(result).description or "")


def test_checks_that_are_not_selected_do_not_run(paper: Paper) -> None:
    result = _run(paper, "first", ("second", "third"))
    assert result.success
    assert {evaluation.check_name for evaluation in result.get_asset_check_evaluations()} == {"second", "third"}
