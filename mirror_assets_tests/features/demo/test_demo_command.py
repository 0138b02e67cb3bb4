"""`mirror-assets demo`, the first command that people run, on the lake of the other tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from mirror_assets.cli.main import main
from mirror_assets.cli.options import Exit
from mirror_assets.features.demo.claim import write_config
from mirror_assets.features.demo.commands import demo_run as command
from mirror_assets.features.demo.with_spark.demo_lake import Report
from mirror_assets_tests.features.demo.conftest import Demo

# The lake is made once, in the process that runs all of these.
pytestmark = [pytest.mark.long(30), pytest.mark.xdist_group("demo")]


def test_every_table_is_mirrored_and_equal_to_its_source(
    demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def begin(_: SparkSession, root: Path, __: Report, ___: range) -> None:
        shutil.copytree(demo.root / "lake", root / "lake")

    def write(root: Path, others: Path | None) -> Path:
        """Write the settings of the tables that the lake has."""
        path = write_config(root, others)
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
        settings["tables"] = {name: settings["tables"][name] for name in names}
        path.write_text(yaml.safe_dump(settings), encoding="utf-8")
        return path

    names = [f"nycflights.{table}" for table in demo.tables]
    monkeypatch.setattr("mirror_assets.features.demo.commands.demo_run.write_config", write)
    monkeypatch.setattr("mirror_assets.features.demo.commands.demo_run.begin_lake", begin)
    monkeypatch.setattr("mirror_assets.features.demo.commands.demo_run.continue_lake", lambda *_: None)
    assert main(["demo", "--folder", str(tmp_path), "--json"]) == Exit.FINE
    shown = capsys.readouterr()
    results = {line["table"]: line["result"] for line in json.loads(shown.out)}
    assert results == dict.fromkeys(names, "equal to source")
    warnings = [line for line in shown.err.splitlines() if line.startswith(("warning", "error"))]
    assert not warnings, "nobody reads these sources through Direct Lake"


def test_the_title_has_the_seconds_of_each_part() -> None:
    title = command._title("zone", [100.0, 120.0, 130.0, 143.4, 145.4, 152.0])
    assert title == "Into zone: lake built in 33 s, mirrored in 12 s, compared in 7 s"
