"""Which tables fail, as a run that goes on tells."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import PARTITION_NAME_TAG, REPOSITORY_LABEL_TAG

from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import AssetKind, asset_key
from mirror_assets.orchestration.failed_runs import TABLE_FAILED
from mirror_assets.orchestration.run_tags import FAILING_TAG, tag_failing
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.pipeline.errors import SourceBroke
from mirror_assets_tests.orchestration.mirrors import assets_of

TABLES = [TableName("sales", f"t{number:03}") for number in range(5)]
ASSETS = assets_of(TABLES)
ERROR = StopError("a key is NULL.", "delete the row.", code=ErrorCode.CHECKS_FAILED)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


def test_whoever_listens_is_told_once_of_each_change(instance: dg.DagsterInstance) -> None:
    told = list[list[TableName]]()
    states = TableStates(instance, ASSETS, None, lambda failing: told.append(list(failing)))
    first, second, *_ = TABLES
    states.landed(first)
    assert told == []
    for _ in range(2):
        states.failed(second, ERROR)
        states.landed(first)
    states.failed(first, ERROR)
    states.landed(second)
    assert told == [[second], [first, second], [first]]


def test_the_next_run_is_told_of_what_failed_before(instance: dg.DagsterInstance) -> None:
    TableStates(instance, ASSETS).failed(TABLES[0], ERROR)
    told = list[list[TableName]]()
    assert not TableStates(instance, ASSETS, None, lambda failing: told.append(list(failing))).failed(TABLES[0], ERROR)
    assert told == [TABLES[:1]]


def test_a_held_tables_check_names_it_once(instance: dg.DagsterInstance) -> None:
    broke = SourceBroke(str(TABLES[0]), 3, "a column was renamed")
    TableStates(instance, ASSETS).failed(TABLES[0], broke)
    key = dg.AssetCheckKey(asset_key(AssetKind.LANDING, TABLES[0]), "not_held")
    record = instance.get_latest_asset_check_evaluation_record(key)
    assert record is not None
    assert record.event is not None
    assert record.event.dagster_event is not None
    found = record.event.dagster_event.asset_check_evaluation_data
    assert (found.description or "").startswith("sales.t000 is on hold for approval: version 3 of the source")
    assert "mirror-assets rebuild sales.t000" in str(found.metadata["next_step"].value)


def test_each_new_failure_is_a_failed_run_of_its_table(instance: dg.DagsterInstance) -> None:
    origin = RegisteredCodeLocationOrigin("shop")
    states = TableStates(instance, ASSETS, RemoteRepositoryOrigin(origin, "__repository__"))
    first, second, *_ = TABLES
    states.failed(first, RetryError("the store does not answer.", "wait.", code=ErrorCode.STORE_UNAVAILABLE))
    assert instance.get_runs() == [], "time may resolve it"
    for _ in range(2):
        states.failed(first, ERROR)
        states.failed(second, SourceBroke(str(second), 3, "a column was renamed"))
    states.landed(first)
    states.failed(first, ERROR)
    runs = instance.get_runs()
    assert {(run.job_name, run.status) for run in runs} == {(TABLE_FAILED, dg.DagsterRunStatus.FAILURE)}
    assert [run.tags[PARTITION_NAME_TAG] for run in reversed(runs)] == [str(first), str(second), str(first)]
    assert len(instance.get_runs(dg.RunsFilter(tags={REPOSITORY_LABEL_TAG: "__repository__@shop"}))) == 3


def test_a_run_failure_sensor_of_dagster_hears_of_a_table(instance: dg.DagsterInstance) -> None:
    heard = list[str]()

    @dg.run_failure_sensor
    def failures(context: dg.RunFailureSensorContext) -> None:
        heard.append(context.failure_event.message or "")

    origin, repository = RegisteredCodeLocationOrigin("shop"), "__repository__"
    definitions = dg.Definitions(sensors=[failures]).get_repository_def()

    def tick(cursor: str | None) -> str | None:
        with dg.build_sensor_context(instance, cursor, repository_def=definitions) as context:
            context._code_location_origin, context._repository_name = origin, repository
            return failures.evaluate_tick(context).cursor

    before = tick(None)
    TableStates(instance, ASSETS, RemoteRepositoryOrigin(origin, repository)).failed(TABLES[0], ERROR)
    tick(before)
    assert heard == ["a key is NULL. Next: delete the row."]


@pytest.mark.parametrize(
    ("failing", "tag"),
    [
        (TABLES[:2], "sales.t000, sales.t001"),
        (TABLES, "5 tables: sales.t000, sales.t001, sales.t002, …"),
        ([], "none"),
    ],
)
def test_a_run_is_tagged_with_the_tables_that_fail(
    instance: dg.DagsterInstance, failing: list[TableName], tag: str
) -> None:
    run = instance.create_run_for_job(dg.job(name="j")(lambda: None))
    tag_failing(instance, run.run_id, failing)
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.tags[FAILING_TAG] == tag
