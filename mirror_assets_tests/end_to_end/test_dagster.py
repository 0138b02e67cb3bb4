"""The definitions as people use them: sensor, range runs, failures in the middle, checks alone, a rebuild."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.failures import read_failure
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.rebuild import begin_rebuild
from mirror_assets.landing.state import CommitPosition
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.asset_names import RANGE_END, RANGE_START, Kind, asset_key, slices_of
from mirror_assets.orchestration.jobs import ALL_CHECKS, MIRROR_ALL, REBUILD, REBUILD_OP, REPLICATE, slices_job_name
from mirror_assets.orchestration.resources import resources
from mirror_assets.pipeline import stage
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import SourceBroke
from mirror_assets.source.planner import PlannedSlice
from mirror_assets_tests.lab import TABLE, Lab, key

_FEED, _ZONE = asset_key(Kind.CHANGE_FEED, TABLE), asset_key(Kind.LANDING_ZONE, TABLE)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


def _tick(lab: Lab, instance: dg.DagsterInstance) -> dg.SensorResult | dg.SkipReason:
    """One tick of the table's sensor, applied as the daemon applies it."""
    definitions = build_definitions(lab.config)
    sensor = definitions.resolve_sensor_def("slices_shop__orders")
    context = dg.build_sensor_context(instance=instance, definitions=definitions, resources=resources(lab.config))
    result = sensor(context)
    if isinstance(result, dg.SensorResult):
        for request in result.dynamic_partitions_requests or []:
            assert isinstance(request, dg.AddDynamicPartitionsRequest)
            instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
        for event in result.asset_events:
            instance.report_runless_asset_event(event)
    assert isinstance(result, dg.SensorResult | dg.SkipReason)
    return result


def _launch(lab: Lab, instance: dg.DagsterInstance, first: str, last: str) -> dg.ExecuteInProcessResult:
    tags = {RANGE_START: first, RANGE_END: last, "mirror/table": str(TABLE)}
    job = build_definitions(lab.config).resolve_job_def(slices_job_name(TABLE))
    return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)


def _request(result: dg.SensorResult | dg.SkipReason) -> tuple[str, str]:
    assert isinstance(result, dg.SensorResult)
    (request,) = result.run_requests or []
    return request.tags[RANGE_START], request.tags[RANGE_END]


def _in_partition(job: dg.JobDefinition, instance: dg.DagsterInstance, slice_: str) -> dg.ExecuteInProcessResult:
    return job.execute_in_process(instance=instance, partition_key=slice_, raise_on_error=False)


def _description(failed: dg.DagsterEvent) -> str:
    told = failed.step_failure_data.user_failure_data
    return (told.description if told else None) or ""


def _materialized(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[str]:
    return set(instance.get_materialized_partitions(asset))


def test_the_sensor_asks_for_all_pending_slices_and_rests_when_covered(lab: Lab, instance: dg.DagsterInstance) -> None:
    assert _launch(lab, instance, *_request(_tick(lab, instance))).success
    lab.change()
    requested = _request(_tick(lab, instance))
    assert requested == (str(key(2, 3)), str(key(4, 5)))
    result = _launch(lab, instance, *requested)
    assert result.success
    assert (
        _materialized(instance, _ZONE)
        == _materialized(instance, _FEED)
        == {str(k) for k in (key(0, 1), key(2, 3), key(4, 5))}
    )
    assert len(lab.files) == 3
    skipped = _tick(lab, instance)
    assert isinstance(skipped, dg.SkipReason)
    assert "version 5 is covered" in (skipped.skip_message or "")
    observed = instance.get_latest_data_version_record(asset_key(Kind.SOURCE, TABLE), partition_key=str(key(4, 5)))
    assert observed is not None


def test_metadata_says_what_was_read_and_written(waiting: Lab, instance: dg.DagsterInstance) -> None:
    _launch(waiting, instance, *_request(_tick(waiting, instance)))
    event = instance.fetch_materializations(
        dg.AssetRecordsFilter(_FEED, asset_partitions=[str(key(4, 5))]), limit=1
    ).records[0]
    metadata = event.asset_materialization.metadata if event.asset_materialization else {}
    found = {
        name: metadata[name].value
        for name in ("read_delete", "written_deletes", "written_inserts", "parts", "last_version")
    }
    assert found == {"read_delete": 1, "written_deletes": 2, "written_inserts": 2, "parts": 1, "last_version": 5}


def test_a_failure_in_the_middle_leaves_no_hole_and_is_resumed(
    waiting: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.configure(defaults="slices: {max_commits: 1}")
    real, encoded = stage.stage_attempt, []

    def planted(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
        encoded.append(planned.first)
        if planned.first == 4:
            raise SourceBroke(str(TABLE), 4, "planted")
        return real(context, planned, position)

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", planted)
    first = _launch(waiting, instance, *_request(_tick(waiting, instance)))
    assert not first.success
    assert _materialized(instance, _FEED) == {str(key(2, 2)), str(key(3, 3))}
    failure = drive(read_failure(TABLE), waiting.store)
    assert failure is not None
    assert failure.slice == str(key(4, 4))
    assert len(waiting.files) == 1

    monkeypatch.setattr("mirror_assets.pipeline.backoff._FIRST_PAUSE_SECONDS", 0)
    requested = _request(_tick(waiting, instance))
    assert requested == (str(key(2, 2)), str(key(3, 3)))
    assert _launch(waiting, instance, *requested).success
    assert len(waiting.files) == 3
    assert encoded == [2, 3, 4]  # what lay there is not encoded again

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", real)
    requested = _request(_tick(waiting, instance))
    assert requested == (str(key(4, 4)), str(key(5, 5)))
    assert _launch(waiting, instance, *requested).success
    assert len(waiting.files) == 5


def test_the_sensor_backs_off_after_a_failure(
    lab: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planted(*_: object) -> SliceRecord:
        raise SourceBroke(str(TABLE), 0, "planted")

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", planted)
    _launch(lab, instance, *_request(_tick(lab, instance)))
    skipped = _tick(lab, instance)
    assert isinstance(skipped, dg.SkipReason)
    assert "1 runs of shop.orders failed" in (skipped.skip_message or "")


def test_a_bad_row_is_stopped_by_the_blocking_checks(lab: Lab, instance: dg.DagsterInstance) -> None:
    lab.mirror()
    lab.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    result = _launch(lab, instance, *_request(_tick(lab, instance)))
    assert not result.success
    failed = {evaluation.check_name for evaluation in result.get_asset_check_evaluations() if not evaluation.passed}
    assert failed == {"key_presence", "key_uniqueness", "marker_values", "row_counts", "row_order"}
    assert _materialized(instance, _ZONE) == set()
    assert len(lab.files) == 1
    failure = drive(read_failure(TABLE), lab.store)
    assert failure is not None
    assert (failure.slice, failure.code, failure.count) == (str(key(2, 2)), ErrorCode.CHECKS_FAILED, 1)


def test_a_published_partition_again_changes_nothing(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    before = {path.name: path.read_bytes() for path in mirrored.folder.glob("0*.parquet")}
    instance.add_dynamic_partitions(slices_of(TABLE).name or "", [str(key(2, 3))])
    assert _launch(mirrored, instance, str(key(2, 3)), str(key(2, 3))).success
    assert {path.name: path.read_bytes() for path in mirrored.folder.glob("0*.parquet")} == before


def test_a_partition_out_of_order_is_a_clear_error(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (800, 'x', 1)", "INSERT INTO {t} VALUES (801, 'x', 1)")
    instance.add_dynamic_partitions(slices_of(TABLE).name or "", [str(key(7, 7))])
    result = _launch(mirrored, instance, str(key(7, 7)), str(key(7, 7)))
    assert not result.success
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    assert "version 6 is the next one to be covered" in _description(failed)
    assert len(mirrored.files) == 3


def test_a_slice_of_an_earlier_epoch_succeeds_as_void(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    job = build_definitions(mirrored.config).resolve_job_def(REBUILD)
    config = dg.RunConfig(ops={REBUILD_OP: {"config": {"table": str(TABLE)}}})
    assert job.execute_in_process(instance=instance, run_config=config).success
    instance.add_dynamic_partitions(slices_of(TABLE).name or "", [str(key(2, 3))])
    assert _launch(mirrored, instance, str(key(2, 3)), str(key(2, 3))).success
    assert len(mirrored.files) == 1


def test_a_rebuild_that_was_interrupted_is_asked_for_first(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    drive(begin_rebuild(TABLE), mirrored.store)
    requested = _tick(mirrored, instance)
    assert isinstance(requested, dg.SensorResult)
    assert [request.job_name for request in requested.run_requests or []] == [REBUILD]


def test_a_file_that_is_gone_leads_to_a_rebuild(
    waiting: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.pipeline.backoff._FIRST_PAUSE_SECONDS", 0)
    shutil.rmtree(waiting.root / "lake" / "orders" / "_change_data")
    assert not _launch(waiting, instance, *_request(_tick(waiting, instance))).success
    requested = _tick(waiting, instance)
    assert isinstance(requested, dg.SensorResult)
    assert [request.job_name for request in requested.run_requests or []] == [REBUILD]


def test_what_a_person_has_to_mend_fails_the_tick(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    (mirrored.folder / "_mirror.json").write_text("{")
    with pytest.raises(ManifestCorrupt):
        _tick(mirrored, instance)


def test_landing_zone_alone_publishes_nothing_unchecked(lab: Lab, instance: dg.DagsterInstance) -> None:
    """The gate is in the slice record: to choose the asset alone, without its checks, is no way around them."""
    instance.add_dynamic_partitions(slices_of(TABLE).name or "", [str(key(0, 1))])
    job = build_definitions(lab.config).resolve_implicit_global_asset_job_def()

    def materialize(asset: dg.AssetKey) -> dg.ExecuteInProcessResult:
        alone = job.get_subset(asset_selection={asset}, asset_check_selection=set())
        return _in_partition(alone, instance, str(key(0, 1)))

    assert materialize(_FEED).success
    (failed,) = [event for event in materialize(_ZONE).all_events if event.is_step_failure]
    assert "because of its checks (not run: key_presence" in _description(failed)
    assert lab.files == []


def test_mirror_all_logs_slices_and_checks_only_job_fails_on_damage(lab: Lab, instance: dg.DagsterInstance) -> None:
    definitions = build_definitions(lab.config)
    assert definitions.resolve_job_def(MIRROR_ALL).execute_in_process(instance=instance).success
    assert _materialized(instance, _ZONE) == {str(key(0, 1))}
    assert definitions.resolve_job_def(REPLICATE).execute_in_process(instance=instance).success
    assert instance.fetch_observations(asset_key(Kind.MIRROR, TABLE), limit=1).records
    checks = definitions.resolve_job_def(ALL_CHECKS)
    passed = checks.execute_in_process(instance=instance, raise_on_error=False)
    assert passed.success
    names = {evaluation.check_name for evaluation in passed.get_asset_check_evaluations()}
    assert {"row_order", "file_continuity", "metadata_unchanged", "lag", "not_held", "retention", "reconciled"} <= names
    landing: Path = lab.folder / f"{1:020d}.parquet"
    landing.write_bytes(landing.read_bytes()[:-1])
    assert not checks.execute_in_process(instance=instance, raise_on_error=False).success
