"""When the sensor `mirror` asks for a run, by mode, and when it does not."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.config import Config
from mirror_assets.config.load import parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.drop import begin_drop
from mirror_assets.landing.lease import Lease, Process, take_lease
from mirror_assets.landing.names import TableName, batch_lease
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration import batch_sensor, code_mark, run_records
from mirror_assets.orchestration.asset_names import BATCH_TAG, MIRROR_ALL, AssetKind, asset_key
from mirror_assets.orchestration.batch_sensor import SENSOR
from mirror_assets.orchestration.jobs import TABLES_OP
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.run_records import BatchRuns
from mirror_assets.orchestration.run_tags import PROCESS_TAG, Location, mirror_name
from mirror_assets.orchestration.schedules import SENSORS_VARIABLE, default_sensor_status
from mirror_assets.orchestration.tick_errors import TickFailed
from mirror_assets.pipeline import table_watch
from mirror_assets.pipeline.batch_runner import BatchRunner
from mirror_assets.pipeline.liveness import this_process
from mirror_assets.source.log import DeltaLog
from mirror_assets.storage import LocalStore
from mirror_assets_tests.orchestration.mirrors import evaluate
from mirror_assets_tests.pipeline.test_liveness import ended_process

NOW_MS = 1000


@pytest.mark.parametrize(("value", "on"), [(None, False), ("off", False), ("on", True), ("ON", True)])
def test_sensors_are_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch, value: str | None, on: bool) -> None:
    monkeypatch.delenv(SENSORS_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(SENSORS_VARIABLE, value)
    assert (default_sensor_status().value == "RUNNING") is on


@dataclass
class Deployment:
    """Some tables, their definitions as a code server loads them, and an instance; no run of it is executed."""

    root: Path
    instance: dg.DagsterInstance
    config: Config

    def __post_init__(self) -> None:
        self.store = LocalStore(self.root / "zone")
        self.load()

    def load(self) -> None:
        """Load the definitions anew."""
        self.definitions = build_definitions(self.config)

    def commit(self, table: str) -> None:
        """A row more, or the first."""
        write_deltalake(
            self.root / table,
            pa.table({"id": [1]}),
            mode="append",
            configuration={"delta.enableChangeDataFeed": "true"},
        )

    def tick(self) -> list[dg.RunRequest] | str:
        """The runs that a tick asks for, or why there are none."""
        context = dg.build_sensor_context(
            instance=self.instance, definitions=self.definitions, resources=resources(MirrorAssets(self.config))
        )
        result = evaluate(self.definitions.resolve_sensor_def(SENSOR), context)
        if isinstance(result, dg.SkipReason):
            return result.skip_message or ""
        assert isinstance(result, dg.SensorResult)
        return list(result.run_requests or [])

    def requested(self) -> dg.RunRequest:
        """The one run that a tick asks for."""
        found = self.tick()
        assert isinstance(found, list), found
        assert len(found) == 1
        return found[0]

    def launch(self, request: dg.RunRequest) -> dg.DagsterRun:
        """Create the run that was asked for; it does not start."""
        job = self.definitions.resolve_job_def(MIRROR_ALL)
        return self.instance.create_run_for_job(job, run_config=request.run_config, tags=request.tags)

    def runs(
        self,
        request: dg.RunRequest,
        *,
        run: str = "0815",
        process: Process | None = None,
        minutes: float = 0.0,
        valid: float = 300,
    ) -> None:
        """Let a run take over, as the request says, so many minutes ago."""
        follow = request.run_config["ops"][TABLES_OP]["config"]["follow"]
        now, path = time.time(), batch_lease(mirror_name(self.instance, None), follow["batch"])
        lease = Lease(
            subject="tables",
            run=run,
            process=process or this_process(),
            since_ms=int((now - minutes * 60) * 1000),
            until_ms=int((now + valid) * 1000),
            code=follow["code"],
        )
        take_lease(self.store, path, lease, lambda _: True)


def deployed(root: Path, instance: dg.DagsterInstance, automation: str, tables: str = "abc") -> Deployment:
    lines = ["landing_zone: {path: ./zone}", f"automation: {{{automation}}}", "tables:"]
    lines += [f"  {name}: {{source: ./{name}, keys: [id]}}" for name in tables]
    return Deployment(root, instance, parse_config("\n".join(lines).encode(), root / "mirror.yaml", {}))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


@pytest.fixture
def resident(tmp_path: Path, instance: dg.DagsterInstance) -> Deployment:
    return deployed(tmp_path, instance, "mode: resident")


@pytest.fixture
def batch(tmp_path: Path, instance: dg.DagsterInstance) -> Deployment:
    return deployed(tmp_path, instance, "mode: batch")


def test_a_resident_run_is_asked_for_at_once_and_once(resident: Deployment) -> None:
    request = resident.requested()
    assert request.tags == {BATCH_TAG: "0", "dagster/priority": "10"}
    run = resident.launch(request)
    assert resident.tick() == f"run {run.run_id} for 3 tables is coming"
    resident.runs(request)
    assert resident.tick() == "run 0815 mirrors 3 tables"


def test_the_next_run_is_asked_for_when_the_time_of_one_is_over(resident: Deployment) -> None:
    request = resident.requested()
    resident.runs(request, minutes=239)
    assert isinstance(resident.tick(), str)
    resident.runs(request, minutes=241)
    following = resident.requested()
    run = resident.launch(following)
    assert resident.tick() == f"run {run.run_id} for 3 tables is coming"


def test_the_next_run_is_asked_for_when_definitions_were_loaded_anew(
    resident: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = resident.requested()
    resident.runs(request)
    monkeypatch.setattr(code_mark, "_LOADED", "another process of the code server")
    assert isinstance(resident.tick(), list)


@pytest.mark.parametrize("killed", ["here", "elsewhere"])
def test_a_run_that_was_killed_is_replaced_and_ends_in_dagster(resident: Deployment, killed: str) -> None:
    request = resident.requested()
    run = resident.launch(request)
    resident.instance.report_dagster_event(
        dg.DagsterEvent(event_type_value="PIPELINE_START", job_name=MIRROR_ALL), run_id=run.run_id
    )
    elsewhere = this_process().model_copy(update={"boot": "another machine"})
    process = ended_process() if killed == "here" else elsewhere
    resident.runs(request, run=run.run_id, process=process, valid=60 if killed == "here" else -1)
    assert isinstance(resident.tick(), list)
    ended = resident.instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.FAILURE


def started(resident: Deployment, request: dg.RunRequest, process: Process) -> dg.DagsterRun:
    """A run that Dagster takes for running, in that process."""
    run = resident.launch(request)
    resident.instance.report_dagster_event(
        dg.DagsterEvent(event_type_value="PIPELINE_START", job_name=MIRROR_ALL), run_id=run.run_id
    )
    resident.instance.add_run_tags(run.run_id, {PROCESS_TAG: process.model_dump_json()})
    return run


def test_a_living_run_whose_renewal_is_late_is_left_alone(resident: Deployment) -> None:
    request = resident.requested()
    run = started(resident, request, this_process())
    resident.runs(request, run=run.run_id, valid=-600)
    assert resident.tick() == f"run {run.run_id} mirrors 3 tables"


def test_a_run_that_was_replaced_and_is_still_at_work_does_not_fail(resident: Deployment) -> None:
    request = resident.requested()
    working, killed = (started(resident, request, process) for process in (this_process(), ended_process()))
    resident.runs(request, minutes=241)
    assert isinstance(resident.tick(), str | list)
    found = [resident.instance.get_run_by_id(run.run_id) for run in (working, killed)]
    assert [run.status.value for run in found if run] == ["STARTED", "FAILURE"]


def test_a_first_start_that_takes_long_asks_for_no_second_run(
    resident: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started(resident, resident.requested(), this_process())
    monkeypatch.setattr(run_records, "_START_SECONDS", -1.0)
    assert resident.tick() == f"run {run.run_id} for 3 tables is coming"


def test_two_instances_on_one_zone_do_not_replace_each_other(resident: Deployment) -> None:
    other = BatchRunner(resident.store, "mirror_assets of a desk", 0, "4711", "code", ("a", "b", "c"))
    other.take_over()
    told = resident.tick()
    assert isinstance(told, str)
    assert "another Dagster instance mirrors 3 tables: run 4711" in told
    assert not other.is_replaced()
    other.leave()
    assert resident.requested()


def test_a_mirror_of_some_of_the_tables_is_named_and_both_run(resident: Deployment) -> None:
    other = BatchRunner(resident.store, "mirror_assets of a desk", 0, "4711", "code", ("c", "d"))
    other.take_over()
    resident.runs(resident.requested())
    told = resident.tick()
    assert isinstance(told, str)
    assert told.startswith(
        "run 0815 mirrors 3 tables; another mirror has the same tables (c): run 4711 works on batch 0"
    )
    assert f"of mirror_assets of a desk, in process {os.getpid()} on {platform.node()}" in told
    other.leave()
    assert resident.tick() == "run 0815 mirrors 3 tables"


def test_runs_of_another_code_location_are_no_concern(resident: Deployment) -> None:
    request = resident.requested()
    theirs = resident.launch(request)
    here = BatchRuns(resident.instance, Location("__repository__", "here"), "mirror_all", 0)
    assert here.coming(None, time.time()) is None
    resident.instance.add_run_tags(theirs.run_id, {".dagster/repository": "__repository__@here"})
    there = BatchRuns(resident.instance, Location("__repository__", "here"), "mirror_all", 0)
    assert there.coming(None, time.time()) is not None


def test_runs_that_fail_before_they_take_over_are_asked_for_less_and_less_often(resident: Deployment) -> None:
    for _ in range(2):
        request = resident.requested()
        resident.instance.report_run_failed(resident.launch(request))
    assert "runs for 3 tables have failed; next one in" in str(resident.tick())


def test_a_run_that_failed_behind_its_work_costs_no_pause(resident: Deployment) -> None:
    for _ in range(3):
        request = resident.requested()
        run = resident.launch(request)
        resident.runs(request, process=ended_process())
        resident.instance.report_run_failed(run)
    assert isinstance(resident.tick(), list)


def test_in_mode_batch_a_run_is_asked_for_when_something_is_pending(
    batch: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_watch, "_FAILED_SECONDS", 0.0)
    assert batch.tick() == "nothing is pending of 3 tables", "their sources are not there yet"
    batch.commit("b")
    request = batch.requested()
    assert request.run_config["ops"][TABLES_OP]["config"]["follow"]["minutes"] == 0
    batch.runs(request)
    batch.commit("c")
    assert batch.tick() == "run 0815 mirrors 3 tables", "it finds the other table, too"


def test_tables_are_divided_among_batches(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    made = deployed(tmp_path, instance, "mode: resident, batches: 2", "abcde")
    requests = made.tick()
    assert isinstance(requests, list)
    tables = [request.run_config["ops"][TABLES_OP]["config"]["tables"] for request in requests]
    assert tables == [["a", "c", "e"], ["b", "d"]]
    assert [request.tags[BATCH_TAG] for request in requests] == ["0", "1"]
    made.runs(requests[1])
    request = made.requested()
    assert request.tags[BATCH_TAG] == "0"


def test_more_batches_than_tables_ask_for_no_empty_run(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    requests = deployed(tmp_path, instance, "batches: 9", "ab").tick()
    assert isinstance(requests, list)
    assert len(requests) == 2


def test_batches_that_leave_no_room_for_a_run_that_takes_over_are_refused(tmp_path: Path) -> None:
    with dg.instance_for_test({"concurrency": {"runs": {"max_concurrent_runs": 2}}}) as narrow:
        assert len(deployed(tmp_path, narrow, "batches: 1").tick()) == 1
        with pytest.raises(TickFailed, match=r"automation.batches is 2, and Dagster starts at most 2 runs at a time"):
            deployed(tmp_path, narrow, "batches: 2").tick()


def test_what_a_person_has_to_mend_is_recorded_and_holds_up_no_other(batch: Deployment) -> None:
    batch.commit("b")
    (batch.root / "c").mkdir()
    assert len(batch.tick()) == 1
    checks = {name: _check(batch.instance, name, AssetKind.SOURCE, "readable") for name in "abc"}
    assert checks == {"a": "FAILED", "b": None, "c": "FAILED"}


def _check(instance: dg.DagsterInstance, table: str, kind: AssetKind, check: str) -> str | None:
    key = dg.AssetCheckKey(asset_key(kind, TableName(None, table)), check)
    record = instance.get_latest_asset_check_evaluation_record(key)
    return record.status.value if record else None


def test_a_source_that_does_not_answer_holds_up_no_other(batch: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sensor, "_TICK_SECONDS", 1.0)
    batch.commit("b")
    real = DeltaLog.state

    def hang(log: DeltaLog, version: int | None = None) -> object:
        if log.uri.endswith("/a"):
            time.sleep(60)
        return real(log, version)

    monkeypatch.setattr(DeltaLog, "state", hang)
    began = time.monotonic()
    for _ in range(3):
        assert len(batch.tick()) == 1
    assert time.monotonic() - began < 30


def test_what_a_slow_look_has_seen_counts_in_a_later_tick(batch: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_watch, "_PATIENCE_SECONDS", 0.2)
    real = DeltaLog.state

    def slow(log: DeltaLog, version: int | None = None) -> object:
        time.sleep(2)
        return real(log, version)

    monkeypatch.setattr(DeltaLog, "state", slow)
    for table in "abc":
        batch.commit(table)
    assert batch.tick() == "nothing is pending of 3 tables"
    time.sleep(3)
    assert batch.requested().run_config["ops"][TABLES_OP]["config"]["follow"]["pending"] == ["a", "b", "c"]


def test_a_table_that_is_being_dropped_is_left_alone(batch: Deployment) -> None:
    """Its record is not that of a rebuild, which would have to be gone on with."""
    for name in "abc":
        drive(begin_drop(TableName(None, name)), batch.store)
    assert batch.tick() == "nothing is pending of 3 tables"
