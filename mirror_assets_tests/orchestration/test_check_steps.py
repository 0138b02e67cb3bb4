"""The checks of an asset as one step: each selected one runs, whatever the others do."""

from collections.abc import Iterator

import dagster as dg
import pytest

from mirror_assets.orchestration.asset_checks import check_result, checks_step, run_selected
from mirror_assets.orchestration.materialize import NoSlice
from mirror_assets.verify.check_result import CheckResult

_ASSET = dg.AssetKey(["shop", "orders_landing"])
_NAMES = ("first", "second", "third")


def _run(broken: str, selected: tuple[str, ...]) -> dg.ExecuteInProcessResult:
    """The selected checks, of which the broken one can't run."""

    def run(name: str) -> dg.AssetCheckResult:
        if name == broken:
            raise NoSlice(name)
        return check_result(_ASSET, CheckResult(name))

    def step(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        yield from run_selected(context, {name: lambda name=name: run(name) for name in _NAMES})  # type: ignore[misc]

    checks = checks_step(_ASSET, [dg.AssetCheckSpec(name, asset=_ASSET) for name in _NAMES])(step)
    selection = dg.AssetSelection.checks(*(dg.AssetCheckKey(_ASSET, name) for name in selected))
    job = dg.define_asset_job("checks", selection)
    definitions = dg.Definitions(asset_checks=[checks], jobs=[job])
    return definitions.resolve_job_def("checks").execute_in_process(raise_on_error=False)


@pytest.mark.parametrize("broken", _NAMES)
def test_a_check_that_can_not_run_fails_the_step_after_the_others(broken: str) -> None:
    result = _run(broken, _NAMES)
    assert {evaluation.check_name for evaluation in result.get_asset_check_evaluations()} == {*_NAMES} - {broken}
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    assert f"partition '{broken}' is no slice" in (told.description or "")


def test_what_is_not_selected_does_not_run() -> None:
    result = _run("first", ("second", "third"))
    assert result.success
    assert {evaluation.check_name for evaluation in result.get_asset_check_evaluations()} == {"second", "third"}
