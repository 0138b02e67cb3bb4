"""The sensor `alerts` with a real instance: one message when a problem starts, and one when it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import dagster as dg
import pytest

from mirror_assets.alerts.receivers import send
from mirror_assets.config.alerts import AlertsConfig
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode, RebuildError, RetryError, SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.alerts_sensor import SENSOR
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.storage import LocalStore
from mirror_assets.storage.errors import StoreUnavailable
from mirror_assets_tests.alerts.web import WebReceiver
from mirror_assets_tests.orchestration.alerting import LOCATION, REPOSITORY, BrokenSource, Deployment, kinds
from mirror_assets_tests.orchestration.mirrors import evaluate


def test_nothing_is_reported_where_nothing_is_wrong(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.settle()
    assert deployment.tick() == "nothing is wrong"
    assert receiver.bodies == []


def test_two_hundred_tables_with_one_cause_are_one_message_and_one_at_the_end(
    tmp_path: Path, deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment = Deployment(tmp_path, deployment.instance, tables=200)
    for table in (name.table for name in deployment.names):
        text = (
            f"sales.{table}: the token for abfss://lake@acme.dfs.core.windows.net/{table} has expired. Next: renew it."
        )
        deployment.fail(table, ErrorCode.STORE_DENIED, text)
    deployment.settle()
    assert receiver.titles() == ["200 tables: can't be mirrored (store_denied)"]
    which = ", ".join(f"sales.t{n:03d}" for n in range(10))
    lines = receiver.messages()[0].splitlines()
    assert lines[1:4] == [
        f"Which: {which}, and 190 more",
        "Next: renew it.",
        "What this means: https://docs.example/errors/#store_denied",
    ]
    deployment.repair()
    deployment.settle()
    assert receiver.titles()[1:] == ["Ended: 200 tables: can't be mirrored (store_denied)"]
    assert kinds(receiver) == ["failure", "success"]
    assert receiver.messages()[1].splitlines()[-1] == lines[-1]


def test_a_held_table_is_reported_with_its_code(deployment: Deployment, receiver: WebReceiver) -> None:
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


def test_a_table_without_a_plan_is_reported_with_its_code(deployment: Deployment, receiver: WebReceiver) -> None:
    states = TableStates(deployment.instance, deployment.alerts.assets)
    error = SettingError("sales.t001: the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED)
    states.failed(TableName("sales", "t001"), error)
    deployment.settle()
    assert "https://docs.example/errors/#feed_disabled" in receiver.messages()[0]
    assert "Next: switch it on." in receiver.messages()[0]


def test_a_rebuild_is_reported_when_it_begins_and_ends(deployment: Deployment, receiver: WebReceiver) -> None:
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


def test_another_text_of_a_reported_fault_is_not_reported_again(deployment: Deployment, receiver: WebReceiver) -> None:
    states, name = TableStates(deployment.instance, deployment.alerts.assets), TableName("sales", "t001")
    for text in ("/lake/t001 is not a Delta table.", "1 runs of sales.t001 failed: it is not a Delta table."):
        states.failed(name, SettingError(text, "correct it.", code=ErrorCode.SOURCE_NOT_DELTA))
        deployment.settle()
    assert kinds(receiver) == ["failure"]
    states.failed(name, SettingError("the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED))
    deployment.later(10)
    assert kinds(receiver) == ["failure", "success", "failure"]


def test_a_transient_error_ends_no_incident(deployment: Deployment, receiver: WebReceiver) -> None:
    states, name = TableStates(deployment.instance, deployment.alerts.assets), TableName("sales", "t001")
    states.failed(name, SettingError("it is not a Delta table.", "correct it.", code=ErrorCode.SOURCE_NOT_DELTA))
    deployment.settle()
    states.failed(name, RetryError("it does not answer.", "run again.", code=ErrorCode.SOURCE_UNAVAILABLE))
    deployment.settle()
    assert kinds(receiver) == ["failure"]
    states.landed(name)
    deployment.settle()
    assert kinds(receiver) == ["failure", "success"]


def test_incidents_survive_a_restart(deployment: Deployment, receiver: WebReceiver) -> None:
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
        {f"mirror_assets/alerts/{REPOSITORY}@{LOCATION}"}
    )
    assert len(next(iter(saved.values()))) < 1500
    assert receiver.bodies == []


def test_a_reminder_comes_after_hours(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("lag", passed=False, text="late")
    deployment.settle()
    deployment.tick(6 * 3600)
    assert receiver.titles() == ["sales.t000: check lag fails", "Still: sales.t000: check lag fails"]


def test_a_first_transient_failure_is_not_reported(deployment: Deployment, receiver: WebReceiver) -> None:
    text = "sales.t000: s3://acme-lake does not answer. Next: run again."
    error = RetryError("sales.t000: s3://acme-lake does not answer.", "run again.", code=ErrorCode.SOURCE_UNAVAILABLE)
    TableStates(deployment.instance, deployment.alerts.assets).failed(TableName("sales", "t000"), error)
    deployment.fail("t000", ErrorCode.SOURCE_UNAVAILABLE, text)
    deployment.settle()
    assert receiver.bodies == []
    deployment.fail("t000", ErrorCode.SOURCE_UNAVAILABLE, text)
    deployment.settle()
    assert receiver.titles() == ["sales.t000: can't be mirrored (source_unavailable)"]


def test_an_unreadable_landing_zone_is_reported_and_ends_no_incident(
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


def test_the_sensor_exists_where_receivers_do(deployment: Deployment, receiver: WebReceiver) -> None:
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


def test_a_table_on_hold_for_eight_days_stays_open_without_scheduled_checks(
    tmp_path: Path, receiver: WebReceiver
) -> None:
    with dg.instance_for_test() as instance:
        deployment = Deployment(tmp_path, instance, tables=3, automation="automation: {checks_every_minutes: null}\n")
        TableStates(instance, deployment.alerts.assets).failed(
            TableName("sales", "t001"), BrokenSource("version 3 renames a column.")
        )
        deployment.settle()
        for _ in range(8):
            deployment.tick(86_400)
            deployment.settle()
        deployment.restart()
        deployment.settle()
        held = "sales.t001: waits for a person to have it rebuilt"
        assert set(receiver.titles()) == {held, f"Still: {held}"}


def test_a_hold_that_a_failure_record_has_needs_no_check(tmp_path: Path, receiver: WebReceiver) -> None:
    with dg.instance_for_test() as instance:
        defaults = "defaults: {on_break: hold}\nautomation: {checks_every_minutes: null}\n"
        deployment = Deployment(tmp_path, instance, tables=3, automation=defaults)
        deployment.fail("t001", ErrorCode.DATA_FILE_MISSING, "a file is gone.", rebuild="a file is gone.")
        deployment.settle()
        assert receiver.titles() == ["sales.t001: waits for a person to have it rebuilt"]


def test_a_value_of_a_row_in_a_file_path_is_not_sent(deployment: Deployment, receiver: WebReceiver) -> None:
    text = "sales.t000: s3://acme/t/customer=Ada%20L/day=2026-01-01/part-0.parquet is gone (customer=Ada L/part-0)."
    deployment.fail("t000", ErrorCode.DATA_FILE_MISSING, text)
    deployment.settle()
    assert "Ada" not in str(receiver.bodies)
    assert "2026-01-01/part" not in str(receiver.bodies)
    assert "s3://acme/t/customer=…/day=…/part-0.parquet is gone" in receiver.messages()[0]
    saved = deployment.instance.daemon_cursor_storage.get_cursor_values(
        {f"mirror_assets/alerts/{REPOSITORY}@{LOCATION}"}
    )
    assert "Ada" not in str(saved)


def test_definitions_load_without_the_libraries_that_send() -> None:
    program = (
        "import sys, mirror_assets.orchestration.alerts_sensor; print({'apprise', 'pagerduty'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
