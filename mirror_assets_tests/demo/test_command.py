"""`mirror-assets demo`, the first command that anybody runs, on the lake that the room's tests look at."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.main import main
from mirror_assets.demo.lake import Report
from mirror_assets_tests.demo.conftest import TABLES, Demo

# The lake is made once, in the process that runs all of these.
pytestmark = [pytest.mark.long(30), pytest.mark.xdist_group("demo")]


def test_every_table_is_mirrored_and_equal_to_its_source(
    demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def begin(_: SparkSession, root: Path, __: Report, ___: range) -> None:
        shutil.copytree(demo.root / "lake", root / "lake")

    monkeypatch.setattr("mirror_assets.cli.demo.begin_lake", begin)
    monkeypatch.setattr("mirror_assets.cli.demo.continue_lake", lambda *_: None)
    assert main(["demo", "--folder", str(tmp_path), "--json"]) == Exit.FINE
    shown = capsys.readouterr()
    results = {line["table"]: line["result"] for line in json.loads(shown.out)}
    assert results == {f"nycflights.{table}": "equal to source" for table in TABLES}
    warnings = [line for line in shown.err.splitlines() if line.startswith(("warning", "error"))]
    assert not warnings, "nobody reads these sources through Direct Lake"
