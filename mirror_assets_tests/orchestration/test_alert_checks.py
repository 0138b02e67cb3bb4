"""Alerts of asset checks: one message when a check fails, one when it passes, none if another explains it."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from mirror_assets.errors import ErrorCode
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import AssetKind, asset_key
from mirror_assets.orchestration.checks import check_named
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.alerts.web import WebReceiver
from mirror_assets_tests.orchestration.alerting import BrokenSource, Deployment, kinds


def test_a_check_is_reported_when_it_fails_and_when_it_passes(deployment: Deployment, receiver: WebReceiver) -> None:
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
    states.failed(table, BrokenSource("version 3 renames a column."))
    deployment.settle()
    deployment.check("not_held", passed=True)
    deployment.later(5)
    deployment.check("not_failing", passed=True)
    deployment.later(10)
    held = "sales.t000: waits for a person to have it rebuilt"
    assert receiver.titles() == [held, f"Ended: {held}"]


def test_a_check_that_a_run_of_assets_evaluates_is_reported(deployment: Deployment, receiver: WebReceiver) -> None:
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


def test_a_table_on_hold_has_no_deadline(deployment: Deployment, receiver: WebReceiver) -> None:
    table, states = TableName("sales", "t001"), TableStates(deployment.instance, deployment.alerts.assets)
    states.failed(table, BrokenSource("version 3 renames a column."))
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


def test_old_results_are_not_reported(deployment: Deployment, receiver: WebReceiver) -> None:
    deployment.check("lag", passed=False, text="late")
    deployment.check("lag", passed=True)
    deployment.at += 3 * 86_400
    deployment.settle()
    assert receiver.bodies == []


def test_a_skipped_check_is_not_reported(deployment: Deployment, receiver: WebReceiver) -> None:
    skipped = CheckResult("lag", skipped="skipped: another check failed")
    deployment.instance.report_runless_asset_event(
        check_named("lag", AssetKind.LANDING).evaluation(deployment.alerts.assets, deployment.names[0], skipped)
    )
    deployment.settle()
    assert kinds(receiver) == []


def test_the_incident_of_a_table_that_was_removed_from_the_settings_ends(tmp_path: Path, receiver: WebReceiver) -> None:
    with dg.instance_for_test() as instance:
        deployment = Deployment(tmp_path, instance, tables=3)
        deployment.check("retention", passed=False, text="one hour is left", asset="t002")
        deployment.settle()
        fewer = Deployment(tmp_path, instance, tables=2, at=deployment.at)
        fewer.settle()
        assert kinds(receiver) == ["failure", "success"]
