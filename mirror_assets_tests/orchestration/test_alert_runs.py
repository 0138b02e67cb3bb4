"""Alerts of failed runs of this code location, and of steps in them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration import alert_runs
from mirror_assets.orchestration.asset_names import BATCH_TAG, AssetKind, asset_key
from mirror_assets.orchestration.doctor_job import DOCTOR, SOURCES_OP, DoctorConfig
from mirror_assets_tests.alerts.web import WebReceiver
from mirror_assets_tests.orchestration.alerting import OURS, REPOSITORY, Deployment, kinds
from mirror_assets_tests.pipeline.doctor.lake import write_table


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


def test_many_later_failures_of_other_jobs_hide_none(
    deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alert_runs, "_FEW", 2)
    deployment.run("history", "the disk is full.")
    for _ in range(3):
        deployment.run("nightly", "the disk is full.")
    deployment.settle()
    assert sorted(receiver.titles()) == ["history: a run of history failed", "nightly: a run of nightly failed"]


def test_another_batch_or_partition_ends_no_incident(deployment: Deployment, receiver: WebReceiver) -> None:
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

    mirror_all.execute_in_process(instance=deployment.instance, raise_on_error=False, tags=OURS)
    deployment.check("not_failing", passed=False, text=text)
    deployment.check("lag", passed=False, text="version 1 has waited 1,000 s")
    deployment.settle()
    assert receiver.titles() == ["sales.t000: can't be mirrored (checks_failed)"]


def test_a_question_of_the_doctor_that_fails_is_reported(
    tmp_path: Path, deployment: Deployment, receiver: WebReceiver
) -> None:
    deployment.tick()
    job = build_definitions(deployment.config).resolve_job_def(DOCTOR)
    asked = dg.RunConfig(ops={SOURCES_OP: DoctorConfig(tables=["sales.t000"], spark=False)})
    job.execute_in_process(run_config=asked, instance=deployment.instance, raise_on_error=False, tags=OURS)
    deployment.settle()
    assert receiver.titles() == ["doctor: a run of doctor failed"]
    assert "sales.t000: is the log reached?" in receiver.messages()[0]
    write_table(tmp_path / "lake" / "t000")
    assert job.execute_in_process(run_config=asked, instance=deployment.instance, tags=OURS).success
    deployment.settle()
    assert receiver.titles()[1:] == ["Ended: doctor: a run of doctor failed"]


def _materialize(deployment: Deployment, error: Exception | None, kind: AssetKind = AssetKind.CHANGES) -> None:
    @dg.asset(key=asset_key(kind, TableName("sales", "t008")))
    def staged() -> None:
        if error is not None:
            raise error

    job = dg.Definitions(assets=[staged]).resolve_implicit_global_asset_job_def()
    chosen = [staged.key]
    job.execute_in_process(instance=deployment.instance, raise_on_error=False, tags=OURS, asset_selection=chosen)


def test_a_step_that_fails_for_a_table_names_the_table(deployment: Deployment, receiver: WebReceiver) -> None:
    _materialize(deployment, ValueError("a defect"))
    deployment.settle()
    assert receiver.titles() == ["sales.t008: a run of assets failed"]
    assert "a defect" in receiver.messages()[0]
    _materialize(deployment, None)
    deployment.settle()
    assert kinds(receiver) == ["failure", "success"]


def _remote_run(instance: dg.DagsterInstance, job: str, location: str, why: str) -> None:
    """Record a failed run of another code location, as its launcher does."""
    from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin as Place
    from dagster._core.remote_origin import RemoteJobOrigin, RemoteRepositoryOrigin
    from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

    place = Place(LoadableTargetOrigin(module_name="elsewhere"), location)
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(place, REPOSITORY), job)
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


def test_a_failed_scheduled_run_stays_until_the_next_of_its_job(deployment: Deployment, receiver: WebReceiver) -> None:
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
