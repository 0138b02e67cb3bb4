"""The check replicating as the job `checks` runs it, against the loopback Fabric and OneLake; no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.check_jobs import ALL_CHECKS, CHECK_OP, CHECKS, CheckTables
from mirror_assets.orchestration.jobs import REPLICATE
from mirror_assets_tests.landing.staging import CHECKS as PASSED
from mirror_assets_tests.landing.staging import TABLE, position_of, stage
from mirror_assets_tests.worlds.fabric.databases import LoopbackDatabase, reported_table
from mirror_assets_tests.worlds.fabric.interface import Answer
from mirror_assets_tests.worlds.fabric.loopback import Fault, LoopbackFabric


@pytest.fixture
def running(database: LoopbackDatabase) -> LoopbackDatabase:
    """A database that runs, and one landed file of the table."""
    store = compose(load_config()).store
    drive(publish(TableName.parse(str(TABLE)), stage(store, position_of(store), 0), PASSED), store)
    database.state = "Running"
    database.tables = lambda: [
        reported_table("shop", "orders", processedRows=2, lastSyncDateTime="2026-11-23T00:00:00Z")
    ]
    return database


def _found(job: str = CHECKS) -> dg.AssetCheckEvaluation:
    config = None if job == CHECKS else dg.RunConfig(ops={CHECK_OP: CheckTables(checks=["replicating"])})
    with dg.instance_for_test() as instance:
        definitions = build_definitions(load_config())
        result = definitions.resolve_job_def(job).execute_in_process(
            instance=instance, run_config=config, raise_on_error=False
        )
        events = [entry.dagster_event for entry in instance.all_logs(result.run_id)]
    evaluation = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    results = [one.asset_check_evaluation_data for one in events if one and one.event_type is evaluation]
    assert job == CHECKS or result.success is all(found.passed for found in results)
    (found,) = [one for one in results if one.check_name == "replicating"]
    assert found.asset_key.path[-1] == "orders_mirror"
    return found


@pytest.mark.usefixtures("running")
def test_a_mirror_that_has_applied_everything_passes_and_names_the_version() -> None:
    found = _found()
    assert (found.passed, found.description) == (True, "Replicating; it has version 0 of the source")
    assert found.metadata["mirror_version"].value == 0
    assert found.metadata["sync_latency_seconds"].value == 5


def test_the_sql_endpoint_is_refreshed_once_for_all_that_fabric_has_applied(
    database: LoopbackDatabase, fabric: LoopbackFabric, capfd: pytest.CaptureFixture[str]
) -> None:
    file = Path("mirror.yaml")
    file.write_text(file.read_text().replace("fabric: {", "fabric: {refresh_sql_endpoint: true, "))
    database.state = "Running"

    def run(job: str, rows: int) -> list[Sequence[str]]:
        """Run the job while Fabric has applied this many rows; return all refreshes."""
        database.tables = lambda: [
            reported_table("shop", "orders", processedRows=rows, lastSyncDateTime="2026-11-23T00:00:00Z")
        ]
        found = build_definitions(load_config()).resolve_job_def(job)
        found.execute_in_process(instance=instance, raise_on_error=False)
        return database.refreshed

    with dg.instance_for_test() as instance:
        assert run(CHECKS, 2) == [["shop.orders"]]
        assert len(run(CHECKS, 2)) == len(run(REPLICATE, 2)) == 1, "Fabric has applied nothing since"
        assert len(run(REPLICATE, 4)) == 2
        fabric.faults.append(Fault("refreshMetadata", Answer.refusal(403, "InsufficientPrivileges")))
        assert len(run(REPLICATE, 6)) == 2
    said = "the SQL endpoint was not refreshed, and may show older rows for some minutes: Fabric refused to refresh"
    assert said in capfd.readouterr().err


def test_without_the_setting_no_endpoint_is_refreshed(running: LoopbackDatabase) -> None:
    assert _found().passed
    assert running.refreshed == []


def test_a_database_that_was_paused_with_its_capacity_is_an_error(running: LoopbackDatabase) -> None:
    running.state = "Paused"
    found = _found()
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert found.metadata["next_step"].value == "run `mirror-assets fabric start`."
    assert not _found(ALL_CHECKS).passed, "and a person's run fails with it"


@pytest.mark.usefixtures("running")
def test_a_paused_capacity_that_does_not_answer_is_a_warning(fabric: LoopbackFabric) -> None:
    refused = Answer.refusal(400, "CapacityNotActive")
    fabric.faults.append(Fault("getMirroringStatus", refused))
    found = _found()
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "CapacityNotActive" in (found.description or "")
