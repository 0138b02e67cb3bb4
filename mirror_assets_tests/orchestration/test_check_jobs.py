"""The jobs of checks: one step for all tables, what they record, and when their schedules ask for them. No Spark."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import NoReturn

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned

from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode, MirrorError, RetryError
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.run_records import record_failure
from mirror_assets.orchestration import check_jobs, check_runs, checks, recorded_checks
from mirror_assets.orchestration.check_jobs import ALL_CHECKS, CHECK_OP, CHECKS, CheckTables
from mirror_assets.orchestration.mirror_assets import partitions_name
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import staged_ahead
from mirror_assets.pipeline.next_action import note_failure
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.source.commits import SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets_tests.orchestration.mirrors import failure_of
from mirror_assets_tests.pipeline.paper import TABLE, Paper

_LAG = dg.AssetCheckKey(asset_key(AssetKind.LANDING, TABLE), "lag")
_NOT_FAILING = dg.AssetCheckKey(asset_key(AssetKind.LANDING, TABLE), "not_failing")
_ORDER = dg.AssetCheckKey(asset_key(AssetKind.CHANGES, TABLE), "row_order")


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """A table that has waited for an hour, because its run fails."""
    made = Paper(tmp_path, "lag: {warn_seconds: 60, error_seconds: 600}")
    made.create(time.time() - 7200)
    made.commit(1, time.time() - 3600)
    made.cover(0)
    made.context.store.create(TABLE.metadata, metadata_bytes(("id",)))
    return made


def _land(paper: Paper) -> None:
    """Have everything landed."""
    (paper.zone / TABLE.manifest).unlink()
    paper.cover(1)


def _run(
    config: Config, instance: dg.DagsterInstance, job: str = CHECKS, checks: CheckTables | None = None
) -> dg.ExecuteInProcessResult:
    run_config = dg.RunConfig(ops={CHECK_OP: checks}) if checks else None
    found = build_definitions(config).resolve_job_def(job)
    return found.execute_in_process(instance=instance, run_config=run_config, raise_on_error=False)


def _last(instance: dg.DagsterInstance, key: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
    return RecordedChecks(instance, [key]).last(key)


def _results(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> list[dg.AssetCheckEvaluation]:
    """What a run has recorded; the run may have failed for it."""
    events = (entry.dagster_event for entry in instance.all_logs(result.run_id))
    evaluation = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    return [event.asset_check_evaluation_data for event in events if event and event.event_type is evaluation]


def _evaluated(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> set[str]:
    return {found.check_name for found in _results(instance, result)}


def test_lag_is_recorded_of_a_table_whose_runs_fail(paper: Paper, instance: dg.DagsterInstance) -> None:
    message = "slice 1 was not published: a key is NULL"
    record_failure(paper.context.store, TABLE, ErrorCode.CHECKS_FAILED, message, int(time.time() * 1000))
    result = _run(paper.config, instance)
    assert [event.step_key for event in result.all_events if event.is_step_failure] == [CHECK_OP]
    lag, failing = _last(instance, _LAG), _last(instance, _NOT_FAILING)
    assert lag is not None
    assert failing is not None
    assert (lag.passed, lag.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert lag.metadata["commits_behind"].value == 1
    assert "not_failing" in str(lag.metadata["next_step"].value)
    assert "1 run of shop.orders failed: slice 1 was not published" in (failing.description or "")
    assert {"retention", "replicating", "file_continuity", "readable"} <= _evaluated(instance, result)
    assert not {"reconciled", "row_order"} & _evaluated(instance, result)


def test_the_checks_of_a_table_open_its_log_twice_and_its_status_twice(
    paper: Paper, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    _land(paper)
    opened, state = list[str](), DeltaLog.state

    def counted(log: DeltaLog, version: int | None = None) -> SourceState:
        opened.append(log.uri)
        return state(log, version)

    monkeypatch.setattr(DeltaLog, "state", counted)
    assert {"lag", "retention", "not_held", "not_failing"} <= _evaluated(instance, _run(paper.config, instance))
    assert len(opened) == 4, "a plan for not_held and not_failing, and what waits for lag and retention; each again"


def test_an_unchanged_result_is_recorded_once_a_day(
    paper: Paper, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    _land(paper)
    first = _evaluated(instance, _run(paper.config, instance))
    assert _evaluated(instance, _run(paper.config, instance)) == set()
    monkeypatch.setattr(recorded_checks, "_AGAIN_SECONDS", 0.0)
    assert _evaluated(instance, _run(paper.config, instance)) == first


def test_only_a_check_that_fails_is_recorded_when_the_table_is_late(paper: Paper, instance: dg.DagsterInstance) -> None:
    _land(paper)
    _run(paper.config, instance)
    paper.commit(2, time.time() - 3600)
    late = {found.check_name: found.passed for found in _results(instance, _run(paper.config, instance))}
    assert late == {"lag": False}
    time.sleep(1.1)
    assert "lag" not in _evaluated(instance, _run(paper.config, instance)), "late for longer is no change"


@pytest.mark.parametrize("met_by_a_run", [False, True])
def test_a_source_that_is_gone_is_one_failed_check_and_the_others_stay(
    paper: Paper, instance: dg.DagsterInstance, *, met_by_a_run: bool
) -> None:
    shutil.rmtree(paper.lake / "_delta_log")
    if met_by_a_run:
        with pytest.raises(MirrorError) as met:
            plan_table(paper.context)
        note_failure(paper.context, met.value, pytest.fail)
    found = _results(instance, _run(paper.config, instance))
    told = [one.check_name for one in found if "is not a Delta table" in (one.description or "")]
    assert told == ["readable"], "one cause is told once"
    assert not {"lag", "retention", "not_held"} & {one.check_name for one in found}
    of_zone = [(one.severity, one.description) for one in found if one.check_name == "not_failing"]
    assert of_zone == [(dg.AssetCheckSeverity.WARN, "skipped: readable failed")]


def test_a_landing_zone_that_is_away_is_one_failed_check_of_each_table(
    paper: Paper, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def away(_store: LocalStore, path: str, *_: object) -> NoReturn:
        asked.append(path)
        raise STORE_UNAVAILABLE(path=path, why="503, again and again for 120 s")

    for verb in ("head", "list", "read", "read_if_changed"):
        monkeypatch.setattr(LocalStore, verb, away)
    names = [f"shop.t{n}" for n in range(40)]
    tables = "".join(f"  {name}: {{source: {paper.lake}, keys: [id]}}\n" for name in names)
    text = f"landing_zone: {{path: {paper.zone}}}\ntables:\n{tables}"
    result = _run(parse_config(text.encode(), paper.root / "mirror.yaml", {}), instance)
    failed = [one for one in _results(instance, result) if not one.passed]
    assert sorted(one.asset_key.path[-1] for one in failed if one.check_name == "file_continuity") == sorted(
        f"t{n}_landing" for n in range(40)
    )
    assert {one.check_name for one in failed} == {"file_continuity"}, "one cause, though each request has its own path"
    assert {one.severity for one in failed} == {dg.AssetCheckSeverity.WARN}
    assert len(asked) < 200, "a store that does not answer is not asked for every table, check by check"


def test_tables_whose_checks_do_not_end_have_failed(
    paper: Paper, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    for module in (check_runs, check_jobs):
        monkeypatch.setattr(module, "LONGEST_SECONDS", 0.5)
    monkeypatch.setattr(DeltaLog, "state", lambda *_: over.wait(60))
    found = _results(instance, _run(paper.config, instance))
    over.set()
    assert [(one.check_name, one.passed, one.severity.value) for one in found] == [("readable", False, "WARN")]
    assert "shop.orders have not ended" in (found[0].description or "")


def test_a_source_that_does_not_answer_is_a_warning_once(
    paper: Paper, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise RetryError("the store does not answer.", "wait.", code=ErrorCode.SOURCE_UNAVAILABLE)

    monkeypatch.setattr(DeltaLog, "state", silent)
    monkeypatch.setattr(recorded_checks, "_AGAIN_SECONDS", 0.0)
    first, second = (_silent(instance, _run(paper.config, instance)) for _ in range(2))
    assert first.check_name == second.check_name == "not_failing"
    assert (first.severity, second.severity) == (dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR)
    assert first.metadata["next_step"].value == "wait."


def _silent(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    found = _results(instance, result)
    (silent,) = [one for one in found if "could not be checked: the store does not" in (one.description or "")]
    return silent


def test_a_persons_run_fails_with_what_the_checks_found(paper: Paper, instance: dg.DagsterInstance) -> None:
    record_failure(paper.context.store, TABLE, ErrorCode.STORE_FULL, "the disk is full", int(time.time() * 1000))
    only = CheckTables(tables=[str(TABLE)] * 2, checks=["lag", "not_failing"])
    result = _run(paper.config, instance, ALL_CHECKS, only)
    assert sorted(one.check_name for one in _results(instance, result)) == ["lag", "not_failing"], "once"
    told = failure_of(result).description or ""
    assert told.startswith("1 blocking check failed: not_failing of shop/orders_landing: ")
    assert "the disk is full. Next: the next run retries automatically." in told


def test_a_run_says_what_to_do_about_a_check_that_could_not_run(paper: Paper, instance: dg.DagsterInstance) -> None:
    (paper.zone / TABLE.manifest).write_text("{")
    failed = failure_of(_run(paper.config, instance, ALL_CHECKS, CheckTables(spark=False)))
    assert "restore it from a backup" in str(failed.metadata["next_step"].value)


@pytest.mark.parametrize("wrong", [CheckTables(checks=["lags"]), CheckTables(tables=["nothing"])])
def test_a_run_of_what_is_not_there_fails(paper: Paper, instance: dg.DagsterInstance, wrong: CheckTables) -> None:
    assert "one of" in (failure_of(_run(paper.config, instance, ALL_CHECKS, wrong)).description or "")


def test_a_scheduled_run_lists_staged_slices_only_after_a_failure_and_resolves_it(
    paper: Paper, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On OneLake, a listing for each table in each run of the schedule costs requests."""
    listings = list[str]()

    def count(context: TableContext) -> tuple[SliceRecord, ...]:
        listings.append(str(context.name))
        return staged_ahead(context)

    monkeypatch.setattr(checks, "staged_ahead", count)
    assert _run(paper.config, instance).success
    assert listings == []
    instance.report_runless_asset_event(dg.AssetCheckEvaluation(_ORDER.asset_key, _ORDER.name, passed=False))
    assert _run(paper.config, instance).success
    assert listings == [str(TABLE)]
    found = _last(instance, _ORDER)
    assert found is not None
    assert (found.passed, found.description) == (True, "no staged slice waits: each was checked before it landed")


def test_a_failure_is_not_taken_back_before_its_slice_has_landed(paper: Paper, instance: dg.DagsterInstance) -> None:
    """The run that tries it again has deleted what was staged, and not staged it anew."""
    failed = dg.AssetCheckEvaluation(
        _ORDER.asset_key, _ORDER.name, passed=False, metadata={"slice": str(SliceKey(1, 1, 1))}
    )
    instance.report_runless_asset_event(failed)
    assert _run(paper.config, instance).success
    found = _last(instance, _ORDER)
    assert found is not None
    assert not found.passed
    _land(paper)
    assert _run(paper.config, instance).success
    found = _last(instance, _ORDER)
    assert found is not None
    assert found.passed


def test_a_result_that_dagster_no_longer_shows_is_news(
    paper: Paper, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found before the newest materialization is "not evaluated" in the UI."""
    monkeypatch.setattr(recorded_checks, "HIDDEN_SECONDS", 0.0)
    _land(paper)
    assert _run(paper.config, instance).success
    assert "lag" not in _evaluated(instance, _run(paper.config, instance))
    instance.report_runless_asset_event(dg.AssetMaterialization(_LAG.asset_key))
    assert "lag" in _evaluated(instance, _run(paper.config, instance))


def test_a_table_with_a_defect_does_not_keep_the_others_from_being_checked(
    paper: Paper, instance: dg.DagsterInstance
) -> None:
    text = (
        f"landing_zone: {{path: {paper.zone}}}\ntables:\n"
        f"  shop.nowhere: {{source: ./nowhere, keys: [id]}}\n  {TABLE}: {{source: {paper.lake}, keys: [id]}}\n"
    )
    result = _run(parse_config(text.encode(), paper.root / "mirror.yaml", {}), instance)
    found = {(x.asset_key.path[-1], x.check_name): x for x in _results(instance, result)}
    assert found["orders_landing", "lag"].passed is False
    assert found["nowhere_landing", "not_failing"].passed is False


def test_partitions_that_a_person_has_added_by_mistake_are_deleted(paper: Paper, instance: dg.DagsterInstance) -> None:
    partitions = partitions_name(asset_key(AssetKind.LANDING, TABLE))
    instance.add_dynamic_partitions(partitions, ["1.0-0", "foo", "1.1-1"])
    _run(paper.config, instance)
    assert instance.get_dynamic_partitions(partitions) == ["1.0-0", "1.1-1"]


@pytest.mark.parametrize("is_active", [True, False])
def test_checks_that_a_run_has_planned_are_left_to_it_until_it_has_ended(
    paper: Paper, instance: dg.DagsterInstance, *, is_active: bool
) -> None:
    """A run without a partition plans all checks of the asset, and fails before it reaches them."""
    _land(paper)
    _run(paper.config, instance)
    run = instance.create_run_for_job(
        build_definitions(paper.config).resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset((_ORDER.asset_key, _LAG.asset_key)),
        status=dg.DagsterRunStatus.STARTED,
    )
    for key in (_ORDER, _LAG):
        planned = AssetCheckEvaluationPlanned(asset_key=key.asset_key, check_name=key.name)
        event = dg.DagsterEvent(
            "ASSET_CHECK_EVALUATION_PLANNED", job_name=run.job_name, event_specific_data=planned, message="planned"
        )
        instance.report_dagster_event(event, run.run_id)
    if not is_active:
        instance.report_run_failed(run)
    assert _last(instance, _ORDER) is None
    _run(paper.config, instance)
    for key in (_ORDER, _LAG):
        found = _last(instance, key)
        assert (found is None) is is_active
        assert is_active or (found is not None and found.passed)
