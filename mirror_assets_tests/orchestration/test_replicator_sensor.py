"""The sensor of the mirror: where Fabric replicates, it observes and starts nothing."""

from __future__ import annotations

from datetime import datetime, timezone

import dagster as dg

from mirror_assets.config import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resources
from mirror_assets_tests.fabric.databases import LoopbackDatabase, told_table
from mirror_assets_tests.fabric.interface import Answer
from mirror_assets_tests.fabric.loopback import Fault, LoopbackFabric
from mirror_assets_tests.orchestration.mirrors import evaluate


def tick() -> dg.SensorResult | dg.SkipReason:
    with dg.instance_for_test() as instance:
        return tick_in(instance)


def tick_in(instance: dg.DagsterInstance, ticks: int = 1) -> dg.SensorResult | dg.SkipReason:
    """Tick as a new process does; return the last result. Events are recorded as Dagster's daemon does."""
    config = load_config()
    definitions = build_definitions(config)
    result: object = None
    for _ in range(ticks):
        context = dg.build_sensor_context(
            instance=instance, definitions=definitions, resources=resources(MirrorAssets(config))
        )
        result = evaluate(definitions.resolve_sensor_def("replicator"), context)
        for event in result.asset_events if isinstance(result, dg.SensorResult) else ():
            instance.report_runless_asset_event(event)
    assert isinstance(result, dg.SensorResult | dg.SkipReason)
    return result


def test_tables_of_mirror_yaml_are_observed_and_no_run_is_asked_for(database: LoopbackDatabase) -> None:
    told = told_table("shop", "orders", processedRows=12, lastSyncDateTime="2026-11-21T05:07:11Z")
    database.tables = lambda: [told, told_table("shop", "orphan")]
    result = tick()
    assert isinstance(result, dg.SensorResult)
    assert not result.run_requests
    (observed,) = result.asset_events
    assert observed.asset_key.to_user_string() == "shop/orders_mirror"
    metadata = {name: value.value for name, value in observed.metadata.items()}
    assert (metadata["state"], metadata["processed_rows"]) == ("Replicating", 12)
    assert metadata["last_sync"] == datetime(2026, 11, 21, 5, 7, 11, tzinfo=timezone.utc).timestamp()
    assert str(metadata["mirror"]).startswith(f"abfss://{load_config().fabric_tables.workspace}@")  # type: ignore[union-attr]
    assert not {"applied_number", "dagster/row_count"} & set(metadata)


def test_a_tick_records_nothing_while_nothing_changes(database: LoopbackDatabase) -> None:
    rows = [12]
    database.tables = lambda: [told_table("shop", "orders", processedRows=rows[-1])]
    with dg.instance_for_test() as instance:
        for ticks, processed, events in ((1, 12, 1), (3, 12, 0), (1, 13, 1), (1, 13, 0)):
            rows.append(processed)
            result = tick_in(instance, ticks)
            assert isinstance(result, dg.SensorResult)
            assert len(result.asset_events) == events


def test_a_fabric_that_cannot_be_asked_now_is_asked_later(database: LoopbackDatabase, fabric: LoopbackFabric) -> None:
    assert database.tables() == ()
    refused = Answer.refusal(429, "RequestBlocked", **{"Retry-After": "3600"})
    fabric.faults.append(Fault("getTablesMirroringStatus", refused))
    result = tick()
    assert isinstance(result, dg.SkipReason)
    assert "RequestBlocked" in (result.skip_message or "")
