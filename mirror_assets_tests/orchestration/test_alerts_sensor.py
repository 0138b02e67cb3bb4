"""The sensor `alerts` with a real instance: one message when a problem starts, and one when it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import dagster as dg
import pytest

from mirror_assets.alerts.receivers import send
from mirror_assets.config import When, with_found_tables
from mirror_assets.config.alerts import AlertsConfig
from mirror_assets.config.load import parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.docs_links import DOCS_VARIABLE
from mirror_assets.errors import ErrorCode, RebuildError, RetryError, SettingError
from mirror_assets.landing.failures import record_failure
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.alert_checks import CheckReader
from mirror_assets.orchestration.alert_runs import RunReader
from mirror_assets.orchestration.alerts_sensor import SENSOR, Alerts
from mirror_assets.orchestration.asset_names import BATCH_TAG, AssetKind, asset_key
from mirror_assets.orchestration.checks import check_named
from mirror_assets.orchestration.doctor_job import DOCTOR, SOURCES_OP, DoctorConfig
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.run_tags import Location
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.source.access import Access
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.storage import LocalStore
from mirror_assets.storage.errors import StoreUnavailable
from mirror_assets.storage.lake.catalog_errors import catalog_denied
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.alerts.web import WebReceiver, web_receiver
from mirror_assets_tests.discovery.lakes import DiskLake
from mirror_assets_tests.orchestration.mirrors import evaluate
from mirror_assets_tests.pipeline.doctor.lake import write_table

_TABLES = 200
_REPOSITORY, _LOCATION = "__repository__", "here"
# What Dagster's launchers put on every run of a code location.
_OURS = {".dagster/repository": f"{_REPOSITORY}@{_LOCATION}"}
_JOBS = frozenset({"nightly", "mirror_all", "history", DOCTOR, "checks"})
_CHECKS = ("lag", "retention", "not_held", "not_failing", "file_continuity", "layout")


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebReceiver]:
    with web_receiver() as started:
        monkeypatch.setenv("HOOK_URL", started.url)
        monkeypatch.setenv(DOCS_VARIABLE, "https://docs.example")
        yield started


@dataclass
class Deployment:
    """Tables with alerts, read by the sensor's own function; time goes on as the test says."""

    root: Path
    instance: dg.DagsterInstance
    tables: int = _TABLES
    automation: str = ""
    rules: str = ""
    location: str = _LOCATION
    prefix: str = "sales.t"
    at: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.names = [TableName.parse(f"{self.prefix}{n:03d}") for n in range(self.tables)]
        listed = "\n".join(f"  {name}: {{source: ./lake/{name.table}, keys: [id]}}" for name in self.names)
        text = (
            "landing_zone: {path: ./landing}\n"
            "alerts:\n"
            "  dagster_url: https://dagster.example\n"
            "  receivers: {hook: {url_variable: HOOK_URL, severity: info}}\n"
            f"{self.automation}{self.rules}"
            f"tables:\n{listed}\n"
        )
        self.config = parse_config(text.encode(), self.root / "mirror.yaml", {})
        self.store = LocalStore(self.root / "landing")
        self.restart()

    def restart(self) -> None:
        """Begin in a new process: nothing is remembered but what was saved."""
        zones = [asset_key(AssetKind.LANDING, name) for name in self.names]
        sources = [dg.AssetCheckKey(asset_key(AssetKind.SOURCE, name), "readable") for name in self.names]
        self.watch((*(dg.AssetCheckKey(zone, check) for zone in zones for check in _CHECKS), *sources))

    def watch(self, checks: Iterable[dg.AssetCheckKey]) -> None:
        """Watch these checks, in a new process."""
        runs = RunReader(_JOBS, frozenset({"history"}))
        self.alerts = Alerts(
            MirrorAssets(self.config), CheckReader(frozenset(checks)), runs, frozenset({"mirror", "history"})
        )

    def tick(self, seconds: float = 0.0) -> str:
        """Tick after so many seconds."""
        self.at += seconds
        zone = resources(MirrorAssets(self.config))["landing_zone"]
        location = Location(_REPOSITORY, self.location)
        return self.alerts.tick(self.instance, zone, location, self.at)  # type: ignore[arg-type]

    def settle(self) -> None:
        """Tick until everything new has been reported, and what is gone has ended."""
        for seconds in (0, 31, 31, 61):
            self.tick(seconds)

    def later(self, minutes: float) -> None:
        """Tick every 15 seconds for so many minutes."""
        for _ in range(round(minutes * 4)):
            self.tick(15)

    def check(self, name: str, *, passed: bool, text: str = "", warn: bool = False, asset: str = "t000") -> None:
        """Record a check of a landing zone, as whatever runs it does."""
        key = asset_key(AssetKind.LANDING, TableName("sales", asset))
        severity = dg.AssetCheckSeverity.WARN if warn else dg.AssetCheckSeverity.ERROR
        self.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(key, name, passed=passed, severity=severity, description=text or None)
        )

    def fail(self, table: str, code: ErrorCode, text: str, times: int = 1, rebuild: str | None = None) -> None:
        """Record that runs of the table have failed."""
        for _ in range(times):
            record_failure(self.store, TableName("sales", table), code, text, int(self.at * 1000), None, rebuild)

    def repair(self) -> None:
        """Remove all failure records, as landing does."""
        for path in (self.root / "landing" / "_failures").iterdir():
            path.unlink()

    def run(self, job: str, why: str | None, tags: dict[str, str] | None = None) -> None:
        """Run a job of this code location, which fails for a reason."""

        @dg.op
        def work() -> None:
            if why is not None:
                raise dg.Failure(why)

        @dg.job(name=job)
        def made() -> None:
            work()

        label = {".dagster/repository": f"{_REPOSITORY}@{self.location}"}
        made.execute_in_process(instance=self.instance, raise_on_error=False, tags=label | (tags or {}))


@pytest.fixture
def deployment(tmp_path: Path, receiver: WebReceiver) -> Iterator[Deployment]:
    assert receiver.url
    with dg.instance_for_test() as instance:
        yield Deployment(tmp_path, instance, automation="automation: {checks_every_minutes: 5}\n")


def kinds(receiver: WebReceiver) -> list[str]:
    """What Apprise calls the messages: `success` is that of an end."""
    return [body["type"] for body in receiver.bodies]


def test_nothing_is_told_where_nothing_is_wrong(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.settle()
    assert deployment.tick() == "nothing is wrong"
    assert receiver.bodies == []


def test_a_check_is_told_when_it_fails_and_when_it_passes(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("lag", passed=False, text="version 7 has waited 1,200 s")
    deployment.settle()
    assert receiver.titles() == ["sales.t000: check lag fails"]
    lines = receiver.messages()[0].splitlines()
    assert lines[:-1] == [
        "version 7 has waited 1,200 s",
        "Next: read the section lag of the page on asset checks.",
        "Open in Dagster: https://dagster.example/assets/sales/t000_landing?view=checks&checkDetail=lag",
        "What this means: https://docs.example/checks/#lag",
    ]
    assert lines[-1].startswith("Incident ")
    deployment.check("lag", passed=False, text="version 7 has waited 1,300 s")
    deployment.settle()
    deployment.check("lag", passed=True)
    deployment.settle()
    assert receiver.titles() == ["sales.t000: check lag fails", "Ended: sales.t000: check lag fails"]
    assert receiver.messages()[1].splitlines()[0] == "It was: version 7 has waited 1,300 s"
    assert receiver.messages()[1].splitlines()[-1] == lines[-1], "the same incident"
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
    which = ", ".join(f"sales.t{n:03d}" for n in range(10))
    lines = receiver.messages()[0].splitlines()
    assert lines[1:4] == [
        f"Which: {which}, and 190 more",
        "Next: renew it.",
        "What this means: https://docs.example/errors/#store_denied",
    ]
    deployment.repair()
    deployment.settle()
    assert receiver.titles()[1:] == [f"Ended: {_TABLES} tables: can't be mirrored (store_denied)"]
    assert kinds(receiver) == ["failure", "success"]
    assert receiver.messages()[1].splitlines()[-1] == lines[-1]


def test_a_failed_run_is_reported_and_ends_with_the_next_one(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.run("nightly", "the disk is full. Next: free some space.")
    deployment.settle()
    assert receiver.titles() == ["nightly: a run of nightly failed"]
    lines = receiver.messages()[0].splitlines()
    assert lines[:2] == ["the disk is full.", "Next: free some space."]
    assert lines[2].startswith("Open in Dagster: https://dagster.example/runs/")
    deployment.run("nightly", None)
    deployment.settle()
    assert receiver.titles()[1:] == ["Ended: nightly: a run of nightly failed"]


def test_another_batch_or_partition_repairs_nothing(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.run("mirror_all", "Spark did not start.", {BATCH_TAG: "0"})
    deployment.run("mirror_all", None, {BATCH_TAG: "1"})
    deployment.settle()
    assert receiver.titles() == ["mirror_all: a run of mirror_all failed"]
    deployment.run("mirror_all", None, {BATCH_TAG: "0"})
    deployment.settle()
    assert receiver.titles()[1:] == ["Ended: mirror_all: a run of mirror_all failed"]


def test_a_failure_that_no_schedule_repeats_counts_for_a_day(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.run("nightly", "the disk is full.")
    deployment.run("history", "the disk is full.")
    deployment.settle()
    assert len(receiver.bodies) == 2
    deployment.tick(86_400)
    deployment.settle()
    assert [title for title in receiver.titles() if title.startswith("Ended")] == [
        "Ended: nightly: a run of nightly failed"
    ]


def test_a_run_that_fails_for_a_table_in_the_landing_zone_is_no_second_message(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    text = "sales.t000: slice 1.1-1 was not published: key id is NULL. Next: fix the source."
    deployment.fail("t000", ErrorCode.CHECKS_FAILED, text)

    @dg.op
    def all_mirrored() -> None:
        raise dg.Failure("1 of 200 tables failed", {"sales.t000": text})

    @dg.job
    def mirror_all() -> None:
        all_mirrored()

    mirror_all.execute_in_process(instance=deployment.instance, raise_on_error=False, tags=_OURS)
    deployment.check("not_failing", passed=False, text=text)
    deployment.check("lag", passed=False, text="version 1 has waited 1,000 s")
    deployment.settle()
    assert receiver.titles() == ["sales.t000: can't be mirrored (checks_failed)"]


def test_what_a_failing_table_hid_is_reported_when_the_table_lands(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    deployment.check("lag", passed=False, text="version 1 has waited 36,000 s")
    deployment.run("history", "sales.t000: the feed can't be read.")
    deployment.settle()
    assert receiver.titles() == ["sales.t000: can't be mirrored (log_gap)"]
    deployment.repair()
    deployment.later(2)
    assert receiver.titles()[1:] == ["Ended: sales.t000: can't be mirrored (log_gap)"]
    deployment.later(10)  # the checks had time to run again, and still fail
    assert sorted(receiver.titles()[2:]) == ["sales.t000: a run of history failed", "sales.t000: check lag fails"]


def test_what_a_failing_table_hid_is_not_reported_if_it_ends_soon_after(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    deployment.check("lag", passed=False, text="version 1 has waited 36,000 s")
    deployment.settle()
    deployment.repair()
    deployment.later(5)
    deployment.check("lag", passed=True)
    deployment.later(10)
    assert [title.partition(":")[0] for title in receiver.titles()] == ["sales.t000", "Ended"]


def test_a_check_that_has_not_run_since_a_hold_ended_is_not_reported(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    table = TableName("sales", "t000")
    states = TableStates(deployment.instance, deployment.alerts.assets)
    deployment.check("not_failing", passed=False, text="1 run of sales.t000 failed: version 3 renames a column.")
    states.failed(table, RebuildErrorOfATest("version 3 renames a column."))
    deployment.settle()
    deployment.check("not_held", passed=True)
    deployment.later(5)
    deployment.check("not_failing", passed=True)
    deployment.later(10)
    held = "sales.t000: waits for a person to have it rebuilt"
    assert receiver.titles() == [held, f"Ended: {held}"]


def test_a_layout_warning_hides_no_failed_run(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("layout", passed=False, text="many small files", warn=True)
    deployment.run("history", "sales.t000: the feed can't be read.")
    deployment.settle()
    assert sorted(receiver.titles()) == ["sales.t000: a run of history failed", "sales.t000: check layout fails"]


def test_a_check_and_the_table_that_fails_by_it_are_one_message(deployment: Deployment, receiver: WebReceiver) -> None:
    feed = asset_key(AssetKind.CHANGES, TableName("sales", "t000"))
    deployment.watch([dg.AssetCheckKey(feed, "key_presence")])
    found = dg.AssetCheckEvaluation(feed, "key_presence", passed=False, description="key id is NULL")
    deployment.instance.report_runless_asset_event(found)
    deployment.settle()
    deployment.fail("t000", ErrorCode.CHECKS_FAILED, "sales.t000: key id is NULL. Next: fix the source.")
    deployment.settle()
    assert receiver.titles() == ["sales.t000: check key_presence fails"]


def test_a_held_table_is_told_with_its_code(deployment: Deployment, receiver: WebReceiver) -> None:
    class Broke(RebuildError):
        code = ErrorCode.SOURCE_BREAK

    states, table = TableStates(deployment.instance, deployment.alerts.assets), TableName("sales", "t001")
    states.failed(table, Broke("sales.t001: version 3 renames a column.", "rebuild it."))
    deployment.settle()
    assert receiver.titles() == ["sales.t001: waits for a person to have it rebuilt"]
    assert "mirror-assets rebuild sales.t001" in receiver.messages()[0]
    assert "https://docs.example/errors/#table_held" in receiver.messages()[0]
    states.landed(table)
    deployment.settle()
    assert kinds(receiver) == ["failure", "success"]


def test_a_table_that_can_not_be_planned_is_told_with_its_code(deployment: Deployment, receiver: WebReceiver) -> None:
    states = TableStates(deployment.instance, deployment.alerts.assets)
    error = SettingError("sales.t001: the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED)
    states.failed(TableName("sales", "t001"), error)
    deployment.settle()
    assert "https://docs.example/errors/#feed_disabled" in receiver.messages()[0]
    assert "Next: switch it on." in receiver.messages()[0]


def test_a_rebuild_is_told_when_it_begins_and_ends(deployment: Deployment, receiver: WebReceiver) -> None:
    name = TableName("sales", "t003")
    record = drive(begin_rebuild(name), deployment.store)
    deployment.settle()
    drive(advance_rebuild(name, record, RebuildStep.FINISHED), deployment.store)
    deployment.settle()
    deployment.settle()
    assert receiver.titles() == ["sales.t003: rebuild", "Ended: sales.t003: rebuild"]
    assert kinds(receiver) == ["info", "success"]


def test_a_rebuild_that_ends_between_two_ticks_is_reported(deployment: Deployment, receiver: WebReceiver) -> None:
    name = TableName("sales", "t003")
    record = drive(begin_rebuild(name, "version 3 is gone."), deployment.store)
    drive(advance_rebuild(name, record, RebuildStep.FINISHED), deployment.store)
    deployment.tick()
    deployment.restart()
    deployment.later(5)
    assert receiver.titles() == ["sales.t003: rebuild", "Ended: sales.t003: rebuild"]
    assert "because version 3 is gone." in receiver.messages()[0]


def test_other_words_for_a_fault_that_was_told_are_no_news(deployment: Deployment, receiver: WebReceiver) -> None:
    states, name = TableStates(deployment.instance, deployment.alerts.assets), TableName("sales", "t001")
    for text in ("/lake/t001 is not a Delta table.", "1 runs of sales.t001 failed: it is not a Delta table."):
        states.failed(name, SettingError(text, "correct it.", code=ErrorCode.SOURCE_NOT_DELTA))
        deployment.settle()
    assert kinds(receiver) == ["failure"]
    states.failed(name, SettingError("the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED))
    deployment.later(10)
    assert kinds(receiver) == ["failure", "success", "failure"]


def test_what_time_may_resolve_takes_nothing_back(deployment: Deployment, receiver: WebReceiver) -> None:
    states, name = TableStates(deployment.instance, deployment.alerts.assets), TableName("sales", "t001")
    states.failed(name, SettingError("it is not a Delta table.", "correct it.", code=ErrorCode.SOURCE_NOT_DELTA))
    deployment.settle()
    states.failed(name, RetryError("it does not answer.", "run again.", code=ErrorCode.SOURCE_UNAVAILABLE))
    deployment.settle()
    assert kinds(receiver) == ["failure"]
    states.landed(name)
    deployment.settle()
    assert kinds(receiver) == ["failure", "success"]


def test_what_was_told_is_known_after_a_restart(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("retention", passed=False, text="one hour is left")
    deployment.settle()
    deployment.restart()
    deployment.settle()
    assert len(receiver.bodies) == 1
    deployment.restart()
    deployment.check("retention", passed=True)
    deployment.settle()
    assert kinds(receiver) == ["failure", "success"]


def test_a_receiver_that_is_down_for_ten_minutes_gets_each_message_once(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    receiver.is_down = True
    deployment.check("lag", passed=False, text="late", warn=True)
    deployment.later(4)
    deployment.check("lag", passed=True)
    deployment.check("retention", passed=False, text="one hour is left")
    deployment.later(6)
    assert "; hook: alerts: the receiver hook did not take the message" in deployment.tick()
    receiver.is_down = False
    deployment.later(10)
    assert sorted(receiver.titles()) == [
        "Ended: sales.t000: check lag fails",
        "sales.t000: check lag fails",
        "sales.t000: check retention fails",
    ]
    titles = [title for title in receiver.titles() if "lag" in title]
    assert not titles[0].startswith("Ended"), "the order of an incident's messages holds"


def test_the_state_is_kept_out_of_the_ticks_and_is_small(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.tick()
    deployment.check("lag", passed=False, text="late")
    deployment.tick()
    saved = deployment.instance.daemon_cursor_storage.get_cursor_values(
        {f"mirror_assets/alerts/{_REPOSITORY}@{_LOCATION}"}
    )
    assert len(next(iter(saved.values()))) < 1500
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
    TableStates(deployment.instance, deployment.alerts.assets).failed(TableName("sales", "t000"), error)
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
    job.execute_in_process(run_config=asked, instance=deployment.instance, raise_on_error=False, tags=_OURS)
    deployment.settle()
    assert receiver.titles() == ["doctor: a run of doctor failed"]
    assert "sales.t000: is the log reached?" in receiver.messages()[0]
    write_table(tmp_path / "lake" / "t000")
    assert job.execute_in_process(run_config=asked, instance=deployment.instance, tags=_OURS).success
    deployment.settle()
    assert receiver.titles()[1:] == ["Ended: doctor: a run of doctor failed"]


def test_a_check_that_a_run_of_assets_evaluates_is_told(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.tick()

    @dg.asset(key=asset_key(AssetKind.LANDING, TableName("sales", "t007")))
    def landed() -> None: ...

    @dg.asset_check(asset=landed)
    def file_continuity() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, description="file 7 is missing", severity=dg.AssetCheckSeverity.WARN)

    dg.materialize([landed, file_continuity], instance=deployment.instance)
    deployment.settle()
    assert receiver.titles() == ["sales.t007: check file_continuity fails"]
    assert kinds(receiver) == ["warning"]


def _materialize(deployment: Deployment, error: Exception | None, kind: AssetKind = AssetKind.CHANGES) -> None:
    @dg.asset(key=asset_key(kind, TableName("sales", "t008")))
    def staged() -> None:
        if error is not None:
            raise error

    job = dg.Definitions(assets=[staged]).resolve_implicit_global_asset_job_def()
    chosen = [staged.key]
    job.execute_in_process(instance=deployment.instance, raise_on_error=False, tags=_OURS, asset_selection=chosen)


def test_a_step_that_fails_for_a_table_names_the_table(deployment: Deployment, receiver: WebReceiver) -> None:
    _materialize(deployment, ValueError("a defect"))
    deployment.settle()
    assert receiver.titles() == ["sales.t008: a run of assets failed"]
    assert "a defect" in receiver.messages()[0]
    _materialize(deployment, None)
    deployment.settle()
    assert kinds(receiver) == ["failure", "success"]


def test_the_sensor_is_there_where_somebody_is_to_be_told(deployment: Deployment, receiver: WebReceiver) -> None:
    definitions = build_definitions(deployment.config)
    deployment.fail("t001", ErrorCode.STORE_DENIED, "sales.t001: s3://acme refuses. Next: grant it.")
    with dg.build_sensor_context(
        instance=deployment.instance, definitions=definitions, resources=resources(MirrorAssets(deployment.config))
    ) as context:
        told = evaluate(definitions.resolve_sensor_def(SENSOR), context)
    assert isinstance(told, dg.SkipReason)
    assert told.skip_message == "1 incidents (sales.t001: can't be mirrored (store_denied))"
    without = deployment.config.model_copy(update={"alerts": AlertsConfig()})
    assert SENSOR not in {sensor.name for sensor in build_definitions(without).sensors or ()}
    assert receiver.bodies == []


def test_a_process_that_dies_while_it_sends_sends_the_same_message_again(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    def dying(*message: object) -> None:
        send(*message)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    deployment.check("lag", passed=False, text="late")
    deployment.tick()
    deployment.alerts.send = dying
    with pytest.raises(KeyboardInterrupt):
        deployment.tick(31)
    deployment.restart()
    deployment.settle()
    assert len(receiver.bodies) == 2
    assert receiver.bodies[0] == receiver.bodies[1]


def _remote_run(instance: dg.DagsterInstance, job: str, location: str, why: str) -> None:
    """Record a failed run of another code location, as its launcher does."""
    from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin as Place
    from dagster._core.remote_origin import RemoteJobOrigin, RemoteRepositoryOrigin
    from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

    place = Place(LoadableTargetOrigin(module_name="elsewhere"), location)
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(place, _REPOSITORY), job)
    run = dg.DagsterRun(job_name=job, remote_job_origin=origin, status=dg.DagsterRunStatus.NOT_STARTED)
    instance.add_run(run)
    instance.report_run_failed(run, why)


def test_two_code_locations_see_neither_each_other_nor_other_teams(tmp_path: Path, receiver: WebReceiver) -> None:
    with dg.instance_for_test() as instance:
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        ours = Deployment(tmp_path / "a", instance, tables=3, location="ours", prefix="sales.t")
        theirs = Deployment(tmp_path / "b", instance, tables=3, location="theirs", prefix="ops.t")
        _remote_run(instance, "nightly", "ours", "the disk of ours is full")
        _remote_run(instance, "history", "theirs", "the disk of theirs is full")
        _remote_run(instance, "nightly", "others", "a name of a customer")
        _remote_run(instance, "payroll", "ours", "a salary")
        ours.check("lag", passed=False, text="version 7 has waited")
        ours.settle()
        assert sorted(receiver.titles()) == ["nightly: a run of nightly failed", "sales.t000: check lag fails"]
        receiver.bodies.clear()
        theirs.settle()
        assert receiver.titles() == ["history: a run of history failed"]
        assert "the disk of theirs is full" in receiver.messages()[0]
        _remote_run(instance, "nightly", "others", "a name of a customer")
        ours.settle()
        theirs.settle()
        assert len(receiver.bodies) == 1


def test_a_table_on_hold_for_eight_days_stays_open_without_scheduled_checks(
    tmp_path: Path, receiver: WebReceiver
) -> None:
    with dg.instance_for_test() as instance:
        deployment = Deployment(tmp_path, instance, tables=3, automation="automation: {checks_every_minutes: null}\n")
        TableStates(instance, deployment.alerts.assets).failed(
            TableName("sales", "t001"), RebuildErrorOfATest("version 3 renames a column.")
        )
        deployment.settle()
        for _ in range(8):
            deployment.tick(86_400)
            deployment.settle()
        deployment.restart()
        deployment.settle()
        held = "sales.t001: waits for a person to have it rebuilt"
        assert set(receiver.titles()) == {held, f"Still: {held}"}


def test_a_table_on_hold_has_no_deadline(deployment: Deployment, receiver: WebReceiver) -> None:
    table, states = TableName("sales", "t001"), TableStates(deployment.instance, deployment.alerts.assets)
    states.failed(table, RebuildErrorOfATest("version 3 renames a column."))
    deployment.settle()
    deployment.check("retention", passed=False, text="one hour is left", asset="t001")
    deployment.check("retention", passed=False, text="one hour is left", asset="t002")
    deployment.later(10)
    assert receiver.titles() == [
        "sales.t001: waits for a person to have it rebuilt",
        "sales.t002: check retention fails",
    ]


def test_what_vacuum_deletes_is_reported_once(deployment: Deployment, receiver: WebReceiver) -> None:
    source = asset_key(AssetKind.SOURCE, TableName("sales", "t000"))
    deployment.watch(dg.AssetCheckKey(source, name) for name in ("retention", "frames_safe"))

    def check(name: str, *, warn: bool) -> None:
        severity = dg.AssetCheckSeverity.WARN if warn else dg.AssetCheckSeverity.ERROR
        found = dg.AssetCheckEvaluation(source, name, passed=False, severity=severity, description=f"{name}: soon")
        deployment.instance.report_runless_asset_event(found)

    for name in ("retention", "frames_safe"):
        check(name, warn=True)
    deployment.settle()
    assert receiver.titles() == ["sales.t000: check retention fails"]
    check("frames_safe", warn=False)  # a model needs files that VACUUM would delete now
    deployment.later(10)
    assert receiver.titles()[1:] == ["sales.t000: check frames_safe fails"]


class RebuildErrorOfATest(RebuildError):
    code = ErrorCode.SOURCE_BREAK

    def __init__(self, what: str) -> None:
        super().__init__(what, "rebuild it.")


def test_a_hold_that_a_failure_record_has_needs_no_check(tmp_path: Path, receiver: WebReceiver) -> None:
    with dg.instance_for_test() as instance:
        defaults = "defaults: {on_break: hold}\nautomation: {checks_every_minutes: null}\n"
        deployment = Deployment(tmp_path, instance, tables=3, automation=defaults)
        deployment.fail("t001", ErrorCode.DATA_FILE_MISSING, "a file is gone.", rebuild="a file is gone.")
        deployment.settle()
        assert receiver.titles() == ["sales.t001: waits for a person to have it rebuilt"]


def test_old_results_are_no_messages(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("lag", passed=False, text="late")
    deployment.check("lag", passed=True)
    deployment.at += 3 * 86_400
    deployment.settle()
    assert receiver.bodies == []


def test_a_check_that_was_skipped_is_no_message(deployment: Deployment, receiver: WebReceiver) -> None:
    skipped = CheckResult("lag", skipped="skipped: another check failed")
    deployment.instance.report_runless_asset_event(
        check_named("lag", AssetKind.LANDING).evaluation(deployment.alerts.assets, deployment.names[0], skipped)
    )
    deployment.settle()
    assert kinds(receiver) == []


@pytest.fixture
def discovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[DiskLake, Deployment]]:
    """A lake of the tables t777 and t778, and a deployment that discovers them."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    lake = DiskLake(tmp_path)
    lake.add("t777", "t778")
    rule = '{from: {store: lake, path: "*/"}, schema: sales, keys: {default: [id]}}'
    rules = f"stores:\n  lake: {{root: ./lake}}\ndiscover:\n  - {rule}\n"
    with dg.instance_for_test() as instance:
        yield lake, Deployment(tmp_path, instance, tables=1, rules=rules)


def test_a_place_whose_tables_vanish_is_told_and_ends_when_they_are_back(
    discovered: tuple[DiskLake, Deployment], tmp_path: Path, receiver: WebReceiver
) -> None:
    lake, deployment = discovered

    def look(times: int) -> None:
        for _ in range(times):
            with_found_tables(deployment.config, When.REFRESH)
            deployment.tick(60)

    look(1)
    lake.lake.rename(tmp_path / "unmounted")
    lake.lake.mkdir()
    look(5)
    assert kinds(receiver) == ["failure"]
    assert "2 of 2 tables are no longer listed (t777, t778)" in receiver.messages()[0]
    lake.lake.rmdir()
    (tmp_path / "unmounted").rename(lake.lake)
    look(5)
    assert kinds(receiver) == ["failure", "success"]


@pytest.mark.parametrize("fails_first", [True, False])
def test_a_place_and_its_tables_that_vanish_are_one_message(
    discovered: tuple[DiskLake, Deployment], tmp_path: Path, receiver: WebReceiver, *, fails_first: bool
) -> None:
    lake, deployment = discovered

    def scan() -> None:
        with_found_tables(deployment.config, When.REFRESH)

    def fail() -> None:
        for table in ("t777", "t778"):
            error = SourceNotDelta(str(lake.lake / table))
            deployment.fail(table, error.code, f"sales.{table}: {error}")

    scan()
    lake.lake.rename(tmp_path / "unmounted")
    lake.lake.mkdir()
    for is_failing in (fails_first, not fails_first):
        for step in (fail,) if is_failing else (scan, scan):
            step()
        deployment.later(3)
    assert kinds(receiver) == ["failure"]
    lake.lake.rmdir()
    (tmp_path / "unmounted").rename(lake.lake)
    scan()
    deployment.repair()
    deployment.later(5)
    assert kinds(receiver) == ["failure", "success"]


def test_a_discovered_table_that_is_lost_later_is_a_message_of_its_own(
    discovered: tuple[DiskLake, Deployment], receiver: WebReceiver
) -> None:
    lake, deployment = discovered
    with_found_tables(deployment.config, When.REFRESH)
    for table in ("t777", "t778"):
        error = SourceNotDelta(str(lake.lake / table))
        deployment.fail(table, error.code, f"sales.{table}: {error}")
        deployment.later(3)
    assert kinds(receiver) == ["failure", "failure"]


def test_a_place_that_refuses_a_listing_and_its_tables_are_one_message(
    discovered: tuple[DiskLake, Deployment], receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, deployment = discovered
    with_found_tables(deployment.config, When.REFRESH)
    with monkeypatch.context() as patched:

        def refuse(root: Access, pattern: str) -> NoReturn:
            raise catalog_denied(f"{root.uri} {pattern}", "main", "no USE SCHEMA")

        patched.setattr("mirror_assets.discovery.places.list_folders", refuse)
        with_found_tables(deployment.config, When.REFRESH)
    deployment.later(3)
    for table in ("t777", "t778"):
        error = catalog_denied(f"sales.{table}", "main", "no SELECT")
        deployment.fail(table, ErrorCode.CATALOG_REFUSED, str(error))
    deployment.later(3)
    assert kinds(receiver) == ["failure"]
    with_found_tables(deployment.config, When.REFRESH)
    deployment.repair()
    deployment.later(5)
    assert kinds(receiver) == ["failure", "success"]


def test_a_table_that_is_gone_from_the_settings_ends(tmp_path: Path, receiver: WebReceiver) -> None:
    with dg.instance_for_test() as instance:
        deployment = Deployment(tmp_path, instance, tables=3)
        deployment.check("retention", passed=False, text="one hour is left", asset="t002")
        deployment.settle()
        fewer = Deployment(tmp_path, instance, tables=2, at=deployment.at)
        fewer.settle()
        assert kinds(receiver) == ["failure", "success"]


def test_a_table_that_was_discovered_after_the_start_is_watched(
    tmp_path: Path, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = DiskLake(tmp_path)
    lake.add("t776")
    for name, value in lake.environment.items():
        monkeypatch.setenv(name, value)
    rule = '{from: {store: lake, path: "*/"}, schema: sales, keys: {default: [id]}}'
    rules = f"stores:\n  lake: {{root: ./lake}}\ndiscover:\n  - {rule}\n"
    with dg.instance_for_test() as instance:
        deployment = Deployment(tmp_path, instance, tables=1, rules=rules)
        deployment.settle()
        lake.add("t777")
        assert len(with_found_tables(deployment.config, When.NOW).names) == 3, "another process has found them"
        deployment.fail("t777", ErrorCode.LOG_GAP, "sales.t777: version 3 is missing. Next: rebuild it.")
        deployment.check("retention", passed=False, text="one hour is left", asset="t777")
        deployment.later(10)
        assert sorted(receiver.titles()) == [
            "sales.t777: can't be mirrored (log_gap)",
            "sales.t777: check retention fails",
        ]


def test_a_value_of_a_row_in_a_file_path_is_not_sent(deployment: Deployment, receiver: WebReceiver) -> None:
    text = "sales.t000: s3://acme/t/customer=Ada%20L/day=2026-01-01/part-0.parquet is gone (customer=Ada L/part-0)."
    deployment.fail("t000", ErrorCode.DATA_FILE_MISSING, text)
    deployment.settle()
    assert "Ada" not in str(receiver.bodies)
    assert "2026-01-01/part" not in str(receiver.bodies)
    assert "s3://acme/t/customer=…/day=…/part-0.parquet is gone" in receiver.messages()[0]
    saved = deployment.instance.daemon_cursor_storage.get_cursor_values(
        {f"mirror_assets/alerts/{_REPOSITORY}@{_LOCATION}"}
    )
    assert "Ada" not in str(saved)


def test_definitions_load_without_the_libraries_that_send() -> None:
    program = (
        "import sys, mirror_assets.orchestration.alerts_sensor; print({'apprise', 'pagerduty'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_a_scheduled_run_that_failed_stays_until_the_next_one_whatever_runs_meanwhile(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.run("history", "the disk is full.")
    for _ in range(3):
        deployment.run("nightly", None)
    deployment.settle()
    deployment.tick(3 * 86_400)
    deployment.settle()
    assert not any(title.startswith("Ended") for title in receiver.titles())
    deployment.run("history", None)
    deployment.settle()
    assert receiver.titles()[-1] == "Ended: history: a run of history failed"
