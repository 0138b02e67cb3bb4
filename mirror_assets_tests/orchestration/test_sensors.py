"""What the sensors request, and when; and the assets on whose pages Dagster shows them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.remote_representation.external import RemoteRepository
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.remote_representation.handle import RepositoryHandle
from dagster._core.utils import make_new_run_id
from deltalake import write_deltalake

from mirror_assets.config.load import load_config, parse_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.names import TableName, batch_lease, heartbeat_path
from mirror_assets.landing.rebuild import begin_drop
from mirror_assets.landing.run_records import Lease, Process, take_lease, write_heartbeat
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration import resident as resident_runs
from mirror_assets.orchestration import sensors
from mirror_assets.orchestration.jobs import REPLICATE, TABLES_OP
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, MirrorAssets
from mirror_assets.orchestration.resident import BatchRuns, code_mark
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.runs import BATCH_TAG, PROCESS_TAG, Location, mirror_name
from mirror_assets.orchestration.schedules import SENSORS_VARIABLE, default_sensor_status
from mirror_assets.orchestration.sensors import MIRROR_SENSOR, REPLICATOR_SENSOR, TickFailed
from mirror_assets.orchestration.translator import ASSET_KINDS, asset_key
from mirror_assets.pipeline import liveness, table_watch
from mirror_assets.pipeline.leases import BatchRunner, batch_holder
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones import LocalStore
from mirror_assets_tests.orchestration.mirrors import evaluate
from mirror_assets_tests.pipeline.test_liveness import elsewhere, ended_process, living_process

_ELSEWHERE = elsewhere()


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
        result = evaluate(self.definitions.resolve_sensor_def(MIRROR_SENSOR), context)
        if isinstance(result, dg.SkipReason):
            return result.skip_message or ""
        assert isinstance(result, dg.SensorResult)
        return list(result.run_requests or [])

    def requested(self) -> dg.RunRequest:
        """Return the one run that a tick requests."""
        found = self.tick()
        assert isinstance(found, list), found
        assert len(found) == 1
        return found[0]

    def launch(self, request: dg.RunRequest) -> dg.DagsterRun:
        """Create the run that was asked for; it does not start."""
        job = self.definitions.resolve_job_def(MIRROR_ALL)
        return self.instance.create_run_for_job(job, run_config=request.run_config, tags=request.tags)

    def runs(self, request: dg.RunRequest, *, run: str = "0815", process: Process | None = None) -> None:
        """Let a run of another process hold the batch's lease, as the request says; this test's process by default."""
        follow = request.run_config["ops"][TABLES_OP]["config"]["follow"]
        path = batch_lease(mirror_name(self.instance, None), follow["batch"])
        write_heartbeat(self.store, run, process or living_process())
        lease = Lease(
            subject="tables",
            run=run,
            process=process or living_process(),
            since_ms=int(time.time() * 1000),
            code=follow["code"],
        )
        take_lease(self.store, path, lease, lambda _: True)

    def lease(self) -> Lease:
        """Return the lease of the first batch."""
        found = batch_holder(self.store, mirror_name(self.instance, None), 0)
        assert found is not None
        return found


def deployed(root: Path, instance: dg.DagsterInstance, automation: str, tables: str = "abc") -> Deployment:
    lines = ["landing_zone: {path: ./zone}", f"automation: {{{automation}}}", "tables:"]
    lines += [f"  {name}: {{source: ./{name}, keys: [id]}}" for name in tables]
    return Deployment(root, instance, parse_config("\n".join(lines).encode(), root / "mirror.yaml", {}))


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
    assert resident.tick() == f"run {run.run_id} is starting, for 3 tables"
    resident.runs(request)
    assert resident.tick() == "run 0815 mirrors 3 tables"


def test_a_run_of_other_definitions_is_requested_to_end_before_another_starts(
    resident: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = resident.requested()
    resident.runs(request)
    resident.load()
    assert resident.tick() == "run 0815 mirrors 3 tables", "a reload alone changes nothing"
    assert resident.lease().next_code == ""
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "another")
    told = "run 0815 mirrors 3 tables; it ends, because settings, code or tables have changed"
    assert [resident.tick(), resident.tick()] == [told, told]
    ending = resident.lease()
    assert (ending.run, ending.next_code) == ("0815", code_mark(MirrorAssets(resident.config)))
    resident.store.delete(heartbeat_path("0815"))
    following = resident.requested().run_config["ops"][TABLES_OP]["config"]["follow"]
    assert following["code"] == ending.next_code


@pytest.mark.parametrize("process", [ended_process, elsewhere, living_process])
def test_a_run_that_was_killed_is_replaced_and_ends_in_dagster_and_one_that_lives_does_not(
    resident: Deployment, monkeypatch: pytest.MonkeyPatch, process: Callable[[], Process]
) -> None:
    """The heartbeat of each is late."""
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 0.0)
    request, found = resident.requested(), process()
    run = started(resident, request, found)
    resident.runs(request, run=run.run_id, process=found)
    if process is living_process:
        assert resident.tick() == f"run {run.run_id} mirrors 3 tables"
    else:
        assert isinstance(resident.tick(), list)
        assert status(resident, run) is dg.DagsterRunStatus.FAILURE


def test_a_run_elsewhere_that_dagster_knows_to_have_ended_keeps_the_next_one_no_longer(resident: Deployment) -> None:
    request = resident.requested()
    run = started(resident, request, _ELSEWHERE)
    resident.runs(request, run=run.run_id, process=_ELSEWHERE)
    assert resident.tick() == f"run {run.run_id} mirrors 3 tables"
    resident.instance.report_run_failed(run)
    assert isinstance(resident.tick(), list)
    following = BatchRunner(resident.store, mirror_name(resident.instance, None), 0, "next", "code")
    with following.running():
        assert following.reason_to_end() is None, "its heartbeat would be alive for five minutes"


def status(deployment: Deployment, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    found = deployment.instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


def started(resident: Deployment, request: dg.RunRequest, process: Process | None) -> dg.DagsterRun:
    """A run that Dagster takes for running, in that process; None: it has not said in which."""
    run = resident.launch(request)
    resident.instance.report_dagster_event(
        dg.DagsterEvent(event_type_value="PIPELINE_START", job_name=MIRROR_ALL), run_id=run.run_id
    )
    if process is not None:
        resident.instance.add_run_tags(run.run_id, {PROCESS_TAG: process.model_dump_json()})
    return run


@pytest.mark.parametrize("process", [None, _ELSEWHERE, living_process()], ids=["unknown", "elsewhere", "living"])
def test_a_run_that_dagster_takes_for_running_needs_a_heartbeat_unless_its_process_lives_here(
    resident: Deployment, monkeypatch: pytest.MonkeyPatch, process: Process | None
) -> None:
    run = started(resident, resident.requested(), process)
    starting = f"run {run.run_id} is starting or ending, for 3 tables"
    assert resident.tick() == starting
    monkeypatch.setattr(resident_runs, "_START_SECONDS", -1.0)
    if process == living_process():
        assert resident.tick() == starting
    else:
        assert isinstance(resident.tick(), list)
        assert status(resident, run) is dg.DagsterRunStatus.FAILURE


def test_a_run_that_never_starts_is_recorded_as_failed_and_a_queued_one_is_not(
    resident: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: a run that was being started when its host was reset kept the sensor waiting permanently."""
    monkeypatch.setattr(resident_runs, "_START_SECONDS", -1.0)
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("shop"), "__repository__"), MIRROR_ALL)

    def added(status: dg.DagsterRunStatus) -> dg.DagsterRun:
        tags, run = {BATCH_TAG: "0"}, make_new_run_id()
        return resident.instance.add_run(
            dg.DagsterRun(job_name=MIRROR_ALL, run_id=run, status=status, tags=tags, remote_job_origin=origin)
        )

    starting = added(dg.DagsterRunStatus.STARTING)
    assert isinstance(resident.tick(), list)
    assert status(resident, starting) is dg.DagsterRunStatus.FAILURE
    queued = added(dg.DagsterRunStatus.QUEUED)
    assert resident.tick() == f"run {queued.run_id} waits in Dagster's queue, for 3 tables"


def test_a_canceled_run_whose_process_is_dead_is_recorded_as_canceled(resident: Deployment) -> None:
    run = started(resident, resident.requested(), ended_process())
    resident.instance.report_run_canceling(run)
    assert isinstance(resident.tick(), list)
    assert status(resident, run) is dg.DagsterRunStatus.CANCELED


def test_two_instances_on_one_zone_do_not_replace_each_other(resident: Deployment) -> None:
    other = BatchRunner(resident.store, "mirror_assets of a desk", 0, "4711", "code", ("a", "b", "c"))
    with other.running():
        assert other.reason_to_end() is None
        told = resident.tick()
        assert isinstance(told, str)
        assert "another Dagster instance mirrors 3 tables: run 4711" in told
        assert other.reason_to_end() is None
    assert resident.requested()


def test_a_mirror_of_some_of_the_tables_is_named_and_both_run(resident: Deployment) -> None:
    other = BatchRunner(resident.store, "mirror_assets of a desk", 0, "4711", "code", ("c", "d"))
    with other.running():
        assert other.reason_to_end() is None
        resident.runs(resident.requested())
        told = resident.tick()
        assert isinstance(told, str)
        assert told.startswith(
            "run 0815 mirrors 3 tables; another mirror has the same tables (c): run 4711 works on batch 0"
        )
        assert f"of mirror_assets of a desk, in process {os.getpid()} on {platform.node()}" in told
    assert resident.tick() == "run 0815 mirrors 3 tables"


def test_runs_of_another_code_location_are_no_concern(resident: Deployment) -> None:
    request = resident.requested()
    theirs = resident.launch(request)
    here = BatchRuns(resident.instance, Location("__repository__", "here"), "mirror_all", 0)
    assert here.active is None
    resident.instance.add_run_tags(theirs.run_id, {".dagster/repository": "__repository__@here"})
    there = BatchRuns(resident.instance, Location("__repository__", "here"), "mirror_all", 0)
    assert there.active == f"run {theirs.run_id} is starting"


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
    (batch.root / "c").mkdir()  # which can't be read
    request = batch.requested()
    follow = request.run_config["ops"][TABLES_OP]["config"]["follow"]
    assert (follow["minutes"], follow["pending"]) == (0, ["b"])
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
    assert len(deployed(tmp_path / "few", instance, "batches: 9", "ab").tick()) == 2, "no run without tables"


def test_batches_that_leave_no_room_for_other_runs_are_refused(tmp_path: Path) -> None:
    with dg.instance_for_test({"concurrency": {"runs": {"max_concurrent_runs": 2}}}) as narrow:
        assert len(deployed(tmp_path, narrow, "batches: 1").tick()) == 1
        with pytest.raises(TickFailed, match=r"automation.batches is 2, and Dagster starts at most 2 runs at a time"):
            deployed(tmp_path, narrow, "batches: 2").tick()


def test_a_source_that_does_not_answer_holds_up_no_other(batch: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "_TICK_SECONDS", 1.0)
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


@pytest.mark.usefixtures("database")
def test_a_mirror_in_fabric_has_no_sensor_of_the_stand_in() -> None:
    assert REPLICATOR_SENSOR not in {sensor.name for sensor in build_definitions(load_config()).sensors or ()}


_SETTINGS = """\
landing_zone: {path: ./landing}
mirror: {path: ./mirror}
tables:
  sales.orders: {source: ./lake/orders, keys: [id]}
  lines: {source: ./lake/lines, keys: [id]}
"""


def test_the_page_of_each_asset_lists_the_sensors_of_its_table(tmp_path: Path) -> None:
    (tmp_path / "mirror.yaml").write_text(_SETTINGS)
    config = load_config(tmp_path / "mirror.yaml")
    snap = RepositorySnap.from_def(build_definitions(config).get_repository_def())
    seen = RemoteRepository(snap, RepositoryHandle.for_test(), auto_materialize_use_sensors=True)
    for kind, name in product(ASSET_KINDS, config.names):
        targets = {
            found.name: [target.job_name for target in found.get_targets()]
            for found in seen.get_sensors_targeting(asset_key(kind, name))
        }
        assert targets == {"mirror": [MIRROR_ALL], "replicator": [REPLICATE]}, "they still start these jobs"


def test_the_query_of_a_sensor_is_short_with_many_tables(tmp_path: Path) -> None:
    tables = "".join(f"  sales.t{number}: {{source: ./lake/t{number}, keys: [id]}}\n" for number in range(100))
    (tmp_path / "mirror.yaml").write_text(_SETTINGS + tables)
    snap = RepositorySnap.from_def(build_definitions(load_config(tmp_path / "mirror.yaml")).get_repository_def())
    for sensor in snap.sensors:
        assert len(str(sensor.asset_selection)) < 200, sensor.name
