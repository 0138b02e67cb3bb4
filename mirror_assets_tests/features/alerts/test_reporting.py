"""The job `checks` with a real instance and a real receiver: one message when a problem starts, one when it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import dagster as dg
import pytest
from dagster._core.utils import make_new_run_id

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.names import TableName
from mirror_assets.landing.problems import Mute, ProblemStore
from mirror_assets.landing.rebuild import begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.check_jobs import ALL_CHECKS, CheckTables
from mirror_assets.orchestration.reporting import OUTAGE_TAG
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_FULL, STORE_UNAVAILABLE
from mirror_assets_tests.features.alerts.alerting import Deployment, kinds
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.pages import DOCS
from mirror_assets_tests.pipeline.paper import COLUMNS
from mirror_assets_tests.web import WebReceiver
from mirror_assets_tests.worlds.disk_lake import DiskLake

_DENIED = "the token for abfss://lake@acme.dfs.core.windows.net/{} has expired. Next: renew it."


def _silent(*_: object) -> NoReturn:
    raise RetryError("the server does not respond.", "wait.", code=ErrorCode.SOURCE_UNAVAILABLE)


def _away(_store: object, path: str, *_: object) -> NoReturn:
    raise STORE_UNAVAILABLE(path=path, why="503, again and again for 120 s")


def test_nothing_is_reported_or_stored_where_nothing_is_wrong(deployment: Deployment, receiver: WebReceiver) -> None:
    assert deployment.later(10) == [True] * 2
    assert receiver.bodies == []
    assert not (deployment.root / "landing" / "_alerts").exists()


def test_a_new_error_is_one_message_and_one_failed_run_and_its_end_is_one_message(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.fail("t001", ErrorCode.LOG_GAP, "sales.t001: version 3 is missing. Next: rebuild it.")
    failed = deployment.checks()
    (step,) = [event for event in failed.all_events if event.is_step_failure]
    told = step.step_failure_data.user_failure_data
    assert told is not None
    assert "1 new problem: sales.t001: check not_failing fails (log_gap): " in (told.description or "")
    deployment.reload()
    assert deployment.later(10) == [True] * 2, "a problem fails one run, also when definitions are loaded again"
    assert receiver.titles() == ["sales.t001: check not_failing fails (log_gap)"]
    assert receiver.messages()[0].splitlines()[:4] == [
        "1 run of sales.t001 failed: version 3 is missing.",
        "Next: rebuild it.",
        "Open in Dagster: https://dagster.example/assets/sales/t001_landing?view=checks&checkDetail=not_failing",
        "What this means: https://docs.example/errors/#log_gap",
    ]
    deployment.fix("t001")
    assert deployment.later(10) == [True] * 2
    assert receiver.titles()[1:] == ["Ended: sales.t001: check not_failing fails (log_gap)"]
    assert receiver.messages()[0].splitlines()[-1] == receiver.messages()[1].splitlines()[-1], "the same incident"


def test_a_source_that_does_not_answer_for_three_days_is_one_message_after_the_second_checks(
    tmp_path: Path, deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = Deployment(tmp_path / "one", deployment.instance, tables=1)
    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "earliest", _silent)
        patched.setattr(DeltaLog, "state", _silent)
        assert deployment.checks().success
        assert receiver.bodies == []
        assert not deployment.checks(5).success
        assert receiver.titles() == ["sales.t000: check readable fails (source_unavailable)"]
        for _ in range(3):
            deployment.checks(24 * 60 - 1)
    reminded = "Still: sales.t000: check readable fails (source_unavailable)"
    assert receiver.titles()[1:] == [reminded] * 3
    deployment.later(10)
    assert receiver.titles()[4:] == ["Ended: sales.t000: check readable fails (source_unavailable)"]


def test_twelve_tables_with_one_cause_are_one_message_and_one_at_the_end(
    tmp_path: Path, deployment: Deployment, receiver: WebReceiver
) -> None:
    many = Deployment(tmp_path / "many", deployment.instance, tables=12)
    for name in many.names:
        many.fail(name.table, ErrorCode.STORE_DENIED, f"{name}: {_DENIED.format(name.table)}")
    many.checks()
    assert receiver.titles() == ["12 tables: check not_failing fails (store_denied)"]
    which = ", ".join(f"sales.t{n:03d}" for n in range(10))
    assert f"Which: {which}, and 2 more" in receiver.messages()[0]
    for name in many.names:
        many.fix(name.table)
    many.checks(5)
    assert receiver.titles()[1:] == ["Ended: 12 tables: check not_failing fails (store_denied)"]


def test_a_late_table_is_reported_by_the_second_checks_and_no_more_while_it_fails(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.commit("t000", 30)
    deployment.checks()
    assert receiver.bodies == []
    deployment.checks(5)
    assert receiver.titles() == ["sales.t000: check lag fails"]
    deployment.fail("t001", ErrorCode.LOG_GAP, "sales.t001: version 3 is missing. Next: rebuild it.")
    deployment.commit("t001", 30)
    deployment.later(15)
    assert receiver.titles()[1:] == ["sales.t001: check not_failing fails (log_gap)"], "its lag follows from that"


def test_a_rebuild_hides_the_lag_of_its_table_for_hours_and_not_for_days(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.commit("t000", 30)
    drive(begin_rebuild(TableName("sales", "t000"), "a person asked."), deployment.store)
    deployment.later(10)
    assert receiver.bodies == []
    deployment.checks(7 * 60)
    deployment.checks(5)
    assert "sales.t000: check lag fails" in receiver.titles()


def test_a_rebuild_that_fails_is_one_message_with_its_own_reason(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.fail("t000", ErrorCode.DATA_FILE_MISSING, "sales.t000: x is gone.", rebuild="a data file is gone")
    deployment.later(10)
    assert receiver.bodies == []
    for _ in range(4):
        deployment.fail("t000", ErrorCode.CHECKS_FAILED, "sales.t000: 1 row has a NULL key. Next: fix it.")
        deployment.checks(5)
    assert receiver.titles() == ["sales.t000: check not_failing fails (checks_failed)"]
    assert "the rebuild fails as well: 1 row has a NULL key." in receiver.messages()[0]


def test_a_table_whose_run_was_killed_is_reported_if_that_happens_again(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.fail("t001", ErrorCode.RUN_KILLED, "sales.t001: run 17 was killed.")
    deployment.checks(5)
    deployment.fix("t001")
    deployment.checks(5)
    assert receiver.bodies == []
    deployment.fail("t001", ErrorCode.RUN_KILLED, "sales.t001: run 18 was killed.", times=2)
    deployment.later(10)
    assert receiver.titles() == ["sales.t001: check not_failing fails (run_killed)"]


def test_an_unreachable_landing_zone_is_one_message_and_ends_no_problem(
    deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    deployment.checks()
    with monkeypatch.context() as patched:
        for verb in ("head", "list", "read", "read_if_changed"):
            patched.setattr(LocalStore, verb, _away)
        assert deployment.later(15) == [True, False, True]
        deployment.checks(1, CheckTables(checks=["lag"], spark=False, is_scheduled=True))  # it can't know of the outage
        assert deployment.later(10) == [True, True]
    assert receiver.titles()[1:] == ["landing zone: can't be used (store_unavailable)"]
    deployment.later(10)
    assert receiver.titles()[2:] == ["Ended: landing zone: can't be used (store_unavailable)"]
    deployment.checks(70)
    newest = deployment.instance.get_runs(limit=1)[0]
    assert OUTAGE_TAG not in newest.tags, "forgotten"


def test_a_landing_zone_that_refuses_writes_is_one_message(
    deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.commit("t000", 30)

    def full(_store: object, path: str, *_: object) -> NoReturn:
        raise STORE_FULL(path=path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "create", full)
        deployment.later(15)
    assert receiver.titles() == ["landing zone: can't be used (store_full)"]
    deployment.later(10)
    assert receiver.titles()[1:] == [
        "Ended: landing zone: can't be used (store_full)",
        "sales.t000: check lag fails",
    ]


def test_a_manual_run_of_some_checks_ends_only_what_it_has_evaluated(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    deployment.checks()
    deployment.fix("t000")
    deployment.checks(1, CheckTables(checks=["lag"], spark=False), ALL_CHECKS)
    assert len(receiver.bodies) == 1
    deployment.checks(1, CheckTables(checks=["not_failing"], spark=False), ALL_CHECKS)
    assert kinds(receiver) == ["failure", "success"]
    deployment.later(10)
    assert len(receiver.bodies) == 2


def test_two_deployments_with_other_tables_in_one_zone_leave_each_other_alone(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    with dg.instance_for_test() as elsewhere:
        other = Deployment(deployment.root, elsewhere, tables=1, at=deployment.at, first=900)
        deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
        other.fail("t900", ErrorCode.LOG_GAP, "sales.t900: version 3 is missing. Next: rebuild it.")
        for _ in range(3):
            deployment.checks(5)
            other.checks(5)
        assert len(receiver.bodies) == 2
        other.fix("t900")
        deployment.checks(5)
        assert len(receiver.bodies) == 2
        other.checks(5)
        assert receiver.titles()[2:] == ["Ended: sales.t900: check not_failing fails (log_gap)"]


def test_the_problem_of_a_table_that_was_removed_from_the_settings_ends(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.fail("t002", ErrorCode.LOG_GAP, "sales.t002: version 3 is missing. Next: rebuild it.")
    deployment.checks()
    del deployment.names[2]
    deployment.checks(5)
    assert kinds(receiver) == ["failure", "success"]


def test_a_muted_table_fails_no_run_and_is_reported_when_the_time_is_over(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    until = int((deployment.at + 3600) * 1000)
    mute = Mute(subject="sales.t000", until_ms=until)
    ProblemStore(deployment.store).change(lambda file: file.model_copy(update={"mutes": (mute,)}))
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    assert deployment.later(10) == [True] * 2
    assert receiver.bodies == []
    deployment.checks(60)
    assert receiver.titles() == ["sales.t000: check not_failing fails (log_gap)"]


def test_a_value_of_a_row_in_a_file_path_is_neither_sent_nor_stored(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    text = "sales.t000: s3://acme/t/customer=Ada%20L/day=2026-01-01/part-0.parquet is gone (customer=Ada L/part-0)."
    deployment.fail("t000", ErrorCode.DATA_FILE_MISSING, text)
    deployment.checks()
    assert "s3://acme/t/customer=…/day=…/part-0.parquet is gone" in receiver.messages()[0]
    for shown in (str(receiver.bodies), deployment.problems.model_dump_json()):
        assert "Ada" not in shown
        assert "2026-01-01/part" not in shown


def test_dagsters_database_that_fails_for_one_run_loses_nothing(
    deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    deployment.checks()

    def away(*_: object, **__: object) -> NoReturn:
        message = "server closed the connection unexpectedly"
        raise OSError(message)

    with monkeypatch.context() as patched:
        patched.setattr(type(deployment.instance.event_log_storage), "get_latest_asset_check_execution_by_key", away)
        assert not deployment.checks(5).success
    deployment.later(10)
    assert len(receiver.bodies) == 1
    deployment.fix("t000")
    deployment.checks(5)
    assert kinds(receiver) == ["failure", "success"]


def test_an_unexpected_error_while_the_zone_is_read_is_over_with_the_next_run(
    deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        message = "can't start new thread"
        raise RuntimeError(message)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "read", broken)
        deployment.checks()
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    deployment.checks(5)
    assert receiver.titles() == ["sales.t000: check not_failing fails (log_gap)"]


def test_runs_of_other_teams_change_nothing(deployment: Deployment, receiver: WebReceiver) -> None:
    @dg.job
    def payroll() -> None: ...

    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    deployment.checks()
    for _ in range(10):
        payroll.execute_in_process(instance=deployment.instance)
    deployment.later(10)
    assert len(receiver.bodies) == 1


def test_the_running_run_that_mirrors_is_tagged_with_the_tables_that_fail(
    deployment: Deployment, receiver: WebReceiver
) -> None:
    assert receiver.url
    run = deployment.instance.add_run(
        dg.DagsterRun(job_name="mirror_all", run_id=dg.DagsterRun("x").run_id, status=dg.DagsterRunStatus.STARTED)
    )
    deployment.fail("t000", ErrorCode.LOG_GAP, "sales.t000: version 3 is missing. Next: rebuild it.")
    for minutes, tag in ((0, "sales.t000"), (5, "none")):
        deployment.checks(minutes)
        found = deployment.instance.get_run_by_id(run.run_id)
        assert found is not None
        assert found.tags["mirror/failing"] == tag
        deployment.fix("t000")


def test_the_run_failure_sensor_of_the_page_reports_a_killed_run(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed runs are Dagster's subject: the page shows its own sensor for them."""
    code = (DOCS / "alerts.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    defined: dict[str, dg.SensorDefinition] = {}
    exec(code, defined)  # noqa: S102 the page's own code
    run = deployment.instance.add_run(dg.DagsterRun(job_name="mirror_all", run_id=make_new_run_id()))
    event = deployment.instance.report_run_failed(run, "Run worker pod was OOM-killed")
    context = dg.build_run_status_sensor_context("report_failed_runs", event, deployment.instance, run)
    defined["report_failed_runs"](context.for_run_failure())
    assert "mirror_all failed: Run worker pod was OOM-killed" in capsys.readouterr().out


def test_definitions_load_without_the_libraries_that_send() -> None:
    program = "import sys, mirror_assets.definitions; print({'apprise', 'pagerduty'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


_RULES = """\
stores:
  lake: {root: ./lake}
discover:
  - {from: {store: lake, path: "*/*/"}, schema: sales, keys: {default: [id]}}
"""


@pytest.fixture
def discovered(tmp_path: Path, receiver: WebReceiver) -> Iterator[tuple[DiskLake, Deployment]]:
    """A lake of the tables t777 and t778, which have landed, and a deployment that discovers them."""
    assert receiver.url
    lake = DiskLake(tmp_path)
    lake.add("a/t777", "a/t778")
    with dg.instance_for_test() as instance:
        deployment = Deployment(tmp_path, instance, tables=0, settings=_RULES)
        for table in ("t777", "t778"):
            name, state = TableName("sales", table), DeltaLog(str(lake.lake / "a" / table)).state()
            deployment.store.create(name.metadata, metadata_bytes(("id",)))
            cover(deployment.store, name, state.version, state.table_id, state.schema_string, COLUMNS)
        yield lake, deployment


def _later(deployment: Deployment, times: int) -> None:
    """The sensor scans, and `checks` runs."""
    for _ in range(times):
        with_found_tables(deployment.config, When.NOW)
        deployment.checks(5)


def test_a_place_and_its_tables_that_vanish_are_one_message_until_they_are_back(
    discovered: tuple[DiskLake, Deployment], tmp_path: Path, receiver: WebReceiver
) -> None:
    lake, deployment = discovered
    _later(deployment, 2)
    assert receiver.bodies == []
    assert len(deployment.config.names) == 2
    lake.lake.rename(tmp_path / "unmounted")
    (lake.lake / "a").mkdir(parents=True)
    _later(deployment, 4)
    assert kinds(receiver) == ["failure"]
    assert "is not listed as before" in receiver.titles()[0]
    assert "2 of 2 tables are no longer listed" in receiver.messages()[0]
    assert len(deployment.config.names) == 2, "they are mirrored as before"
    (lake.lake / "a").rmdir()
    lake.lake.rmdir()
    (tmp_path / "unmounted").rename(lake.lake)
    _later(deployment, 3)
    assert kinds(receiver) == ["failure", "success"]


def test_a_newcomer_whose_name_is_taken_is_one_warning_and_the_mirrored_table_stays(
    discovered: tuple[DiskLake, Deployment], receiver: WebReceiver
) -> None:
    lake, deployment = discovered
    _later(deployment, 1)
    lake.add("Backup/t777")  # sorts first
    _later(deployment, 3)
    assert kinds(receiver) == ["warning"]
    assert receiver.titles()[0].endswith("Backup/t777: is not mirrored: the name sales.t777 is taken")
    assert "Next: rename or exclude the new folder, or list it under `tables`." in receiver.messages()[0]
    assert deployment.config.table("sales.t777").source.endswith("/a/t777")
