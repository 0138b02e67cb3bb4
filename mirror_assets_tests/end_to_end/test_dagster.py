"""The definitions as people use them: range runs, failures in the middle, checks alone, a rebuild."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.run_records import read_failure
from mirror_assets.orchestration.check_jobs import ALL_CHECKS, CHECK_OP
from mirror_assets.orchestration.check_runs import is_blocking_failure
from mirror_assets.orchestration.checks import CHECKS, NOTHING_STAGED
from mirror_assets.orchestration.jobs import MIRROR_SCHEMA, MIRROR_TABLE, REPLICATE
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, partitions_name
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets.pipeline import stage
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import SOURCE_BROKE
from mirror_assets.source.planner import PlannedSlice
from mirror_assets_tests.end_to_end.ticks import Location, materialize, slices
from mirror_assets_tests.lab import TABLE, Lab, key

_SOURCE = asset_key(AssetKind.SOURCE, TABLE)
_FEED, _ZONE = asset_key(AssetKind.CHANGES, TABLE), asset_key(AssetKind.LANDING, TABLE)
# `sql_columns` is only of landing zones on OneLake.
_LANDING_CHECKS = [one.name for one in CHECKS if one.asset == AssetKind.LANDING and one.name != "sql_columns"]
# Of Direct Lake's checks of a source, a table without settings for it has one.
_SOURCE_AND_LANDING_CHECKS = [*_LANDING_CHECKS, "readable", "retention", "frames_safe"]


def _launch(lab: Lab, instance: dg.DagsterInstance, *keys: SliceKey) -> dg.ExecuteInProcessResult:
    return Location.of(lab, instance).run_slices(*keys)


def _failure(result: dg.ExecuteInProcessResult) -> str:
    """Return the description of the only step that failed."""
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    data = failed.step_failure_data.user_failure_data
    return (data.description if data else None) or str(failed.step_failure_data.error)


def _materialized(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[str]:
    return set(instance.get_materialized_partitions(asset))


def _metadata(instance: dg.DagsterInstance, asset: dg.AssetKey, slice_: SliceKey | None = None) -> dict[str, object]:
    partitions = None if slice_ is None else [str(slice_)]
    (event,) = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset, asset_partitions=partitions), limit=1
    ).records
    assert event.asset_materialization
    return {name: item.value for name, item in event.asset_materialization.metadata.items()}


def _status(instance: dg.DagsterInstance, asset: dg.AssetKey, check: str) -> str:
    """The status of the newest record of the check: PLANNED for one that a failed run has left out."""
    key = dg.AssetCheckKey(asset, check)
    return instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key].status.value


# What a run of two slices leaves.


@dataclass(frozen=True)
class Landed:
    """A table whose slices 2 to 3 and 4 to 5 were landed by one run."""

    lab: Lab
    instance: dg.DagsterInstance
    run: dg.ExecuteInProcessResult


@pytest.fixture(scope="module")
def landed(spark: SparkSession, _waiting_orders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landed]:
    lab = Lab(spark, tmp_path_factory.mktemp("landed") / "lab")
    shutil.copytree(_waiting_orders, lab.root)
    with dg.instance_for_test() as instance:
        instance.add_dynamic_partitions(partitions_name(_ZONE), [str(key(0, 1))])  # as the run did that landed it
        yield Landed(lab, instance, _launch(lab, instance, key(2, 3), key(4, 5)))


def test_metadata_says_what_was_read_and_written(landed: Landed) -> None:
    staged, zone = (_metadata(landed.instance, asset, key(4, 5)) for asset in (_FEED, _ZONE))
    assert next(iter(staged)) == next(iter(zone)) == "summary"
    assert str(staged["summary"]).startswith("versions 4 to 5: 4 rows read, 2 inserts, 2 deletes written in 1 part of ")
    assert str(zone["summary"]).startswith("versions 4 to 5: 2 inserts, 2 deletes in 1 file of ")
    assert staged["dagster/partition_row_count"] == 4
    # `run --follow` and the lines of JSON print these.
    assert (zone["covered_version"], zone["files"], zone["dagster/partition_row_count"]) == (5, 1, 4)
    log = landed.lab.context.log
    assert 0 <= float(str(zone["lag_seconds"])) <= time.time() - log.times(log.state()).at(4) / 1000
    assert _materialized(landed.instance, _SOURCE) == {str(key(2, 3)), str(key(4, 5))}


def test_a_run_and_its_checks_name_table_and_slices(landed: Landed) -> None:
    run = landed.instance.get_run_by_id(landed.run.run_id)
    assert run is not None
    assert (run.tags["mirror/table"], run.tags["mirror/versions"]) == (str(TABLE), "2 to 5")
    assert run.tags["mirror/slice"] == f"{key(2, 3)} ... {key(4, 5)} (2 slices)"
    (order,) = [found for found in landed.run.get_asset_check_evaluations() if found.check_name == "row_order"]
    found = {name: order.metadata[name].value for name in ("slices", "first_slice", "last_slice")}
    assert found == {"slices": 2, "first_slice": str(key(2, 3)), "last_slice": str(key(4, 5))}


def test_columns_are_traced_from_the_mirror_to_the_source_and_its_version_is_shown(landed: Landed) -> None:
    instance, asset, seen = landed.instance, asset_key(AssetKind.MIRROR, TABLE), list[dg.AssetKey]()
    job = build_definitions(landed.lab.config).resolve_job_def(REPLICATE)
    for _ in range(2):
        assert job.execute_in_process(instance=instance).success
    (_,) = instance.fetch_materializations(asset, limit=9).records
    shown = _metadata(instance, asset)
    assert (shown["summary"], shown["source_version"]) == ("Replicating: at version 5 of the source", 5)
    while "dagster/column_lineage" in (shown := _metadata(instance, asset)):
        lineage = shown["dagster/column_lineage"]
        assert isinstance(lineage, dg.TableColumnLineage)
        assert set(lineage.deps_by_column) == {"id", "name", "amount"}
        (dep,) = lineage.deps_by_column["amount"]
        assert dep.column_name == "amount"
        seen.append(asset)
        asset = dep.asset_key
    assert [*seen, asset] == [asset_key(AssetKind.MIRROR, TABLE), _ZONE, _SOURCE]


def test_a_slice_that_is_launched_again_retains_its_metadata(landed: Landed) -> None:
    before = {asset: _metadata(landed.instance, asset, key(2, 3)) for asset in (_FEED, _ZONE)}
    for _ in range(2):
        assert _launch(landed.lab, landed.instance, key(2, 3), key(4, 5)).success
        for asset, metadata in before.items():
            shown, why = _metadata(landed.instance, asset, key(2, 3)), "it has landed before"
            assert shown == {**metadata, "landed_before": why, "summary": f"{why}: {metadata['summary']}"}


def test_an_old_slice_that_is_launched_again_does_not_become_the_newest(landed: Landed) -> None:
    """Seen: the events of a backfill over what had landed ended with the first load."""
    for keys in ((key(2, 3),), (key(0, 1), key(2, 3), key(4, 5))):
        assert _launch(landed.lab, landed.instance, *keys).success
        for asset in (_FEED, _ZONE, _SOURCE):
            newest = landed.instance.get_latest_materialization_event(asset)
            assert newest is not None
            assert newest.asset_materialization is not None
            assert newest.asset_materialization.partition == str(key(4, 5)), asset


def test_slices_that_landed_elsewhere_change_nothing_and_say_so(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    before = {path.name: path.read_bytes() for path in mirrored.folder.glob("0*.parquet")}
    result = _launch(mirrored, instance, key(2, 3), key(4, 5))
    assert result.success
    assert {path.name: path.read_bytes() for path in mirrored.folder.glob("0*.parquet")} == before
    first, newest = _metadata(instance, _ZONE, key(2, 3)), _metadata(instance, _ZONE, key(4, 5))
    assert first == {"landed_before": "it has landed before", "summary": "versions 2 to 3: it has landed before"}
    assert (newest["dagster/partition_row_count"], "lag_seconds" in newest) == (4, False)
    (order,) = [found for found in result.get_asset_check_evaluations() if found.check_name == "row_order"]
    assert (order.passed, order.description) == (True, NOTHING_STAGED)
    assert "slices" not in order.metadata


# Rebuilds and failures.


def test_a_rebuild_leaves_no_slice_of_the_ended_epoch(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    assert not _launch(mirrored, instance, key(4, 5), key(6, 6)).success
    mirrored.sql("DELETE FROM {t} WHERE id IS NULL")
    assert Location.of(mirrored, instance).rebuild().success
    snapshot = key(0, 7, 2)
    registered = instance.get_dynamic_partitions(partitions_name(asset_key(AssetKind.LANDING, TABLE)))
    assert str(key(6, 6)) not in registered
    assert str(snapshot) in registered
    assert {str(snapshot)} <= _materialized(instance, _ZONE) & _materialized(instance, _FEED)
    assert str(_metadata(instance, _ZONE, snapshot)["summary"]).startswith(
        "rebuilt: the table at version 7: 10 inserts in 1 file"
    )
    assert _metadata(instance, _FEED, snapshot)["rebuilt_because"] == "a person requested it"
    assert _launch(mirrored, instance, key(2, 3)).success, "a slice of an earlier epoch is void"
    assert len(mirrored.files) == 1


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first versions of the slices that were encoded; the first attempt at version 4 fails."""
    real, found = stage.stage_attempt, list[int]()

    def planted(context: TableContext, planned: PlannedSlice, *others: object) -> SliceRecord:
        found.append(planned.first)
        if found == [2, 3, 4]:
            raise SOURCE_BROKE(table=str(TABLE), version=4, why="planted", undo="")
        return real(context, planned, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", planted)
    return found


def test_a_failure_in_the_middle_leaves_no_hole_and_is_resumed(
    waiting: Lab, instance: dg.DagsterInstance, encoded: list[int]
) -> None:
    waiting.configure(defaults="slices: {max_commits: 1}")
    keys = [key(version, version) for version in (2, 3, 4, 5)]
    assert not _launch(waiting, instance, *keys).success
    assert _materialized(instance, _FEED) == {str(key(2, 2)), str(key(3, 3))}
    assert read_failure(waiting.store, TABLE) is None, "the mirror itself has not failed"
    assert "PLANNED" not in {_status(instance, _ZONE, name) for name in _LANDING_CHECKS}
    assert len(waiting.files) == 1
    assert _launch(waiting, instance, *keys[:2]).success
    assert len(waiting.files) == 3
    assert encoded == [2, 3, 4], "staged slices are not encoded again"
    assert _launch(waiting, instance, *keys).success
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
    message = _failure(result)
    assert f"{TABLE}: slice {key(2, 2)} was not published: key_presence: " in message
    assert "the key column 'id' is NULL in 1 row of commit 2, such as row 0 of " in message
    assert "'x'" not in message
    step_of_check = feed["key_presence"].metadata["next_step"].value
    assert message.endswith(f"Next: {step_of_check}")
    assert "launch the job `rebuild`" in str(step_of_check)
    assert _materialized(instance, _ZONE) == set()
    statuses = {name: _status(instance, _ZONE, name) for name in _LANDING_CHECKS}
    assert statuses == dict.fromkeys(_LANDING_CHECKS, "SUCCEEDED"), "none of them never ran"
    assert len(lab.files) == 1
    assert read_failure(lab.store, TABLE) is None, "the mirror itself has not failed"

    alone = dg.define_asset_job("one", dg.AssetSelection.checks(dg.AssetCheckKey(_FEED, "key_presence")))
    definitions = dg.Definitions.merge(build_definitions(lab.config), dg.Definitions(jobs=[alone]))
    result = definitions.resolve_job_def("one").execute_in_process(instance=instance, raise_on_error=False)
    (found,) = result.get_asset_check_evaluations()
    assert (found.check_name, found.passed) == ("key_presence", False)
    assert "slice 1.2-2 was not published" in _failure(result)


def test_a_run_for_all_tables_evaluates_checks_and_a_failure_remains_in_their_history(
    lab: Lab, instance: dg.DagsterInstance
) -> None:
    """For Dagster, a result of the run that has materialized the asset is no older than the asset."""
    job = build_definitions(lab.config).resolve_job_def(MIRROR_ALL)
    run = job.execute_in_process(instance=instance).run_id
    logged = (entry.get_dagster_event() for entry in instance.all_logs(run, dg.DagsterEventType.ASSET_CHECK_EVALUATION))
    assert {found.asset_check_evaluation_data.check_name for found in logged} == {
        *BLOCKING_CHECKS,
        *_SOURCE_AND_LANDING_CHECKS,
    }
    lab.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not result.success
    keys = [dg.AssetCheckKey(_FEED, name) for name in BLOCKING_CHECKS]
    feed = {name.name: found for name in keys if (found := RecordedChecks(instance, keys).last(name))}
    assert {name for name, found in feed.items() if is_blocking_failure(found)} == {"key_presence"}
    assert (feed["key_presence"].description or "").startswith(f"slice {key(2, 2)}: the key column 'id' is NULL")
    assert feed["row_order"].description == f"slice {key(2, 2)}: skipped: key_presence failed"
    failure = read_failure(lab.store, TABLE)
    assert failure is not None
    assert (failure.slice, failure.code, failure.count) == (None, ErrorCode.CHECKS_FAILED, 1)
    steps = {feed["key_presence"].metadata["next_step"].value, failure.next_step}
    assert steps == {"fix the source, then launch the job `rebuild` for this table. Other tables continue."}
    key_presence = dg.AssetCheckKey(_FEED, "key_presence")
    history = instance.event_log_storage.get_asset_check_execution_history(key_presence, limit=10)
    assert [record.status.value for record in history] == ["FAILED", "SUCCEEDED"]


def test_a_partition_out_of_order_is_a_clear_error(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (800, 'x', 1)", "INSERT INTO {t} VALUES (801, 'x', 1)")
    result = _launch(mirrored, instance, key(7, 7))
    assert not result.success
    assert "version 6 is the next one to be covered" in _failure(result)
    assert len(mirrored.files) == 3


def test_all_partitions_are_a_range_from_the_first_to_the_last(landed: Landed) -> None:
    before = landed.lab.files
    assert _launch(landed.lab, landed.instance, key(2, 3), key(4, 5)).success
    assert landed.lab.files == before


def test_a_reversed_range_is_a_clear_error(landed: Landed) -> None:
    location = Location.of(landed.lab, landed.instance)
    failed = _failure(materialize(location.definitions, landed.instance, slices(key(4, 5), key(2, 3))))
    assert "range 1.4-5...1.2-3 is reversed, and has no slices" in failed
    assert "Next: begin with the earlier partition" in failed


def test_a_run_without_a_partition_is_a_clear_error(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    """In an instance with events of the table's source, Dagster refuses it before."""
    location = Location.of(mirrored, instance)
    failed = _failure(materialize(location.definitions, instance, {}))
    assert "the run has no partition" in failed
    assert "Next: choose partitions, or launch the job `mirror_table`" in failed


def test_dagster_refuses_a_range_whose_end_is_not_registered(landed: Landed) -> None:
    location = Location.of(landed.lab, landed.instance)
    with pytest.raises(dg.DagsterInvalidInvocationError, match=r"Nonexistent partition keys:\s+\['1.9-9'\]"):
        materialize(location.definitions, landed.instance, slices(key(2, 3), key(9, 9)))


def test_a_partition_beyond_the_newest_commit_is_a_clear_error(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    result = _launch(mirrored, instance, key(6, 9))
    assert "partition 1.6-9 is not one slice: the source has no such commit" in _failure(result)
    assert len(mirrored.files) == 3


def test_landing_zone_alone_publishes_nothing_unchecked(lab: Lab, instance: dg.DagsterInstance) -> None:
    """The gate is in the slice record: a run of the asset without its checks doesn't pass it."""
    instance.add_dynamic_partitions(partitions_name(asset_key(AssetKind.LANDING, TABLE)), [str(key(0, 1))])
    job = build_definitions(lab.config).resolve_implicit_global_asset_job_def()

    def materialize(asset: dg.AssetKey) -> dg.ExecuteInProcessResult:
        alone = job.get_subset(asset_selection={asset}, asset_check_selection=set())
        return alone.execute_in_process(instance=instance, partition_key=str(key(0, 1)), raise_on_error=False)

    assert materialize(_FEED).success
    assert "because of its checks (not run: key_presence" in _failure(materialize(_ZONE))
    assert lab.files == []


@pytest.mark.parametrize(
    ("name", "partition"), [(MIRROR_ALL, None), (MIRROR_TABLE, str(TABLE)), (MIRROR_SCHEMA, TABLE.schema)]
)
def test_a_run_for_tables_logs_what_a_run_of_slices_does(
    waiting: Lab, instance: dg.DagsterInstance, name: str, partition: str | None
) -> None:
    job = build_definitions(waiting.config).resolve_job_def(name)
    partitions = job.partitions_def.get_partition_keys() if job.partitions_def else [None]
    assert partitions == [partition]
    assert job.execute_in_process(instance=instance, partition_key=partition).success
    assert _materialized(instance, _ZONE) == _materialized(instance, _FEED) == {str(key(2, 3)), str(key(4, 5))}
    assert instance.get_latest_data_version_record(_SOURCE, partition_key=str(key(4, 5))) is not None


def test_the_job_of_checks_fails_on_damage(mirrored: Lab, instance: dg.DagsterInstance) -> None:
    definitions = build_definitions(mirrored.config)
    assert definitions.resolve_job_def(REPLICATE).execute_in_process(instance=instance).success
    checks = definitions.resolve_job_def(ALL_CHECKS)
    passed = checks.execute_in_process(instance=instance, raise_on_error=False)
    assert passed.success
    assert [event.step_key for event in passed.all_events if event.is_step_success] == [CHECK_OP]
    names = {evaluation.check_name for evaluation in passed.get_asset_check_evaluations()}
    assert "row_order" not in names, "nothing is staged, and the results of the last slice remain"
    assert {*_LANDING_CHECKS, "replicating", "reconciled"} <= names
    last = mirrored.folder / mirrored.files[-1]
    last.write_bytes(last.read_bytes()[:-1])
    message = _failure(checks.execute_in_process(instance=instance, raise_on_error=False))
    assert "1 blocking check failed: file_continuity of shop/orders_landing: " in message
    assert "Next: restore the file that the message names" in message
