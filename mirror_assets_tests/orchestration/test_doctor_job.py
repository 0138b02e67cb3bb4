"""The job `doctor`: the same answers, in Dagster's log; it fails when one is no, and needs no JVM without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.discovered import When
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.encode import session
from mirror_assets.orchestration.doctor_job import DOCTOR, SOURCES_OP, DoctorConfig
from mirror_assets.pipeline.doctor.answers import DoctorVerdict
from mirror_assets.pipeline.doctor.mirror_questions import FOUND
from mirror_assets_tests.pipeline.doctor.lake import write_table
from mirror_assets_tests.worlds.disk_lake import DiskLake


@pytest.fixture(autouse=True)
def _no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr(session, "open_session", refuse)


def _run(folder: Path, tables: str) -> dg.ExecuteInProcessResult:
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
    assert _run(tmp_path, "orders: {source: ./orders, keys: [id]}").success
    assert not [path for path in (tmp_path / "landing").rglob("*") if path.is_file()]


def test_an_answer_of_no_fails_the_run_with_the_next_step(tmp_path: Path) -> None:
    write_table(tmp_path / "orders")
    result = _run(tmp_path, "orders: {source: ./orders, keys: [id]}, none: {source: ./none, keys: [id]}")
    assert not result.success
    failed = next(event for event in result.all_events if event.is_step_failure)
    told = failed.step_failure_data.user_failure_data
    assert told is not None
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
    result = _run(tmp_path, "orders: {source: ./orders, keys: [id]}")
    failed = [event.step_failure_data.user_failure_data for event in result.all_events if event.is_step_failure]
    assert failed
    assert all(told is not None and "it is a file, not a folder" in (told.description or "") for told in failed)
