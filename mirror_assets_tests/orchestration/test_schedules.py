"""When the schedules start runs: at their times, one run at a time, and never behind a run whose process was lost."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.utils import make_new_run_id

from mirror_assets.config.load import parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.check_jobs import CHECKS, RECONCILE
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.runs import mirror_tags
from mirror_assets_tests.pipeline.paper import Paper


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    return Paper(tmp_path)


@pytest.mark.parametrize(
    ("settings", "crons"),
    [
        ("", {CHECKS: "*/5 * * * *", RECONCILE: "30 1 * * *"}),
        ("checks_every_minutes: 1", {CHECKS: "*/1 * * * *", RECONCILE: "30 1 * * *"}),
        ("checks_every_minutes: 60, reconcile_every_hours: 6", {CHECKS: "0 * * * *", RECONCILE: "30 */6 * * *"}),
        ("checks_every_minutes: null, reconcile_every_hours: null", {}),
    ],
)
def test_the_schedules_are_settings(paper: Paper, settings: str, crons: dict[str, str]) -> None:
    text = f"landing_zone: {{path: ./l}}\nautomation: {{{settings}}}\ntables: {{t: {{source: ./lake, keys: [id]}}}}\n"
    definitions = build_definitions(parse_config(text.encode(), paper.root / "mirror.yaml", {}))
    found = {schedule.name: schedule for schedule in definitions.schedules or []}
    every_night = {"delete_old_runs": "45 4 * * *"}
    told = {name: schedule.cron_schedule for name, schedule in found.items()}  # type: ignore[union-attr]
    assert told == crons | every_night


def test_a_schedule_leaves_out_a_run_while_the_one_before_goes_on(paper: Paper, instance: dg.DagsterInstance) -> None:
    definitions = build_definitions(paper.config)
    schedule = definitions.resolve_schedule_def(CHECKS)
    at = datetime(2026, 11, 23, 12, 0, tzinfo=timezone.utc)
    context = dg.build_schedule_context(instance, at, resources=resources(MirrorAssets(paper.config)))
    asked = schedule.evaluate_tick(context)
    (request,) = asked.run_requests or []
    job = definitions.resolve_job_def(CHECKS)
    instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    assert schedule.evaluate_tick(context).run_requests, "a run of another mirror.yaml is no concern"
    instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=request.tags)
    again = schedule.evaluate_tick(context)
    assert not again.run_requests
    assert (again.skip_message or "").startswith("the previous run is in progress: ")
    nightly = definitions.resolve_schedule_def(RECONCILE).evaluate_tick(context).run_requests or []
    assert [one.tags["dagster/max_runtime"] for one in nightly] == ["21600"]


def _evaluate(paper: Paper, instance: dg.DagsterInstance, job: str, later: float = 0.0) -> dg.ScheduleExecutionData:
    """Evaluate the schedule of the job after these seconds."""
    schedule = build_definitions(paper.config).resolve_schedule_def(job)
    at = datetime(2026, 11, 23, 12, 0, tzinfo=timezone.utc)
    context = dg.build_schedule_context(instance, at, resources=resources(MirrorAssets(paper.config)))
    with mock.patch("mirror_assets.orchestration.schedules.time.time", return_value=time.time() + later):
        return schedule.evaluate_tick(context)


def _add(paper: Paper, instance: dg.DagsterInstance, job: str, status: dg.DagsterRunStatus) -> dg.DagsterRun:
    definition = build_definitions(paper.config).resolve_job_def(job)
    return instance.create_run_for_job(definition, status=status, tags=mirror_tags(paper.config))


@pytest.mark.parametrize(
    ("job", "status", "limit"),
    [
        (CHECKS, dg.DagsterRunStatus.STARTED, 1800),
        (CHECKS, dg.DagsterRunStatus.CANCELING, 1800),
        (CHECKS, dg.DagsterRunStatus.STARTING, 900),
        (CHECKS, dg.DagsterRunStatus.NOT_STARTED, 900),
        (RECONCILE, dg.DagsterRunStatus.STARTED, 6 * 3600),
    ],
)
def test_a_run_whose_process_was_lost_is_recorded_as_failed_and_the_next_one_starts(
    paper: Paper, instance: dg.DagsterInstance, job: str, status: dg.DagsterRunStatus, limit: int
) -> None:
    """A host was reset, and Dagster's run monitoring is off, as it is by default."""
    run = _add(paper, instance, job, status)
    assert not _evaluate(paper, instance, job, limit / 2).run_requests
    assert len(_evaluate(paper, instance, job, limit + 60).run_requests or []) == 1
    lost = instance.get_run_by_id(run.run_id)
    assert lost is not None
    assert lost.status is dg.DagsterRunStatus.FAILURE
    assert any("its process or its machine was lost" in entry.message for entry in instance.all_logs(run.run_id))


def test_a_queued_run_is_not_lost(paper: Paper, instance: dg.DagsterInstance) -> None:
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__")
    run = instance.add_run(
        dg.DagsterRun(
            job_name=CHECKS,
            run_id=make_new_run_id(),
            status=dg.DagsterRunStatus.QUEUED,
            tags=mirror_tags(paper.config),
            remote_job_origin=RemoteJobOrigin(repository, CHECKS),
        )
    )
    assert not _evaluate(paper, instance, CHECKS, 30 * 86_400).run_requests
    queued = instance.get_run_by_id(run.run_id)
    assert queued is not None
    assert queued.status is dg.DagsterRunStatus.QUEUED
