"""Events of slices that a run logs."""

from types import SimpleNamespace

import dagster as dg
import pytest

from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration.table_events import TableEvents
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.orchestration.mirrors import assets_of


@pytest.mark.parametrize("stays", [True, False])
def test_a_run_that_stays_keeps_no_event_in_memory(stays: bool) -> None:
    asset, kept = dg.AssetKey("orders"), list[bool]()

    @dg.op
    def mirror(context: dg.OpExecutionContext) -> None:
        events = TableEvents(context, assets_of([TableName(None, "orders")]), is_resident=stays)
        for _ in range(3):
            events.log([dg.AssetMaterialization(asset), dg.AssetCheckEvaluation(asset, "row_order", passed=True)])
        kept.append(context.has_events())

    @dg.job
    def run() -> None:
        mirror()

    with dg.DagsterInstance.ephemeral() as instance:
        assert run.execute_in_process(instance=instance).success
        recorded = instance.fetch_materializations(asset, limit=10).records
        checked = instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(asset, "row_order"))
    assert kept == [not stays]
    assert len(recorded) == 3
    assert checked is not None


def test_a_result_says_that_it_holds_for_the_later_slices_of_the_run() -> None:
    """Dagster applies it to all that the run materializes: the page would name an older slice than the newest."""
    name = TableName(None, "orders")
    processed = SimpleNamespace(
        record=SimpleNamespace(slice=SliceKey(1, 4, 6)),
        results=(CheckResult("row_order"), CheckResult("key_presence", ("a key is NULL",))),
        published=SimpleNamespace(manifest=SimpleNamespace(loading=None)),
    )

    @dg.op
    def mirror(context: dg.OpExecutionContext) -> None:
        events = TableEvents(context, assets_of([name]))
        events.checked(SimpleNamespace(name=name), processed)  # type: ignore[arg-type]

    @dg.job
    def run() -> None:
        mirror()

    result = run.execute_in_process()
    shown = {one.check_name: one.description for one in result.get_asset_check_evaluations()}
    assert shown == {
        "row_order": "slice 1.4-6, and each later slice of this run before it lands",
        "key_presence": "slice 1.4-6: a key is NULL",
    }
