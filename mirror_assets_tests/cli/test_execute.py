"""`mirror-assets run` for tables that all fail: each is reported once, whatever fails beside it. No Spark."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from mirror_assets.cli.main import main
from mirror_assets.orchestration import mirror_tables
from mirror_assets_tests.pipeline.paper import Paper

_NAMES = [f"t{number:02d}" for number in range(24)]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def test_many_tables_that_fail_at_once_are_all_reported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--config", str(file)]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert sorted(re.findall(r"/(t\d\d) can't be read", "\n".join(errors))) == _NAMES


def test_a_failure_that_can_not_be_recorded_ends_no_run(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> NoReturn:
        raise OSError("database table is locked")

    monkeypatch.setattr(mirror_tables.TableRuns, "_record_failure", locked)
    assert main(["run", "--config", str(file), "--json"]) == 2
    reports = json.loads(capsys.readouterr().out)
    assert [(report["table"], report["family"]) for report in reports] == [(name, "setting") for name in _NAMES]


def test_a_run_without_reports_says_why(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise OSError("the disk is broken")

    monkeypatch.setattr("mirror_assets.orchestration.jobs.mirror_tables", broken)
    assert main(["run", "--config", str(file)]) == 1
    assert "the disk is broken" in capsys.readouterr().err
