"""`mirror-assets status`: the table that matters first is at the top, and says why. No Spark."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest
from rich.console import Console

from mirror_assets.cli.main import main
from mirror_assets.cli.output import as_table
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.failures import Failure, record_failure
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import drive
from mirror_assets.storage import LocalStore
from mirror_assets_tests.pipeline.paper import TABLE, Paper


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Three tables: one is up to date, one's runs fail, and one waits for longer than its limit warns of."""
    made, text = time.time() - 3600, "landing_zone: {path: ./landing}\ntables:\n"
    for name, covered in (("well", 1), ("failing", 0), ("late", 0)):
        paper = Paper(tmp_path / name)
        paper.create(made - 3600)
        paper.commit(1, made)
        paper.cover(covered)
        (tmp_path / "landing").mkdir(exist_ok=True)
        (paper.zone / TABLE.folder).rename(tmp_path / "landing" / name)
        text += f"  {name}: {{source: ./{name}/lake, keys: [id]}}\n"
    failure = Failure(ErrorCode.CHECKS_FAILED, "slice 1 was not published: key_presence")
    drive(record_failure(TableName.parse("failing"), failure, 0), LocalStore(tmp_path / "landing"))
    file = tmp_path / "mirror.yaml"
    file.write_text(text)
    return file


def test_the_table_that_matters_first_is_at_the_top_and_says_why(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--config", str(file)]) == 0
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["failing", "late", "well"]
    assert "1 run of failing failed: slice 1 was" in rows[0]
    assert "version 1 has waited 3600 s" in rows[1]
    assert [row.split("│")[2].strip() for row in rows] == ["failing", "late", "up to date"]
    assert "\x1b" not in shown, "colours are for terminals"


def test_json_has_the_health_in_the_files_order(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--config", str(file), "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)
    found = [(line["table"], line["health"], line["urgency"], line["covered"]) for line in lines]
    assert found == [("well", "up to date", "not", 1), ("failing", "failing", "now", 0), ("late", "late", "soon", 0)]


def test_watch_looks_again_until_it_is_interrupted(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("mirror_assets.cli.status.time.sleep", sleep)
    assert main(["status", "--config", str(file), "--watch", "--every", "2s"]) == 0
    assert looks == [2.0, 2.0]
    assert capsys.readouterr().out.count("Ctrl-C ends") == 2


def test_watch_is_for_people(file: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["status", "--config", str(file), "--watch", "--json"])
    assert ended.value.code == 2


def test_rows_have_colours_on_a_terminal() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    terminal.print(as_table("Status", ("table",), [("orders",)], ["red"]))
    assert "\x1b[31m" in terminal.file.getvalue()  # type: ignore[attr-defined]
