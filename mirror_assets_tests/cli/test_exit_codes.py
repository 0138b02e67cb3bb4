"""One meaning of each exit code, and every error in `--json`, in all commands. No Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.cli.main import main
from mirror_assets.errors import ErrorCode
from mirror_assets_tests.pipeline.paper import TABLE, Paper

_NAME = str(TABLE)
_SETTINGS = (
    "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\nhistory: {path: ./history}\n"
    f"tables:\n  {_NAME}: {{source: ./lake, keys: [id], history: slices}}\n"
)
# Every command that reads a source.
_READERS = (
    *("plan", "status", "run", "run --dry-run", "check --only lag", "reconcile", "doctor --no-spark"),
    *("validate --connect", "history", "history --dry-run", f"repair {_NAME} --dry-run", f"repair {_NAME} --yes"),
    *(f"rebuild {_NAME} --dry-run", f"rebuild {_NAME} --yes", f"preview {_NAME}", f"feed {_NAME}"),
    *(f"direct-lake report {_NAME}", f"direct-lake vacuum-plan {_NAME}"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of which one version has landed, and another waits."""
    paper = Paper(tmp_path)
    paper.create(time.time() - 7200)
    paper.commit(1, time.time() - 3600)
    paper.cover(0)
    (tmp_path / "mirror.yaml").write_text(_SETTINGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    return tmp_path


def _remove(project: Path) -> None:
    (project / "lake").rename(project / "away")


def _damage(project: Path) -> None:
    next((project / "lake" / "_delta_log").glob("*1.json")).write_text("{nonsense")


def _clean_up(project: Path) -> None:
    next((project / "lake" / "_delta_log").glob("*0.json")).unlink()


_CAUSES = [
    pytest.param(_remove, 2, ErrorCode.SOURCE_NOT_DELTA, id="removed"),
    pytest.param(_damage, 1, ErrorCode.SOURCE_UNAVAILABLE, id="damaged"),
    pytest.param(_clean_up, 1, ErrorCode.LOG_GAP, id="cleaned up"),
]


@pytest.mark.parametrize("command", _READERS)
@pytest.mark.parametrize(("spoil", "code", "error"), _CAUSES)
def test_a_source_that_cannot_be_read_has_one_exit_code_and_is_in_the_json_of_every_command(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], None],
    code: int,
    error: ErrorCode,
    command: str,
) -> None:
    """Seen: exit code 2 from `plan`, 1 from `status`, and an empty array from `plan --json`."""
    spoil(project)
    assert main([*command.split(), "--json"]) == code
    (found,) = [line["error"] for line in json.loads(capsys.readouterr().out) if line.get("error")]
    assert (found["table"], found["code"]) == (_NAME, error.value)
    assert found["message"]
    assert found["next_step"]


_COMMANDS = (
    *("validate", "plan", "run", "run --follow", "status", "reconcile", "check", "doctor --no-spark", "replicate"),
    *("history", "discover", "alerts test", "fabric start", "fabric status", "download-jars ./jars"),
    *(f"{one} {_NAME}" for one in ("feed", "preview", "repair", "rebuild", "drop", "alerts unmute")),
    *(f"{one} {_NAME}" for one in ("alerts mute --for 1h", "direct-lake report", "direct-lake vacuum-plan")),
    "fabric create sales --workspace 11111111-2222-3333-4444-555555555555",
)


@pytest.mark.parametrize("command", _COMMANDS)
def test_all_mistakes_of_the_file_are_in_the_json_of_every_command(
    project: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (project / "mirror.yaml").write_text("landing_zone: {onelake: {credential: x}}\nmirror: {fabric: {apis: x}}\n")
    assert main([*command.split(), "--json"]) == 2
    found = [line["error"] for line in json.loads(capsys.readouterr().out)]
    assert all(one["code"] == "config_invalid" and one["message"] and one["next_step"] for one in found)
    # `fabric create` reads one section after the other.
    assert len(found) > 1 or command.startswith("fabric create")


def test_a_failed_table_beside_one_that_needs_a_setting_exits_with_1(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "  shop.gone: {source: ./gone, keys: [id]}\n"
    (project / "mirror.yaml").write_text(_SETTINGS + more)
    assert main(["status", "shop.gone", "--json"]) == 2
    _damage(project)
    assert main(["status", "--json"]) == main(["plan", "--json"]) == main(["doctor", "--no-spark", "--json"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize("command", [f"rebuild {_NAME}", f"drop {_NAME}"])
def test_a_question_without_a_terminal_is_an_error_in_the_json(
    project: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (project / "0.parquet").touch()
    assert main([*command.split(), "--json"]) == 2
    (line,) = json.loads(capsys.readouterr().out)
    assert line["table"] == _NAME
    assert "--yes" in line["error"]["next_step"]
    assert (project / "landing" / "shop.schema").exists()


def test_a_table_that_the_stand_in_has_stopped_is_an_error_in_the_json(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project / "landing" / TABLE.folder
    (folder / "_metadata.json").write_text('{"keyColumns": ["id"]}')
    (project / "landing" / TABLE.landing_file(1)).write_bytes(b"this is no Parquet")
    assert main(["replicate", "--json"]) == 1
    found = [line["error"] for line in json.loads(capsys.readouterr().out) if line.get("error")]
    assert [(error["table"], error["code"]) for error in found] == [(_NAME, "table_stopped")]
