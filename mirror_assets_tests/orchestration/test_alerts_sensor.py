"""The sensor `alerts` against a real instance: what went wrong, one message, and one when it has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, ScheduleInstigatorData
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from mirror_assets.config.alerts import AlertsConfig
from mirror_assets.config.load import parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode, RebuildError, RetryError, SettingError
from mirror_assets.landing.failures import Failure, record_failure
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration import alerts_sensor
from mirror_assets.orchestration.alerts_sensor import SENSOR, AlertWatch
from mirror_assets.orchestration.asset_names import Kind, asset_key
from mirror_assets.orchestration.check_tables import CHECKS
from mirror_assets.orchestration.doctor_job import DOCTOR, SOURCES_OP, DoctorConfig
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.schedules import SENSORS_VARIABLE
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.storage import LocalStore
from mirror_assets.storage.errors import StoreUnavailable
from mirror_assets_tests.alerts.web import WebReceiver, web_receiver
from mirror_assets_tests.pipeline.doctor.lake import write_table

_TABLES = 200
_LOCATION = "here"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebReceiver]:
    with web_receiver() as started:
        monkeypatch.setenv("HOOK_URL", started.url)
        yield started


@dataclass
class Deployment:
    """Tables with alerts, looked at by the sensor's own function; time goes on as the test says."""

    root: Path
    instance: dg.DagsterInstance
    tables: int = _TABLES
    settings: str = ""
    overdue: str = "null"
    at: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        listed = "\n".join(f"  sales.t{n:03d}: {{source: ./lake/t{n:03d}, keys: [id]}}" for n in range(self.tables))
        text = (
            "landing_zone: {path: ./landing}\n"
            f"alerts:\n  overdue_minutes: {self.overdue}\n"
            "  dagster_url: https://dagster.example\n"
            "  docs_url: https://docs.example\n"
            f"  receivers: {{hook: {{type: webhook, url_variable: HOOK_URL, severity: info{self.settings}}}}}\n"
            f"tables:\n{listed}\n"
        )
        self.config = parse_config(text.encode(), self.root / "mirror.yaml", {})
        self.store = LocalStore(self.root / "landing")
        self.restart()

    def restart(self) -> None:
        """Begin in a new process: nothing is remembered but what was saved."""
        self.watch = AlertWatch(self.config)

    def tick(self, seconds: float = 0.0) -> str:
        """Look after so many seconds."""
        self.at += seconds
        zone = resources(self.config)["landing_zone"]
        return self.watch.tick(self.instance, zone, _LOCATION, self.at)  # type: ignore[arg-type]

    def settle(self) -> None:
        """Look until everything that is new has been told, and what is gone has ended."""
        for seconds in (0, 31, 31, 61):
            self.tick(seconds)

    def check(self, name: str, *, passed: bool, text: str = "", warn: bool = False, asset: str = "t000") -> None:
        """Record a check of a landing zone, as whoever runs it does."""
        key = asset_key(Kind.LANDING_ZONE, TableName("sales", asset))
        severity = dg.AssetCheckSeverity.WARN if warn else dg.AssetCheckSeverity.ERROR
        self.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(key, name, passed=passed, severity=severity, description=text or None)
        )

    def fail(self, table: str, code: ErrorCode, text: str, times: int = 1) -> None:
        """Record that runs of the table have failed."""
        for _ in range(times):
            drive(record_failure(TableName("sales", table), Failure(code, text), int(self.at * 1000)), self.store)


@pytest.fixture
def deployment(tmp_path: Path, receiver: WebReceiver) -> Iterator[Deployment]:
    assert receiver.url
    with dg.instance_for_test() as instance:
        yield Deployment(tmp_path, instance)


def test_nothing_is_told_where_nothing_is_wrong(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.settle()
    assert deployment.tick() == "nothing is wrong"
    assert receiver.bodies == []


def test_a_check_is_told_when_it_fails_and_when_it_passes(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("lag", passed=False, text="version 7 has waited 1,200 s")
    deployment.settle()
    assert receiver.titles() == ["sales.t000: check lag fails"]
    told = receiver.bodies[0]
    assert told["subjects"] == ["sales.t000"]
    assert told["text"] == "version 7 has waited 1,200 s"
    page = "https://dagster.example/assets/sales/t000_landing_zone?view=checks&checkDetail=lag"
    assert told["links"] == {"dagster": page, "docs": "https://docs.example/checks.md#lag"}
    deployment.check("lag", passed=False, text="version 7 has waited 1,300 s")
    deployment.settle()
    deployment.check("lag", passed=True)
    deployment.settle()
    assert receiver.titles() == ["sales.t000: check lag fails", "Ended: sales.t000: check lag fails"]
    assert receiver.bodies[1]["text"] == "It was: version 7 has waited 1,300 s"
    assert deployment.tick() == "nothing is wrong"


def test_two_hundred_tables_with_one_cause_are_one_message_and_one_at_the_end(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    tables = [f"t{n:03d}" for n in range(_TABLES)]
    for table in tables:
        text = (
            f"sales.{table}: the token for abfss://lake@acme.dfs.core.windows.net/{table} has expired. Next: renew it."
        )
        deployment.fail(table, ErrorCode.STORE_DENIED, text)
    deployment.settle()
    assert receiver.titles() == [f"{_TABLES} tables: can't be mirrored (store_denied)"]
    told = receiver.bodies[0]
    assert told["subject_count"] == _TABLES
    assert told["subjects"] == [f"sales.t{n:03d}" for n in range(10)]
    assert told["next_step"] == "renew it."
    assert told["links"]["docs"] == "https://docs.example/errors.md#store_denied"
    for path in (deployment.root / "landing" / "_failures").iterdir():
        path.unlink()
    deployment.settle()
    assert len(receiver.bodies) == 2
    assert receiver.bodies[1]["event"] == "ended"
    assert receiver.bodies[1]["incident"] == told["incident"]
    assert receiver.bodies[1]["subject_count"] == _TABLES


def test_a_failed_run_is_told_with_its_code_and_ends_with_the_next_one(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.tick()  # runs are read from the first look on
    mended: list[bool] = []

    @dg.op
    def work() -> None:
        if not mended:
            raise dg.Failure("the disk is full", {"code": "store_full", "next_step": "free some space."})

    @dg.job
    def nightly() -> None:
        work()

    assert not nightly.execute_in_process(instance=deployment.instance, raise_on_error=False).success
    deployment.settle()
    assert receiver.titles() == ["nightly: a run of nightly failed"]
    assert receiver.bodies[0]["code"] == "store_full"
    assert receiver.bodies[0]["next_step"] == "free some space."
    assert receiver.bodies[0]["links"]["dagster"].startswith("https://dagster.example/runs/")
    mended.append(True)
    assert nightly.execute_in_process(instance=deployment.instance).success
    deployment.settle()
    assert receiver.titles()[1:] == ["Ended: nightly: a run of nightly failed"]


def test_a_run_that_fails_for_a_table_that_says_so_itself_is_no_second_message(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.tick()
    text = "sales.t000: slice 0001-00000001-00000001 was not published: key id is NULL. Next: fix the source."
    deployment.fail("t000", ErrorCode.CHECKS_FAILED, text)

    @dg.op
    def all_mirrored() -> None:
        raise dg.Failure("1 of 200 tables failed", {"sales.t000": text})

    @dg.job
    def mirror_all() -> None:
        all_mirrored()

    mirror_all.execute_in_process(instance=deployment.instance, raise_on_error=False)
    deployment.check("not_failing", passed=False, text=text)
    deployment.check("lag", passed=False, text="version 1 has waited 1,000 s")
    deployment.settle()
    assert receiver.titles() == ["sales.t000: can't be mirrored (checks_failed)"]


def test_a_held_table_is_told_with_its_code(deployment: Deployment, receiver: WebReceiver) -> None:
    class Broke(RebuildError):
        code = ErrorCode.SOURCE_BREAK

    states, table = TableStates(deployment.instance), TableName("sales", "t001")
    states.failed(table, Broke("sales.t001: version 3 renames a column.", "rebuild it."))
    deployment.settle()
    told = receiver.bodies[0]
    assert told["title"] == "sales.t001: waits for a person to have it rebuilt"
    assert (told["topic"], told["severity"], told["code"]) == ("held", "error", "table_held")
    assert "mirror-assets rebuild sales.t001" in told["next_step"]
    states.landed(table)
    deployment.settle()
    assert [body["event"] for body in receiver.bodies] == ["begun", "ended"]


def test_a_table_that_can_not_be_planned_is_told_with_its_code(deployment: Deployment, receiver: WebReceiver) -> None:
    states = TableStates(deployment.instance)
    error = SettingError("sales.t001: the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED)
    states.failed(TableName("sales", "t001"), error)
    deployment.settle()
    assert receiver.bodies[0]["code"] == "feed_disabled"
    assert receiver.bodies[0]["next_step"] == "switch it on."


def test_a_rebuild_is_told_when_it_begins_and_ends(deployment: Deployment, receiver: WebReceiver) -> None:
    name = TableName("sales", "t003")
    record = drive(begin_rebuild(name), deployment.store)
    deployment.settle()
    drive(advance_rebuild(name, record, RebuildStep.FINISHED), deployment.store)
    deployment.settle()
    assert receiver.titles() == ["sales.t003: rebuild", "Ended: sales.t003: rebuild"]
    assert receiver.bodies[0]["severity"] == "info"


def test_a_rebuild_that_nobody_saw_running_is_told_once(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.settle()
    name = TableName("sales", "t003")
    record = drive(begin_rebuild(name, "version 3 is gone."), deployment.store)
    drive(advance_rebuild(name, record, RebuildStep.FINISHED), deployment.store)
    deployment.settle()
    deployment.restart()
    deployment.settle()
    assert receiver.titles() == ["sales.t003: rebuild", "Ended: sales.t003: rebuild"]
    assert "because version 3 is gone." in receiver.bodies[0]["text"]


def test_other_words_for_a_fault_that_was_told_are_no_news(deployment: Deployment, receiver: WebReceiver) -> None:
    states, name = TableStates(deployment.instance), TableName("sales", "t001")
    for text in ("/lake/t001 is no Delta table.", "1 runs of sales.t001 failed: it is no Delta table."):
        states.failed(name, SettingError(text, "correct it.", code=ErrorCode.SOURCE_NOT_DELTA))
        deployment.settle()
    assert [body["event"] for body in receiver.bodies] == ["begun"]
    states.failed(name, SettingError("the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED))
    deployment.settle()
    assert [body["event"] for body in receiver.bodies] == ["begun", "begun", "ended"]


def test_what_time_may_resolve_takes_nothing_back(deployment: Deployment, receiver: WebReceiver) -> None:
    states, name = TableStates(deployment.instance), TableName("sales", "t001")
    states.failed(name, SettingError("it is no Delta table.", "correct it.", code=ErrorCode.SOURCE_NOT_DELTA))
    deployment.settle()
    states.failed(name, RetryError("it does not answer.", "run again.", code=ErrorCode.SOURCE_UNAVAILABLE))
    deployment.settle()
    assert [body["event"] for body in receiver.bodies] == ["begun"]
    states.landed(name)
    deployment.settle()
    assert [body["event"] for body in receiver.bodies] == ["begun", "ended"]


def test_what_was_told_is_known_after_a_restart(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("retention", passed=False, text="one hour is left")
    deployment.settle()
    deployment.restart()
    deployment.settle()
    assert len(receiver.bodies) == 1
    deployment.restart()
    deployment.check("retention", passed=True)
    deployment.settle()
    assert [body["event"] for body in receiver.bodies] == ["begun", "ended"]


def test_a_receiver_that_was_away_gets_each_message_once(deployment: Deployment, receiver: WebReceiver) -> None:
    receiver.statuses = [503, 500, 429]
    deployment.check("lag", passed=False, text="late", warn=True)
    deployment.settle()
    for _ in range(6):
        deployment.tick(120)
    assert receiver.titles() == ["sales.t000: check lag fails"]
    assert receiver.bodies[0]["severity"] == "warn"


def test_the_state_is_kept_out_of_the_ticks_and_is_small(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.tick()
    saved = deployment.instance.daemon_cursor_storage.get_cursor_values({f"mirror_assets/alerts/{_LOCATION}"})
    assert len(next(iter(saved.values()))) < 500
    assert receiver.bodies == []


def test_a_reminder_comes_after_hours(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("lag", passed=False, text="late")
    deployment.settle()
    deployment.tick(6 * 3600)
    assert receiver.titles() == ["sales.t000: check lag fails", "Still: sales.t000: check lag fails"]


def test_a_first_failure_that_the_next_run_may_resolve_is_not_told(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    text = "sales.t000: s3://acme-lake does not answer. Next: run again."
    error = RetryError("sales.t000: s3://acme-lake does not answer.", "run again.", code=ErrorCode.SOURCE_UNAVAILABLE)
    TableStates(deployment.instance).failed(TableName("sales", "t000"), error)
    deployment.fail("t000", ErrorCode.SOURCE_UNAVAILABLE, text)
    deployment.settle()
    assert receiver.bodies == []
    deployment.fail("t000", ErrorCode.SOURCE_UNAVAILABLE, text)
    deployment.settle()
    assert receiver.titles() == ["sales.t000: can't be mirrored (source_unavailable)"]


def test_a_landing_zone_that_can_not_be_read_is_told_and_takes_nothing_back(
    deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    deployment.settle()

    def away(_store: LocalStore, folder: str) -> NoReturn:
        raise StoreUnavailable(folder, "it does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "list", away)
        deployment.settle()
    assert receiver.titles() == [
        "sales.t000: can't be mirrored (log_gap)",
        "landing zone: can't be read (store_unavailable)",
    ]
    deployment.settle()
    assert receiver.titles()[2:] == ["Ended: landing zone: can't be read (store_unavailable)"]


def test_an_answer_of_the_doctor_that_is_no_is_told_with_its_question(
    tmp_path: Path, deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.tick()
    job = build_definitions(deployment.config).resolve_job_def(DOCTOR)
    asked = dg.RunConfig(ops={SOURCES_OP: DoctorConfig(tables=["sales.t000"], spark=False)})
    job.execute_in_process(run_config=asked, instance=deployment.instance, raise_on_error=False)
    deployment.settle()
    assert receiver.titles() == ["doctor: the doctor says no"]
    assert "sales.t000: is the log reached?" in receiver.bodies[0]["text"]
    assert receiver.bodies[0]["topic"] == "doctor"
    write_table(tmp_path / "lake" / "t000")
    assert job.execute_in_process(run_config=asked, instance=deployment.instance).success
    deployment.settle()
    assert receiver.titles()[1:] == ["Ended: doctor: the doctor says no"]


def test_a_check_that_a_run_of_assets_evaluates_is_told(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.tick()

    @dg.asset(key=asset_key(Kind.LANDING_ZONE, TableName("sales", "t007")))
    def landed() -> None: ...

    @dg.asset_check(asset=landed)
    def file_continuity() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, description="file 7 is missing", severity=dg.AssetCheckSeverity.WARN)

    dg.materialize([landed, file_continuity], instance=deployment.instance)
    deployment.settle()
    assert receiver.titles() == ["sales.t007: check file_continuity fails"]
    assert receiver.bodies[0]["severity"] == "warn"


def test_a_step_that_fails_for_a_table_names_the_table(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.tick()

    @dg.asset(key=asset_key(Kind.CHANGE_FEED, TableName("sales", "t008")))
    def staged() -> None:
        raise ValueError("a defect")

    dg.materialize([staged], instance=deployment.instance, raise_on_error=False)
    deployment.settle()
    assert receiver.titles() == ["sales.t008: a run of assets failed"]
    assert "a defect" in receiver.bodies[0]["text"]


def test_the_sensor_is_there_where_somebody_is_to_be_told(deployment: Deployment, receiver: WebReceiver) -> None:
    definitions = build_definitions(deployment.config)
    deployment.fail("t001", ErrorCode.STORE_DENIED, "sales.t001: s3://acme refuses. Next: grant it.")
    with dg.build_sensor_context(
        instance=deployment.instance, definitions=definitions, resources=resources(deployment.config)
    ) as context:
        told = definitions.resolve_sensor_def(SENSOR)(context)
    assert isinstance(told, dg.SkipReason)
    assert told.skip_message == "1 incidents (sales.t001: can't be mirrored (store_denied))"
    without = deployment.config.model_copy(update={"alerts": AlertsConfig()})
    assert SENSOR not in {sensor.name for sensor in build_definitions(without).sensors or ()}
    assert receiver.bodies == []


def _run_checks(deployment: Deployment) -> None:
    """Run the job of the schedule, which ends well whatever it finds."""
    job = build_definitions(deployment.config).resolve_job_def(CHECKS)
    assert job.execute_in_process(instance=deployment.instance).success


def _overdue_later(tmp_path: Path, instance: dg.DagsterInstance, minutes: int) -> Deployment:
    """Return a deployment so many minutes after a run of the checks, with four looks behind that."""
    deployment = Deployment(tmp_path, instance, tables=1, overdue="10")
    deployment.tick()
    _run_checks(deployment)
    deployment.tick(minutes * 60)
    deployment.settle()
    return deployment


def test_checks_that_nobody_runs_any_more_are_overdue(
    tmp_path: Path, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SENSORS_VARIABLE, "on")
    with dg.instance_for_test() as instance:
        deployment = _overdue_later(tmp_path, instance, 12)
        assert _of_checks(receiver) == []
        deployment.tick(120)
        deployment.settle()
        assert _of_checks(receiver) == ["checks: are overdue"]
        told = next(body for body in receiver.bodies if body["subjects"] == [CHECKS])
        assert (told["severity"], told["topic"]) == ("warn", "check")
        assert told["links"]["dagster"] == f"https://dagster.example/locations/{_LOCATION}/schedules/{CHECKS}"
        deployment.restart()  # the new process does not know since when; it waits as long as a new deployment
        deployment.at = time.time()
        _run_checks(deployment)
        deployment.settle()
        deployment.settle()
        assert _of_checks(receiver)[1:] == ["Ended: checks: are overdue"]


@pytest.mark.parametrize("why", ["never on", "switched off"])
def test_checks_whose_schedule_is_off_are_not_overdue(
    tmp_path: Path, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "switched off":
        monkeypatch.setenv(SENSORS_VARIABLE, "on")
    with dg.instance_for_test() as instance:
        if why == "switched off":
            target = LoadableTargetOrigin(module_name="mirror_assets.definitions")
            place = RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(target, _LOCATION), "__repository__")
            origin = RemoteInstigatorOrigin(place, CHECKS)
            instance.add_instigator_state(
                InstigatorState(
                    origin, InstigatorType.SCHEDULE, InstigatorStatus.STOPPED, ScheduleInstigatorData("* * * * *")
                )
            )
        _overdue_later(tmp_path, instance, 100)
    assert [title for title in _of_checks(receiver) if "overdue" in title] == []


def _of_checks(receiver: WebReceiver) -> list[str]:
    return [title for title in receiver.titles() if CHECKS in title]


def test_a_message_whose_answer_nobody_heard_is_sent_again_with_its_id(
    deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts_sensor, "_DELIVERY_WAIT_SECONDS", 0.2)
    deployment.check("lag", passed=False, text="late")
    deployment.tick()
    receiver.late_seconds = 1.5
    assert "1 messages wait" in deployment.tick(31)
    receiver.wait_for(1)
    deployment.tick(1)
    assert len(receiver.bodies) == 1, "it is on its way"
    deployment.restart()
    deployment.tick(1)
    receiver.wait_for(2)
    assert receiver.bodies[0]["id"] == receiver.bodies[1]["id"]
    time.sleep(1.6)
    assert "wait" not in deployment.tick(1)
    assert len(receiver.bodies) == 2
