"""`mirror-assets check` for some tables and some checks, and runs that fail for many tables or for none. No Spark."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from mirror_assets.cli.main import main
from mirror_assets.cli.run_job import failures
from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration import mirror_tables
from mirror_assets.orchestration.jobs import TABLES_OP
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL
from mirror_assets_tests.pipeline.paper import TABLE, Paper


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A table that is an hour late, which warns by default."""
    paper = Paper(tmp_path)
    paper.create(time.time() - 7200)
    paper.commit(1, time.time() - 3600)
    paper.cover(0)
    text = f"landing_zone: {{path: ./landing}}\ntables:\n  {TABLE}: {{source: ./lake, keys: [id]}}\n"
    text += "  shop.other: {source: ./lake, keys: [id], lag: {error_seconds: 60}}\n"
    file = tmp_path / "mirror.yaml"
    file.write_text(text)
    return file


def _lines(shown: str) -> list[tuple[str, str, bool, str]]:
    return sorted((line["asset"], line["check"], line["passed"], line["severity"]) for line in json.loads(shown))


def test_a_check_leaves_a_landing_zone_that_is_not_there_alone(file: Path) -> None:
    shutil.rmtree(file.parent / "landing")
    main(["check", "--config", str(file), "--only", "lag"])
    assert not (file.parent / "landing").exists()


def test_chosen_checks_of_a_table_have_results_and_a_failed_one_its_next_step(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["check", "--config", str(file), "--table", str(TABLE), "--only", "lag"]
    assert main([*chosen, "--only", "retention", "--json"]) == 0
    shown = capsys.readouterr().out
    assert _lines(shown) == [
        ("shop/orders_landing", "lag", False, "WARN"),
        ("shop/orders_source", "retention", True, "WARN"),
    ]
    steps = {line["check"]: line["next_step"] for line in json.loads(shown)}
    assert steps["lag"].startswith("see the checks not_held and not_failing")
    assert steps["retention"] == ""
    (file.parent / "lake").rename(file.parent / "gone")
    assert main(chosen) == 2
    shown = capsys.readouterr().out
    assert "ERROR" in shown
    assert " ".join(shown.replace("│", " ").split()).count("Next: ") == 1, "an error's text has it already"


def test_an_error_of_a_check_that_does_not_block_exits_with_1(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--config", str(file), "--only", "lag", "--json"]) == 1
    assert ("shop/other_landing", "lag", False, "ERROR") in _lines(capsys.readouterr().out)


def test_a_failed_blocking_check_is_reported_only_in_its_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--config", str(file), "--table", str(TABLE), "--only", "metadata_unchanged"]) == 1
    shown = capsys.readouterr()
    assert "_metadata.json is missing. Next: restore _metadata.json; to change keys, rebuild the table." in shown.out
    assert "error:" not in shown.err


@pytest.mark.parametrize("command", ["check", "status"])
def test_a_table_that_is_named_twice_is_shown_once(
    file: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    only = ["--only", "lag"] if command == "check" else []
    assert main([command, "--config", str(file), "--table", str(TABLE), "--table", str(TABLE), *only, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


@pytest.mark.parametrize("wrong", [["--only", "lags"], ["--table", "shop.none"]])
def test_a_name_that_is_not_there_exits_with_2(file: Path, wrong: list[str]) -> None:
    assert main(["check", "--config", str(file), *wrong]) == 2


@pytest.mark.parametrize("command", [["run"], ["run", "--follow"], ["rebuild", str(TABLE), "--yes"]], ids=" ".join)
def test_a_machine_on_which_spark_cannot_start_is_one_line_and_no_failure_of_a_table(
    file: Path, command: list[str]
) -> None:
    """In a process of its own, because Spark may have started in this one. Seen: `status` showed `failing`."""
    environment = {**os.environ, "SPARK_HOME": "/opt/spark-of-a-profile"}
    environment.pop("DAGSTER_HOME", None)
    landed = sorted(file.parent.glob("landing/**/*"))
    program = [sys.executable, "-c", "import sys; from mirror_assets.cli import main; sys.exit(main())", *command]
    ended = subprocess.run(
        [*program, "--config", str(file)], check=False, capture_output=True, text=True, env=environment
    )
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert (ended.returncode, len(errors)) == (2, 1), ended.stderr
    assert "SPARK_HOME=/opt/spark-of-a-profile has no Spark. Next: unset it" in errors[0]
    assert sorted(file.parent.glob("landing/**/*")) == landed


def test_a_run_of_dagster_fails_on_such_a_machine_before_it_touches_a_table(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.encode.session.spark_has_started", lambda: False)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master local[2]")
    landed = sorted(file.parent.glob("landing/**/*"))
    job = build_definitions(load_config(file)).resolve_job_def(MIRROR_ALL)
    (failed,) = [one for one in failures(job.execute_in_process(raise_on_error=False)) if one.step == TABLES_OP]
    assert (failed.error.family, failed.error.code) == ("setting", "session_unfit")
    assert "PYSPARK_SUBMIT_ARGS doesn't end with `pyspark-shell`" in failed.error.message
    assert sorted(file.parent.glob("landing/**/*")) == landed


_NAMES = [f"t{number:02d}" for number in range(24)]


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty-four tables whose logs are damaged, and no instance of Dagster."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    paper = Paper(tmp_path)
    paper.create()
    (log,) = (paper.lake / "_delta_log").glob("*.json")
    log.write_text(f'{log.read_text()}{{"add": [\n')
    text = "landing_zone: {path: ./landing}\ntables:\n"
    for name in _NAMES:
        shutil.copytree(paper.lake, tmp_path / name)
        text += f"  {name}: {{source: ./{name}, keys: [id]}}\n"
    file = tmp_path / "mirror.yaml"
    file.write_text(text)
    return file


def test_many_tables_that_fail_at_once_are_all_reported(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--config", str(damaged)]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert sorted(re.findall(r"/(t\d\d) can't be read", "\n".join(errors))) == _NAMES


def test_a_failure_that_can_not_be_recorded_ends_no_run(
    damaged: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> NoReturn:
        raise OSError("database table is locked")

    monkeypatch.setattr(mirror_tables.TableRuns, "_record_failure", locked)
    assert main(["run", "--config", str(damaged), "--json"]) == 2
    reports = json.loads(capsys.readouterr().out)
    assert [(report["table"], report["error"]["family"]) for report in reports] == [
        (name, "setting") for name in _NAMES
    ]


def test_a_run_without_reports_says_why(
    damaged: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise OSError("the disk is broken")

    monkeypatch.setattr("mirror_assets.orchestration.jobs.mirror_tables", broken)
    assert main(["run", "--config", str(damaged)]) == 1
    assert "the disk is broken" in capsys.readouterr().err
