"""Stories of the sensor in mode batch: what others do to a table, by hand or elsewhere, and what it then asks for."""

from __future__ import annotations

import time

import dagster as dg
import pytest

from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.rebuild import begin_rebuild
from mirror_assets.landing.run_records import Lease, read_failure, take_lease
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration import table_events
from mirror_assets.orchestration.jobs import REBUILD, TABLES_OP
from mirror_assets.orchestration.mirror_assets import partitions_name
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets.pipeline import table_watch
from mirror_assets.pipeline.errors import SOURCE_BROKE
from mirror_assets.pipeline.leases import leased
from mirror_assets.pipeline.next_action import zone_state
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.table_health import check_not_held
from mirror_assets_tests.end_to_end.ticks import Location, materialize
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.pipeline.test_liveness import ended_process

ZONE = asset_key(AssetKind.LANDING, TABLE)
PARTITIONS = partitions_name(asset_key(AssetKind.LANDING, TABLE))
NOTHING = "nothing is pending of 1 tables"


@pytest.fixture(autouse=True)
def _ticks_come_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table in trouble is looked at every 15 seconds, as the sensor ticks; here ticks don't wait."""
    monkeypatch.setattr(table_watch, "_FAILED_SECONDS", 0.0)


def is_held(lab: Lab) -> bool:
    """Whether the check `not_held` fails."""
    return not check_not_held(lab.context, zone_state(lab.context), lambda: plan_table(lab.context)).passed


def test_a_held_table_is_seen_and_goes_on_once_it_was_rebuilt_by_hand(
    waiting: Lab, instance: dg.DagsterInstance
) -> None:
    waiting.configure(table="on_break: hold")
    waiting.lose_changes()
    location = Location.of(waiting, instance)
    assert not location.run(location.requested()).success
    assert is_held(waiting)
    assert location.rebuild().success
    assert location.skipped() == NOTHING
    assert not is_held(waiting)


def test_a_table_that_must_be_rebuilt_is_rebuilt_in_the_same_run(waiting: Lab, instance: dg.DagsterInstance) -> None:
    waiting.lose_changes()
    location = Location.of(waiting, instance)
    result = location.run(location.requested())
    (report,) = result.output_for_node(TABLES_OP)
    assert (report.rebuilds, report.covered) == (1, 5)
    assert location.skipped() == NOTHING


def test_a_table_that_can_be_repaired_is_repaired_in_the_same_run(waiting: Lab, instance: dg.DagsterInstance) -> None:
    waiting.configure(table="on_break: repair")
    waiting.lose_changes()
    location = Location.of(waiting, instance)
    result = location.run(location.requested())
    (report,) = result.output_for_node(TABLES_OP)
    assert (report.slices, report.rebuilds, report.covered) == (1, 0, 5)
    assert waiting.manifest().epoch == 1
    assert location.skipped() == NOTHING
    assert waiting.is_equal


def test_a_rebuild_by_hand_is_the_only_one(waiting: Lab, instance: dg.DagsterInstance) -> None:
    waiting.lose_changes()
    location = Location.of(waiting, instance)
    assert not location.run_slices(key(2, 3), key(4, 5)).success
    assert location.requested(), "partitions that a person chose keep no scheduler waiting"
    assert location.rebuild().success
    assert location.skipped() == NOTHING
    waiting.sql("INSERT INTO {t} VALUES (900, 'x', 1)")
    result = location.run(location.requested())
    (report,) = result.output_for_node(TABLES_OP)
    assert (report.rebuilds, report.covered) == (0, 6)


def test_a_failure_elsewhere_makes_the_sensor_wait(
    lab: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", _broken)
    lab.configure(table="on_break: hold")
    with dg.DagsterInstance.ephemeral() as other:
        assert not Location.of(lab, other).mirror_all().success
    assert Location.of(lab, instance).skipped() == NOTHING


def leave_a_lease(lab: Lab) -> None:
    """What a run of this machine leaves when it is killed while it works on the table."""
    left = Lease(subject=str(TABLE), run="0815", process=ended_process(), since_ms=int(time.time() * 1000))
    assert take_lease(lab.store, TABLE.lease, left, lambda _: True) == left


def test_a_run_that_was_killed_once_costs_no_pause_and_again_it_does(lab: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(lab, instance)
    leave_a_lease(lab)
    location.requested()
    failure = read_failure(lab.store, TABLE)
    assert failure is not None
    assert (failure.code, failure.count) == ("run_killed", 1)
    assert "run 0815 ended while it worked" in failure.message
    leave_a_lease(lab)
    assert location.skipped() == NOTHING
    lab.mirror()
    assert location.skipped() == NOTHING
    lab.sql("INSERT INTO {t} VALUES (900, 'x', 1)")
    location.requested()


def _broken(*_: object) -> SliceRecord:
    raise SOURCE_BROKE(table=str(TABLE), version=0, why="planted", undo="")


def test_partitions_that_a_person_has_registered_are_left_alone(waiting: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(waiting, instance)
    registered = [str(key(2, 2)), str(key(3, 4)), "foo"]
    instance.add_dynamic_partitions(PARTITIONS, registered)
    assert location.run(location.requested()).success
    assert location.skipped() == NOTHING
    assert instance.get_materialized_partitions(ZONE) == {str(k) for k in (key(2, 2), key(3, 4), key(5, 5))}
    assert instance.get_dynamic_partitions(PARTITIONS) == [*registered, str(key(5, 5))]


def test_a_run_that_is_asked_for_what_is_no_slice_says_what_to_do(lab: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(lab, instance)
    instance.add_dynamic_partitions(PARTITIONS, ["foo"])
    result = materialize(location.definitions, instance, {"dagster/partition": "foo"})
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    assert "partition 'foo' is not a slice of the table" in (told.description or "")
    assert "delete this one" in (told.description or "")


def test_an_interrupted_rebuild_continues_once_the_lease_is_released(lab: Lab, instance: dg.DagsterInstance) -> None:
    lab.mirror()
    drive(begin_rebuild(TABLE), lab.store)
    location = Location.of(lab, instance)
    with leased(lab.context, "0815"):
        assert location.skipped() == NOTHING
    result = location.run(location.requested())
    (report,) = result.output_for_node(TABLES_OP)
    assert (report.rebuilds, report.result) == (1, "rebuilt")


def test_a_table_that_is_busy_elsewhere_is_mirrored_once(lab: Lab, instance: dg.DagsterInstance) -> None:
    location = Location.of(lab, instance)
    with leased(lab.context, "0815"):
        assert location.skipped() == NOTHING
        result = location.mirror_all()
        assert result.success
        (report,) = result.output_for_node(TABLES_OP)
        assert (report.slices, report.result) == (0, "left to another run")
    assert location.mirror_all().success
    assert len(lab.files) == 1


def test_a_rebuild_by_hand_that_waits_in_the_queue_is_not_asked_for_again(
    lab: Lab, instance: dg.DagsterInstance
) -> None:
    lab.mirror()
    drive(begin_rebuild(TABLE), lab.store)
    location = Location.of(lab, instance)
    job = location.definitions.resolve_job_def(REBUILD)
    run = instance.create_run_for_job(job, tags={"dagster/partition": str(TABLE)})
    assert location.skipped() == NOTHING
    instance.report_run_canceled(run)
    location.requested()


def test_the_oldest_partitions_go_and_their_history_stays(
    lab: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_events, "KEPT_PARTITIONS", 2)
    monkeypatch.setattr(table_events, "_COUNTED_AFTER", 0)
    lab.configure(defaults="slices: {max_commits: 1}")
    location = Location.of(lab, instance)
    assert location.run(location.requested()).success
    lab.change()
    assert location.run(location.requested()).success
    assert instance.get_dynamic_partitions(PARTITIONS) == [str(key(v, v)) for v in (4, 5)]
    lab.sql("INSERT INTO {t} VALUES (900, 'x', 1)")
    assert location.mirror_all().success
    assert instance.get_dynamic_partitions(PARTITIONS) == [str(key(v, v)) for v in (5, 6)]
    old = dg.AssetRecordsFilter(ZONE, asset_partitions=[str(key(0, 1))])
    assert len(instance.fetch_materializations(old, limit=10).records) == 1
