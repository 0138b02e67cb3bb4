"""The definitions as people use them: range runs, failures in the middle, checks alone, a rebuild."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.failures import read_failure
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import CommitPosition
from mirror_assets.orchestration.asset_names import AssetKind, asset_key, slices_of
from mirror_assets.orchestration.check_steps import is_blocking_failure
from mirror_assets.orchestration.check_tables import ALL_CHECKS, CHECK_OP
from mirror_assets.orchestration.checks import CHECKS
from mirror_assets.orchestration.jobs import MIRROR_ALL, MIRROR_SCHEMA, MIRROR_TABLE, REBUILD, REBUILD_OP, REPLICATE
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.staged_checks import NOTHING_STAGED
from mirror_assets.pipeline import stage
from mirror_assets.pipeline.check import BLOCKING_CHECKS
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import SourceBroke
from mirror_assets.source.planner import PlannedSlice
from mirror_assets_tests.end_to_end.ticks import materialize, slices
from mirror_assets_tests.lab import TABLE, Lab, key

_SOURCE = asset_key(AssetKind.SOURCE, TABLE)
_FEED, _ZONE = asset_key(AssetKind.CHANGES, TABLE), asset_key(AssetKind.LANDING, TABLE)
_LANDING_CHECKS = [check.name for check in CHECKS if check.asset is AssetKind.LANDING]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


def _launch(lab: Lab, instance: dg.DagsterInstance, *keys: SliceKey) -> dg.ExecuteInProcessResult:
    """A run of these slices, as somebody asks for it in the UI."""
    instance.add_dynamic_partitions(slices_of(TABLE).name or "", [str(one) for one in keys])
    return materialize(build_definitions(lab.config), instance, slices(keys[0], keys[-1]))


def _in_partition(job: dg.JobDefinition, instance: dg.DagsterInstance, slice_: str) -> dg.ExecuteInProcessResult:
    return job.execute_in_process(instance=instance, partition_key=slice_, raise_on_error=False)


def _description(failed: dg.DagsterEvent) -> str:
    told = failed.step_failure_data.user_failure_data
    return (told.description if told else None) or ""


def _materialized(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[str]:
    return set(instance.get_materialized_partitions(asset))


def test_a_range_of_slices_is_materialized_in_order(lab: Lab, instance: dg.DagsterInstance) -> None:
    assert _launch(lab, instance, key(0, 1)).success
    lab.change()
    assert _launch(lab, instance, key(2, 3), key(4, 5)).success
    everything = {str(k) for k in (key(0, 1), key(2, 3), key(4, 5))}
    assert _materialized(instance, _ZONE) == _materialized(instance, _FEED) == everything
    assert len(lab.files) == 3


def test_a_run_of_many_tables_logs_what_a_run_of_slices_does(waiting: Lab, instance: dg.DagsterInstance) -> None:
    assert build_definitions(waiting.config).resolve_job_def(MIRROR_ALL).execute_in_process(instance=instance).success
    observed = instance.get_latest_data_version_record(asset_key(AssetKind.SOURCE, TABLE), partition_key=str(key(4, 5)))
    assert observed is not None
    assert _materialized(instance, _ZONE) == _materialized(instance, _FEED) == {str(key(2, 3)), str(key(4, 5))}


def _metadata(instance: dg.DagsterInstance, asset: dg.AssetKey, slice_: SliceKey | None = None) -> dict[str, object]:
    """The metadata of the newest materialization, of a slice or of the asset."""
    partitions = None if slice_ is None else [str(slice_)]
    (event,) = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset, asset_partitions=partitions), limit=1
    ).records
    assert event.asset_materialization
    return {name: item.value for name, item in event.asset_materialization.metadata.items()}


def test_metadata_says_what_was_read_and_written(waiting: Lab, instance: dg.DagsterInstance) -> None:
    _launch(waiting, instance, key(2, 3), key(4, 5))
    staged, landed = _metadata(instance, _FEED, key(4, 5)), _metadata(instance, _ZONE, key(4, 5))
    assert next(iter(staged)) == next(iter(landed)) == "summary"
    assert str(staged["summary"]).startswith("versions 4 to 5: 4 rows read, 2 inserts, 2 deletes written in 1 part of ")
    assert str(landed["summary"]).startswith("versions 4 to 5: 2 inserts, 2 deletes in 1 file of ")
    assert (staged["rows_read"], staged["dagster/partition_row_count"], staged["parts"]) == (4, 4, 1)
    assert (landed["covered_version"], landed["files"], landed["dagster/partition_row_count"]) == (5, 1, 4)
    committed = waiting.context.log.times(waiting.context.log.state()).at(4) / 1000
    assert 0 <= float(str(landed["lag_seconds"])) <= time.time() - committed


def test_columns_are_traced_from_the_mirror_to_the_source(waiting: Lab, instance: dg.DagsterInstance) -> None:
    _launch(waiting, instance, key(2, 3), key(4, 5))
    build_definitions(waiting.config).resolve_job_def(REPLICATE).execute_in_process(instance=instance)
    asset, seen = asset_key(AssetKind.MIRROR, TABLE), list[dg.AssetKey]()
    while "dagster/column_lineage" in (told := _metadata(instance, asset)):
        lineage = told["dagster/column_lineage"]
        assert isinstance(lineage, dg.TableColumnLineage)
        assert set(lineage.deps_by_column) == {"id", "name", "amount"}
        (dep,) = lineage.deps_by_column["amount"]
        assert dep.column_name == "amount"
        seen.append(asset)
        asset = dep.asset_key
    assert [*seen, asset] == [asset_key(AssetKind.MIRROR, TABLE), _ZONE, _SOURCE]


def test_the_mirror_tells_the_version_of_the_source(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    job = build_definitions(mirrored.config).resolve_job_def(REPLICATE)
    assert job.execute_in_process(instance=instance).success
    told = _metadata(instance, asset_key(AssetKind.MIRROR, TABLE))
    assert (told["summary"], told["source_version"]) == ("Replicating: at version 5 of the source", 5)
    before = len(instance.fetch_materializations(asset_key(AssetKind.MIRROR, TABLE), limit=9).records)
    assert job.execute_in_process(instance=instance).success
    assert len(instance.fetch_materializations(asset_key(AssetKind.MIRROR, TABLE), limit=9).records) == before


def test_a_source_is_filled_where_it_was_read(waiting: Lab, instance: dg.DagsterInstance) -> None:
    _launch(waiting, instance, key(2, 3), key(4, 5))
    assert _materialized(instance, _SOURCE) == {str(key(2, 3)), str(key(4, 5))}


def test_a_slice_that_is_asked_for_again_keeps_what_was_said_of_it(waiting: Lab, instance: dg.DagsterInstance) -> None:
    _launch(waiting, instance, key(2, 3), key(4, 5))
    before = {asset: _metadata(instance, asset, key(2, 3)) for asset in (_FEED, _ZONE)}
    for _ in range(2):
        assert _launch(waiting, instance, key(2, 3), key(4, 5)).success
        for asset, metadata in before.items():
            assert _metadata(instance, asset, key(2, 3)) == {"landed_before": "it has landed before", **metadata}


def test_a_slice_that_landed_elsewhere_has_no_lag(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    _launch(mirrored, instance, key(2, 3), key(4, 5))
    first, newest = _metadata(instance, _ZONE, key(2, 3)), _metadata(instance, _ZONE, key(4, 5))
    assert first == {"landed_before": "it has landed before", "summary": "versions 2 to 3: it has landed before"}
    assert (newest["dagster/partition_row_count"], "lag_seconds" in newest) == (4, False)


def test_a_run_is_tagged_with_its_table_and_slices(waiting: Lab, instance: dg.DagsterInstance) -> None:
    slices_run = _launch(waiting, instance, key(2, 3), key(4, 5))
    tags = instance.get_run_by_id(slices_run.run_id).tags  # type: ignore[union-attr]
    assert (tags["mirror/table"], tags["mirror/versions"]) == (str(TABLE), "2 to 5")
    assert tags["mirror/slice"] == f"{key(2, 3)} ... {key(4, 5)} (2 slices)"


def test_a_rebuild_leaves_no_slice_of_the_ended_epoch_behind(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    assert not _launch(mirrored, instance, key(4, 5), key(6, 6)).success
    mirrored.sql("DELETE FROM {t} WHERE id IS NULL")
    config = dg.RunConfig(ops={REBUILD_OP: {"config": {"table": str(TABLE), "confirm": str(TABLE)}}})
    rebuild = build_definitions(mirrored.config).resolve_job_def(REBUILD)
    assert rebuild.execute_in_process(instance=instance, run_config=config).success
    snapshot = key(0, 7, 2)
    registered = instance.get_dynamic_partitions(slices_of(TABLE).name or "")
    assert str(key(6, 6)) not in registered
    assert str(snapshot) in registered
    assert {str(snapshot)} <= _materialized(instance, _ZONE) & _materialized(instance, _FEED)
    assert str(_metadata(instance, _ZONE, snapshot)["summary"]).startswith(
        "the table at version 7: 10 inserts in 1 file"
    )


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
    keys = [key(version, version) for version in (2, 3, 4, 5)]
    first = _launch(waiting, instance, *keys)
    assert not first.success
    assert _materialized(instance, _FEED) == {str(key(2, 2)), str(key(3, 3))}
    assert read_failure(waiting.store, TABLE) is None, "the mirror itself has not failed"
    assert "PLANNED" not in {_status(instance, _ZONE, name) for name in _LANDING_CHECKS}
    assert len(waiting.files) == 1

    assert _launch(waiting, instance, *keys[:2]).success
    assert len(waiting.files) == 3
    assert encoded == [2, 3, 4]  # what lay there is not encoded again

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", real)
    assert _launch(waiting, instance, *keys).success
    assert len(waiting.files) == 5


def test_what_is_staged_behind_a_failure_is_landed_by_whoever_comes_next(
    waiting: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.configure(defaults="slices: {max_commits: 1}")
    real, encoded = stage.stage_attempt, []

    def planted(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> SliceRecord:
        encoded.append(planned.first)
        if encoded == [2, 3, 4]:
            raise SourceBroke(str(TABLE), 4, "planted")
        return real(context, planned, position)

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", planted)
    assert not _launch(waiting, instance, *(key(version, version) for version in (2, 3, 4, 5))).success
    waiting.mirror()
    assert encoded == [2, 3, 4, 4, 5]
    assert len(waiting.files) == 5


def test_a_bad_row_is_stopped_by_the_blocking_checks(lab: Lab, instance: dg.DagsterInstance) -> None:
    lab.mirror()
    lab.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    result = _launch(lab, instance, key(2, 2))
    assert not result.success
    feed = {found.check_name: found for found in result.get_asset_check_evaluations() if found.asset_key == _FEED}
    assert {name for name, found in feed.items() if is_blocking_failure(found)} == {"key_presence"}
    assert (feed["row_order"].passed, feed["row_order"].severity) == (False, dg.AssetCheckSeverity.WARN)
    assert feed["row_order"].description == f"slice {key(2, 2)}: skipped: key_presence failed"
    assert feed["key_presence"].metadata["slice"].value == str(key(2, 2))
    (step,) = [event for event in result.all_events if event.is_step_failure]
    said = _description(step)
    assert f"{TABLE}: slice {key(2, 2)} was not published: key_presence: " in said
    assert "the key column 'id' is NULL in 1 row of commit 2, such as «name 'x', amount 1.0»." in said
    step_of_check = feed["key_presence"].metadata["next_step"].value
    assert said.endswith(f"Next: {step_of_check}")
    assert "launch the job `rebuild`" in str(step_of_check)
    assert _materialized(instance, _ZONE) == set()
    told = {name: _status(instance, _ZONE, name) for name in _LANDING_CHECKS}
    assert told == dict.fromkeys(_LANDING_CHECKS, "SUCCEEDED"), "none of them never ran"
    assert len(lab.files) == 1
    assert read_failure(lab.store, TABLE) is None, "the mirror itself has not failed"


def test_a_bad_row_is_told_by_its_check_in_a_run_for_all_tables(lab: Lab, instance: dg.DagsterInstance) -> None:
    lab.mirror()
    lab.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    job = build_definitions(lab.config).resolve_job_def(MIRROR_ALL)
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    keys = [dg.AssetCheckKey(_FEED, name) for name in BLOCKING_CHECKS]
    feed = {name.name: found for name in keys if (found := RecordedChecks(instance, keys).last(name))}
    assert {name for name, found in feed.items() if is_blocking_failure(found)} == {"key_presence"}
    assert (feed["key_presence"].description or "").startswith(f"slice {key(2, 2)}: the key column 'id' is NULL")
    assert feed["row_order"].description == f"slice {key(2, 2)}: skipped: key_presence failed"
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags["mirror/failing"] == str(TABLE)
    failure = read_failure(lab.store, TABLE)
    assert failure is not None
    assert (failure.slice, failure.code, failure.count) == (None, ErrorCode.CHECKS_FAILED, 1)
    steps = {feed["key_presence"].metadata["next_step"].value, failure.next_step}
    assert steps == {"fix the source, then launch the job `rebuild` for this table. Other tables continue."}


def _status(instance: dg.DagsterInstance, asset: dg.AssetKey, check: str) -> str:
    """The status of the newest record of the check: PLANNED for one that a failed run has left out."""
    key = dg.AssetCheckKey(asset, check)
    return instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key].status.value


def test_one_check_of_a_staged_slice_runs_by_hand(lab: Lab, instance: dg.DagsterInstance) -> None:
    lab.mirror()
    lab.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    assert not _launch(lab, instance, key(2, 2)).success
    one = dg.AssetSelection.checks(dg.AssetCheckKey(_FEED, "key_presence"))
    job = dg.define_asset_job("one", one)
    definitions = dg.Definitions.merge(build_definitions(lab.config), dg.Definitions(jobs=[job]))
    result = definitions.resolve_job_def("one").execute_in_process(instance=instance, raise_on_error=False)
    (found,) = result.get_asset_check_evaluations()
    assert (found.check_name, found.passed) == ("key_presence", False)
    (step,) = [event for event in result.all_events if event.is_step_failure]
    assert "slice 1.2-2 was not published" in _description(step)


def test_checks_of_slices_that_landed_before_say_so_and_count_none(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    result = _launch(mirrored, instance, key(2, 3))
    (order,) = [found for found in result.get_asset_check_evaluations() if found.check_name == "row_order"]
    assert (order.passed, order.description) == (True, NOTHING_STAGED)
    assert "slices" not in order.metadata


def test_a_range_runs_checks_name_their_slices(waiting: Lab, instance: dg.DagsterInstance) -> None:
    result = _launch(waiting, instance, key(2, 3), key(4, 5))
    (order,) = [found for found in result.get_asset_check_evaluations() if found.check_name == "row_order"]
    found = {name: order.metadata[name].value for name in ("slices", "first_slice", "last_slice")}
    assert found == {"slices": 2, "first_slice": str(key(2, 3)), "last_slice": str(key(4, 5))}


def test_a_published_partition_again_changes_nothing(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    before = {path.name: path.read_bytes() for path in mirrored.folder.glob("0*.parquet")}
    assert _launch(mirrored, instance, key(2, 3)).success
    assert {path.name: path.read_bytes() for path in mirrored.folder.glob("0*.parquet")} == before


def test_a_partition_out_of_order_is_a_clear_error(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (800, 'x', 1)", "INSERT INTO {t} VALUES (801, 'x', 1)")
    result = _launch(mirrored, instance, key(7, 7))
    assert not result.success
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    assert "version 6 is the next one to be covered" in _description(failed)
    assert len(mirrored.files) == 3


def test_a_slice_of_an_earlier_epoch_succeeds_as_void(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    job = build_definitions(mirrored.config).resolve_job_def(REBUILD)
    config = dg.RunConfig(ops={REBUILD_OP: {"config": {"table": str(TABLE), "confirm": str(TABLE)}}})
    assert job.execute_in_process(instance=instance, run_config=config).success
    assert _launch(mirrored, instance, key(2, 3)).success
    assert len(mirrored.files) == 1


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
    assert instance.fetch_materializations(asset_key(AssetKind.MIRROR, TABLE), limit=1).records
    checks = definitions.resolve_job_def(ALL_CHECKS)
    passed = checks.execute_in_process(instance=instance, raise_on_error=False)
    assert passed.success
    assert [event.step_key for event in passed.all_events if event.is_step_success] == [CHECK_OP]
    names = {evaluation.check_name for evaluation in passed.get_asset_check_evaluations()}
    assert "row_order" not in names, "nothing is staged, and the last slice's figures stay"
    assert {
        "file_continuity",
        "metadata_unchanged",
        "lag",
        "not_held",
        "not_failing",
        "retention",
        "replicating",
        "reconciled",
    } <= names
    landing: Path = lab.folder / f"{1:020d}.parquet"
    landing.write_bytes(landing.read_bytes()[:-1])
    damaged = checks.execute_in_process(instance=instance, raise_on_error=False)
    (failed,) = [event for event in damaged.all_events if event.is_step_failure]
    assert "1 blocking check failed: file_continuity of shop/orders_landing: " in _description(failed)
    assert "Next: restore the file that the message names" in _description(failed)


@pytest.mark.parametrize(("name", "partition"), [(MIRROR_TABLE, str(TABLE)), (MIRROR_SCHEMA, TABLE.schema)])
def test_a_table_or_schema_is_a_partition_of_a_job(
    waiting: Lab, instance: dg.DagsterInstance, name: str, partition: str
) -> None:
    job = build_definitions(waiting.config).resolve_job_def(name)
    assert job.partitions_def is not None
    assert job.partitions_def.get_partition_keys() == [partition]
    assert job.execute_in_process(instance=instance, partition_key=partition).success
    assert _materialized(instance, _ZONE) == {str(key(2, 3)), str(key(4, 5))}


def test_the_checks_of_a_table_are_evaluated_by_the_run_that_lands_and_a_failure_stays_in_the_history(
    lab: Lab, instance: dg.DagsterInstance
) -> None:
    """For Dagster, a result of the run that has materialized the asset is no older than the asset."""
    job = build_definitions(lab.config).resolve_job_def(MIRROR_ALL)
    landed = job.execute_in_process(instance=instance)
    shown = {found.check_name for found in landed.get_asset_check_evaluations()}
    assert shown == {*BLOCKING_CHECKS, *_LANDING_CHECKS}
    lab.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    assert not job.execute_in_process(instance=instance, raise_on_error=False).success
    lab.sql("DELETE FROM {t} WHERE id IS NULL")
    key_presence = dg.AssetCheckKey(_FEED, "key_presence")
    history = instance.event_log_storage.get_asset_check_execution_history(key_presence, limit=10)
    assert [record.status.value for record in history] == ["FAILED", "SUCCEEDED"]
