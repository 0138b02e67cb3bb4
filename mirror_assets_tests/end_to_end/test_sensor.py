"""Stories of a table's sensor: what others do to the table, by hand or elsewhere, and what it then asks for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import pytest

from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.rebuild import begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.asset_names import RANGE_END, RANGE_START, TABLE_TAG, Kind, asset_key, slices_of
from mirror_assets.orchestration.jobs import REBUILD, TABLES_OP, slices_job_name
from mirror_assets.pipeline.errors import SourceBroke, TableHeld
from mirror_assets.pipeline.table_lease import leased
from mirror_assets_tests.end_to_end.ticks import Location
from mirror_assets_tests.lab import TABLE, Lab, key

ZONE = asset_key(Kind.LANDING_ZONE, TABLE)
PARTITIONS = slices_of(TABLE).name or ""


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


def lose_changes(lab: Lab) -> None:
    """Delete what only the feed of the changes tells that wait: only a run can see that."""
    shutil.rmtree(lab.root / "lake" / "orders" / "_change_data")


def passes(instance: dg.DagsterInstance) -> bool:
    """Whether the newest evaluation of the check not_held has passed."""
    record = instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(ZONE, "not_held"))
    assert record is not None
    return record.status.value == "SUCCEEDED"


def test_a_held_table_is_seen_and_goes_on_once_it_was_rebuilt_by_hand(
    waiting: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.pipeline.backoff._FIRST_PAUSE_SECONDS", 0)
    waiting.configure(table="on_break: hold")
    lose_changes(waiting)
    location = Location.of(waiting, instance)
    assert not location.run(location.requested()).success
    with pytest.raises(TableHeld, match="is gone"):
        location.tick()
    assert not passes(instance)
    assert location.rebuild().success
    assert "version 5 is covered" in location.skipped()
    assert passes(instance)


def test_a_rebuild_by_hand_during_the_pause_is_the_only_one(waiting: Lab, instance: dg.DagsterInstance) -> None:
    lose_changes(waiting)
    location = Location.of(waiting, instance)
    assert not location.run(location.requested()).success
    assert "1 runs of shop.orders failed" in location.skipped()
    assert location.rebuild().success
    assert "version 5 is covered" in location.skipped()
    waiting.sql("INSERT INTO {t} VALUES (900, 'x', 1)")
    assert location.requested().tags[RANGE_START] == str(key(6, 6, epoch=2))


def test_a_rebuild_from_elsewhere_counts_as_well(waiting: Lab, instance: dg.DagsterInstance) -> None:
    """The command line without DAGSTER_HOME has an instance of its own."""
    lose_changes(waiting)
    location = Location.of(waiting, instance)
    assert not location.run(location.requested()).success
    with dg.DagsterInstance.ephemeral() as other:
        assert Location.of(waiting, other).rebuild().success
    assert "version 5 is covered" in location.skipped()


def test_failures_of_a_table_that_was_mended_count_no_more(
    waiting: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = Location.of(waiting, instance)
    requested = location.requested()
    with monkeypatch.context() as planted:
        planted.setattr("mirror_assets.pipeline.stage.stage_attempt", _broken)
        for _ in range(3):
            assert not location.run(requested).success
    assert "3 runs of shop.orders failed" in location.skipped()
    with dg.DagsterInstance.ephemeral() as other:
        assert Location.of(waiting, other).mirror_all().success
    waiting.sql("INSERT INTO {t} VALUES (900, 'x', 1)")
    assert location.requested().tags[RANGE_START] == str(key(6, 6))


def test_a_failure_elsewhere_makes_the_sensor_wait(
    lab: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", _broken)
    lab.configure(table="on_break: hold")
    with dg.DagsterInstance.ephemeral() as other:
        assert not Location.of(lab, other).mirror_all().success
    assert "1 runs of shop.orders failed" in Location.of(lab, instance).skipped()


def test_a_run_that_was_killed_tells_nobody_and_makes_the_sensor_wait(lab: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(lab, instance)
    request = location.requested()
    job = location.definitions.resolve_job_def(slices_job_name(TABLE))
    run = instance.create_run_for_job(job, tags=request.tags)
    instance.report_run_failed(run)
    assert "1 runs of shop.orders failed" in location.skipped()
    lab.mirror()
    assert "version 1 is covered" in location.skipped()


@contextmanager
def elsewhere(lab: Lab) -> Iterator[None]:
    """While a run of another instance works on the table."""
    with leased(lab.store, TABLE, "0815"):
        yield


def _broken(*_: object) -> SliceRecord:
    raise SourceBroke(str(TABLE), 0, "planted")


def test_a_partition_that_is_no_slice_is_left_alone(lab: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(lab, instance)
    instance.add_dynamic_partitions(PARTITIONS, ["foo"])
    requested = location.requested()
    assert (requested.tags[RANGE_START], requested.tags[RANGE_END]) == (str(key(0, 1)), str(key(0, 1)))
    assert location.run(requested).success


def test_a_range_ends_before_a_partition_that_is_no_slice(waiting: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(waiting, instance)
    instance.add_dynamic_partitions(PARTITIONS, [str(key(2, 3)), "foo"])
    for expected in (key(2, 3), key(4, 5)):
        requested = location.requested()
        assert (requested.tags[RANGE_START], requested.tags[RANGE_END]) == (str(expected), str(expected))
        assert location.run(requested).success
    assert "version 5 is covered" in location.skipped()


def test_a_run_that_is_asked_for_what_is_no_slice_says_what_to_do(lab: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(lab, instance)
    instance.add_dynamic_partitions(PARTITIONS, ["foo"])
    job = location.definitions.resolve_job_def(slices_job_name(TABLE))
    result = job.execute_in_process(instance=instance, partition_key="foo", raise_on_error=False)
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    assert "partition 'foo' is no slice of the table" in (told.description or "")
    assert "delete this one" in (told.description or "")


def test_an_interrupted_rebuild_waits_for_whoever_goes_on_with_it(lab: Lab, instance: dg.DagsterInstance) -> None:
    lab.mirror()
    drive(begin_rebuild(TABLE), lab.store)
    location = Location.of(lab, instance)
    with elsewhere(lab):
        assert "run 0815 works on shop.orders" in location.skipped()
    assert location.requested().job_name == REBUILD


def test_a_table_that_is_busy_elsewhere_is_mirrored_once(lab: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(lab, instance)
    with elsewhere(lab):
        assert "run 0815 works on shop.orders" in location.skipped()
        result = location.mirror_all()
        assert result.success
        (report,) = result.output_for_node(TABLES_OP)
        assert (report.slices, report.result) == (0, "left to another run")
    assert location.mirror_all().success
    assert len(lab.files) == 1


@pytest.mark.parametrize("by_hand", ["slices", "rebuild", "assets"])
def test_a_run_by_hand_of_the_table_is_waited_for(lab: Lab, instance: dg.DagsterInstance, by_hand: str) -> None:
    location = Location.of(lab, instance)
    resolve = location.definitions
    config, chosen = {"ops": {"rebuild_table": {"config": {"table": str(TABLE)}}}}, None
    job, run_config = resolve.resolve_job_def(REBUILD), config
    if by_hand != "rebuild":
        run_config = {}
        job = resolve.resolve_job_def(slices_job_name(TABLE))
    if by_hand == "assets":
        job, chosen = resolve.resolve_implicit_global_asset_job_def(), frozenset({ZONE})
    run = instance.create_run_for_job(job, run_config=run_config, asset_selection=chosen)
    assert f"run {run.run_id} of shop.orders is under way" in location.skipped()
    instance.report_run_canceled(run)
    assert location.requested().tags[TABLE_TAG] == str(TABLE)


def test_the_oldest_partitions_go_and_their_history_stays(lab: Lab, instance: dg.DagsterInstance) -> None:
    lab.configure(defaults="partitions: {keep: 2}\n  slices: {max_commits: 1}")
    location = Location.of(lab, instance)
    assert location.run(location.requested()).success
    lab.change()
    assert location.run(location.requested()).success
    assert instance.get_dynamic_partitions(PARTITIONS) == [str(key(v, v)) for v in (2, 3, 4, 5)]
    lab.sql("INSERT INTO {t} VALUES (900, 'x', 1)")
    assert location.run(location.requested()).success
    assert instance.get_dynamic_partitions(PARTITIONS) == [str(key(v, v)) for v in (5, 6)]
    old = dg.AssetRecordsFilter(ZONE, asset_partitions=[str(key(0, 1))])
    assert len(instance.fetch_materializations(old, limit=10).records) == 1


def test_mirror_all_keeps_as_many_partitions(lab: Lab, instance: dg.DagsterInstance) -> None:
    lab.configure(defaults="partitions: {keep: 2}\n  slices: {max_commits: 1}")
    lab.change()
    lab.mirror()
    for number in range(3):
        lab.sql(f"INSERT INTO {{t}} VALUES (90{number}, 'x', 1)")
    assert Location.of(lab, instance).mirror_all().success
    assert instance.get_dynamic_partitions(PARTITIONS) == [str(key(v, v)) for v in (7, 8)]
