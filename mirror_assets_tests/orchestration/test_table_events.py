"""Events of slices that a run logs."""

import dagster as dg
import pytest

from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.table_events import TableEvents
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
