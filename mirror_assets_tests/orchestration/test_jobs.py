"""What a job says of a configuration that somebody typed into the launchpad, and the job `doctor`. No Spark."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.snap import JobSnap
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap

from mirror_assets.config.discovered import Discovered, When
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.encode import session
from mirror_assets.errors import ErrorCode
from mirror_assets.orchestration.jobs import (
    DOCTOR,
    MIRROR_SCHEMA,
    MIRROR_TABLE,
    REBUILD,
    REPAIR,
    SOURCES_OP,
    TABLES_OP,
    DoctorConfig,
    MirrorTables,
)
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL
from mirror_assets.orchestration.run_reports import TableReport, summary
from mirror_assets.pipeline.doctor import FOUND, DoctorVerdict
from mirror_assets_tests.orchestration.mirrors import failure_of
from mirror_assets_tests.pipeline.doctor_lake import write_table
from mirror_assets_tests.pipeline.paper import Paper
from mirror_assets_tests.worlds.disk_lake import DiskLake


def test_a_table_that_is_not_there_is_named_without_a_stack_trace(tmp_path: Path) -> None:
    paper = Paper(tmp_path)
    paper.create(time.time())
    wrong = dg.RunConfig(ops={TABLES_OP: MirrorTables(tables=["shop.none"])})
    job = build_definitions(paper.config).resolve_job_def(MIRROR_ALL)
    told = failure_of(job.execute_in_process(run_config=wrong, raise_on_error=False)).description or ""
    assert "has no table 'shop.none'. Next: use one of its tables; did you mean 'shop.orders'?" in told


def test_a_rebuild_that_is_not_confirmed_is_canceled_and_states_what_it_would_do(tmp_path: Path) -> None:
    paper = Paper(tmp_path)
    paper.create(time.time())
    with dg.instance_for_test() as instance:
        job = build_definitions(paper.config).resolve_job_def(REBUILD)
        result = job.execute_in_process(instance=instance, partition_key="shop.orders", raise_on_error=False)
        assert instance.get_runs()[0].status is dg.DagsterRunStatus.CANCELED, "nothing has failed"
    text = failure_of(result).description or ""
    assert "rebuilding shop.orders deletes its table folder" in text
    assert "To start it, set `confirm` to shop.orders and launch again." in text
    assert not (tmp_path / "landing" / "_rebuild").exists()


@pytest.mark.parametrize("name", [MIRROR_TABLE, MIRROR_SCHEMA, REPAIR, REBUILD])
def test_a_job_of_one_table_works_on_no_table_without_a_partition(tmp_path: Path, name: str) -> None:
    paper = Paper(tmp_path)
    paper.create(time.time())
    with dg.instance_for_test() as instance:
        job = build_definitions(paper.config).resolve_job_def(name)
        result = job.execute_in_process(instance=instance, raise_on_error=False)
        assert instance.get_runs()[0].status is dg.DagsterRunStatus.CANCELED
    assert f"no partition was chosen: launch the job {name} again" in (failure_of(result).description or "")
    assert not (tmp_path / "landing").exists()


def test_the_partition_of_a_run_decides_whatever_its_configuration_says(tmp_path: Path) -> None:
    """The launchpad joins the configuration of two partitions that were chosen one after the other."""
    paper = Paper(tmp_path)
    paper.create(time.time())
    paper.cover(0)
    wrong = dg.RunConfig(ops={TABLES_OP: MirrorTables(tables=["shop.none"])})
    job = build_definitions(paper.config).resolve_job_def(MIRROR_TABLE)
    result = job.execute_in_process(run_config=wrong, partition_key="shop.orders", raise_on_error=False)
    (report,) = result.output_for_node(TABLES_OP)
    assert report.table == "shop.orders"


def test_tables_that_were_discovered_without_discoverys_memory_are_not_mirrored(tmp_path: Path) -> None:
    paper = Paper(tmp_path)
    paper.create(time.time())
    config = paper.config
    unconfirmed = config.with_found(Discovered(is_confirmed=False), {})
    result = build_definitions(unconfirmed).resolve_job_def(MIRROR_ALL).execute_in_process(raise_on_error=False)
    (report,) = result.output_for_node(TABLES_OP)
    assert report.error.code == ErrorCode.STORE_UNAVAILABLE.value
    assert "another folder may have the name of a known table" in str(report.error)
    assert not (tmp_path / "landing").exists()


@pytest.mark.parametrize("name", [MIRROR_ALL, MIRROR_TABLE, MIRROR_SCHEMA, REPAIR])
def test_a_launchpad_begins_empty(tmp_path: Path, name: str) -> None:
    snap = JobSnap.from_job_def(build_definitions(Paper(tmp_path).config).resolve_job_def(name))
    root = snap.config_schema_snapshot.get_config_snap(snap.mode_def_snaps[0].root_config_key or "")
    assert default_values_yaml_from_type_snap(snap.config_schema_snapshot, root) == "{}\n"


def test_each_schedule_and_sensor_has_a_description(tmp_path: Path) -> None:
    definitions = build_definitions(Paper(tmp_path).config)
    ticking = [*(definitions.schedules or []), *(definitions.sensors or [])]
    found = {
        one.name: one.description for one in ticking if isinstance(one, dg.ScheduleDefinition | dg.SensorDefinition)
    }
    assert {"checks", "reconcile", "mirror", "replicator"} <= set(found)
    assert all(found.values()), found


def test_a_run_that_finds_nothing_logs_so() -> None:
    reports = [TableReport("a"), TableReport("b", slices=2), TableReport("c")]
    assert summary(reports) == "3 tables: 2 nothing to do, 1 mirrored"


@pytest.fixture(autouse=True)
def _no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr(session, "open_session", refuse)


def _doctor(folder: Path, tables: str) -> dg.ExecuteInProcessResult:
    file = folder / "mirror.yaml"
    file.write_text(f"landing_zone: {{path: ./landing}}\ntables: {{{tables}}}\n")
    return _examined(load_config(file))


def _examined(config: Config) -> dg.ExecuteInProcessResult:
    job = build_definitions(config).resolve_job_def(DOCTOR)
    return job.execute_in_process(
        run_config=dg.RunConfig(ops={SOURCES_OP: DoctorConfig(spark=False)}), raise_on_error=False
    )


def test_a_sound_table_passes_and_nothing_is_left_in_the_landing_zone(tmp_path: Path) -> None:
    write_table(tmp_path / "orders")
    assert _doctor(tmp_path, "orders: {source: ./orders, keys: [id]}").success
    assert not [path for path in (tmp_path / "landing").rglob("*") if path.is_file()]


def test_an_answer_of_no_fails_the_run_with_the_next_step(tmp_path: Path) -> None:
    write_table(tmp_path / "orders")
    result = _doctor(tmp_path, "orders: {source: ./orders, keys: [id]}, none: {source: ./none, keys: [id]}")
    assert not result.success
    told = failure_of(result)
    many = len(result.output_for_node(SOURCES_OP)) + 10
    assert (told.description or "").startswith(f"1 of {many} answers are no: none: is the log reached? ")
    assert "Next: restore the table" in (told.description or "")
    assert "Next: restore the table" in str(told.metadata["none: is the log reached?"].value)


def test_a_place_that_fails_after_the_definitions_were_loaded_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lake = DiskLake(tmp_path)
    lake.add("orders")
    lake.configure("{from: {store: lake, path: '*/'}, keys: {default: [id]}}")
    config = lake.load()
    shutil.rmtree(lake.lake)
    lake.load(When.NOW)
    answers = _examined(config).output_for_node(SOURCES_OP)
    (found,) = [one for one in answers if one.question == FOUND]
    assert (found.verdict, found.words) == (DoctorVerdict.NO, f"{lake.lake} can't be read: No such file or directory.")


def test_an_unusable_landing_zone_is_reported_without_a_stack_trace(tmp_path: Path) -> None:
    (tmp_path / "landing").write_text("a file")
    result = _doctor(tmp_path, "orders: {source: ./orders, keys: [id]}")
    failed = [event.step_failure_data.user_failure_data for event in result.all_events if event.is_step_failure]
    assert failed
    assert all(told is not None and "it is a file, not a folder" in (told.description or "") for told in failed)
