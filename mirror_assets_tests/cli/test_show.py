"""`mirror-assets status`: the table that matters first is at the top, and says why. No Spark."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import NoReturn

import pytest
from rich.console import Console

from mirror_assets.cli.main import main
from mirror_assets.cli.output import as_table
from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.landing.names import TableName
from mirror_assets.landing.run_records import record_failure
from mirror_assets.pipeline.leases import BatchRunner
from mirror_assets.source.log import DeltaLog
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets_tests.pipeline.paper import FEED, SCHEMA, TABLE, Paper
from mirror_assets_tests.source.handmade import metadata_action
from mirror_assets_tests.worlds.onelake import Fault, LoopbackOneLake, Reply


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
    store, message = LocalStore(tmp_path / "landing"), "slice 1 was not published: key_presence"
    record_failure(store, TableName.parse("failing"), ErrorCode.CHECKS_FAILED, message, 0)
    file = tmp_path / "mirror.yaml"
    file.write_text(text)
    return file


def test_the_table_that_matters_first_is_at_the_top_and_says_why(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--config", str(file)]) == 0
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if line.startswith("│") and line.split("│")[1].strip()]
    assert [row.split("│")[1].strip() for row in rows] == ["failing", "late", "well"]
    assert "1 run of failing failed: slice 1 was" in rows[0]
    assert "version 1 has waited 3600 s" in rows[1]
    assert "; no run" in shown
    assert [row.split("│")[2].strip() for row in rows] == ["failing", "late", "up to date"]
    assert "\x1b" not in shown, "colours are for terminals"


def test_a_table_that_no_run_mirrors_waits(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{file.read_text()}defaults: {{lag: {{warn_seconds: 7200}}}}\n")

    def late() -> tuple[str, str, str]:
        assert main(["status", "--config", str(file), "--table", "late", "--json"]) == 0
        (line,) = json.loads(capsys.readouterr().out)
        return line["health"], line["urgency"], line["why"]

    advice = "no run mirrors it: switch the sensor `mirror` on, or start `mirror-assets run`"
    assert late() == ("waiting", "not", advice)
    runner = BatchRunner(LocalStore(file.parent / "landing"), "a mirror", 0, "run 1", "code")
    with runner.running():
        assert runner.reason_to_end() is None
        assert late() == ("catching up", "not", "")
    assert late()[0] == "waiting"


def test_json_has_the_health_in_the_files_order(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--config", str(file), "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)
    found = [(line["table"], line["health"], line["urgency"], line["landed_version"]) for line in lines]
    assert found == [("well", "up to date", "not", 1), ("failing", "failing", "now", 0), ("late", "late", "soon", 0)]


def test_an_error_that_concerns_all_tables_is_shown(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_mirror: LocalReplicator) -> NoReturn:
        raise StopError("the mirror can't be read.", "mend it.", code=ErrorCode.MIRROR_UNREADABLE)

    monkeypatch.setattr(LocalReplicator, "status", away)
    assert main(["status", "--config", str(file)]) == 1
    assert "the mirror can't be read. Next: mend it." in capsys.readouterr().err


def test_a_store_that_does_not_answer_is_not_waited_for_table_by_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def away(log: DeltaLog, *_: object) -> NoReturn:
        asked.append(log.uri)
        time.sleep(0.2)
        raise RetryError(f"{log.uri} gives no answer.", "wait.", code=ErrorCode.SOURCE_UNAVAILABLE)

    monkeypatch.setattr(DeltaLog, "state", away)
    text = "landing_zone: {path: ./landing}\ntables:\n"
    text += "".join(f"  t{n}: {{source: 's3://lake/t{n}', keys: [id]}}\n" for n in range(100))
    file = tmp_path / "mirror.yaml"
    file.write_text(text)
    assert main(["status", "--config", str(file), "--json"]) == 1
    shown = capsys.readouterr()
    lines = json.loads(shown.out)
    assert {(line["health"], line["urgency"]) for line in lines} == {("unreadable", "now")}
    assert [line["table"] for line in lines] == [f"t{n}" for n in range(100)]
    assert len(asked) <= 32
    assert shown.err.count("error: ") <= 33, "one cause is one line, whatever the number of tables"


def test_a_narrow_terminal_shows_what_counts(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.cli.output._WIDE", 80)
    main(["status", "--config", str(file)])
    titles = capsys.readouterr().out.splitlines()[2]
    assert [title.strip() for title in titles.strip("┃").split("┃")] == [
        "table", "health", "source", "landed", "lag", "why"
    ]  # fmt: skip


def test_rows_have_colours_on_a_terminal() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    terminal.print(as_table("Status", ("table",), [("orders",)], ["red"]))
    assert "\x1b[31m" in terminal.file.getvalue()  # type: ignore[attr-defined]


def _on_onelake(folder: Path, onelake: LoopbackOneLake, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A mirror.yaml with two tables for a new item of the server, and the URL of its landing zone."""
    for name, value in onelake.environment().items():
        monkeypatch.setenv(name, value)
    Paper(folder).create()
    item, file = onelake.new_item(), folder / "mirror.yaml"
    file.write_text(
        f'landing_zone: {{onelake: {{url: "{item.url}", credential: client_secret, ca_bundle: "{onelake.ca}"}}}}\n'
        f"tables:\n  {TABLE}: {{source: ./lake, keys: [id]}}\n  shop.other: {{source: ./lake, keys: [id]}}\n"
    )
    return file, item.url


def test_status_ends_after_one_request_while_the_capacity_is_paused(
    tmp_path: Path,
    onelake: LoopbackOneLake,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, _ = _on_onelake(tmp_path, onelake, monkeypatch)
    onelake.faults.add(Fault(Reply(403, "CapacityNotActive"), times=9_999))
    assert main(["status", "--config", str(file), "--json"]) == 1
    shown = capsys.readouterr()
    lines = json.loads(shown.out)
    assert [(line["table"], line["health"]) for line in lines] == [
        (str(TABLE), "unreadable"),
        ("shop.other", "unreadable"),
    ]
    assert all("capacity of the workspace is paused (403 CapacityNotActive)" in line["why"] for line in lines)
    assert shown.err.count("error: ") == 1
    assert "Next: resume the capacity" in shown.err
    assert len(onelake.log.storage) == 1


@pytest.mark.parametrize("code", ["PathNotFound", "ArtifactNotFound", "ItemNotFound"])
@pytest.mark.parametrize("command", [["status"], ["plan"], ["check", "--only", "file_continuity", "--only", "lag"]])
def test_a_deleted_mirrored_database_is_no_new_table(
    tmp_path: Path,
    onelake: LoopbackOneLake,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    code: str,
) -> None:
    file, url = _on_onelake(tmp_path, onelake, monkeypatch)
    arguments = [*command, "--config", str(file)]
    assert main(arguments) == 0, "a landing zone in which nothing has landed yet"
    capsys.readouterr()
    onelake.faults.add(Fault(Reply(404, code), times=9_999))
    assert main(arguments) == 2
    shown = capsys.readouterr()
    text = " ".join((shown.out.replace("│", " ") + shown.err).split())
    for part in ("mirrored database", url, "was deleted", "Next: restore it", "`mirror-assets run` loads all"):
        assert part in text
    assert "snapshot" not in text
    assert "catching up" not in text


_UNSET = """
landing_zone: {onelake: {url: "${ZONE}", credential: client_secret}}
mirror: {fabric: {}}
stores: {unused: {root: "s3://lake", region: "${REGION}"}}
alerts: {dagster_url: "${UI}", receivers: {team: {url_variable: TEAM}}}
tables:
"""
_GUID = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("zone", "named"),
    [("", "ZONE"), (f"https://onelake.dfs.fabric.microsoft.com/{_GUID}/{_GUID}/Files/LandingZone", "AZURE_TENANT_ID")],
)
def test_status_and_plan_show_the_sources_without_the_variables_of_the_landing_zone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, zone: str, named: str
) -> None:
    """Seen: `mirror.yaml has 3 mistakes`, one for a store that no table uses, and one for alerts."""
    for name in ("REGION", "UI", "ZONE", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    if zone:
        monkeypatch.setenv("ZONE", zone)
    paper = Paper(tmp_path)
    paper.create()
    paper.commit(1, 1.0)
    file = tmp_path / "mirror.yaml"
    file.write_text(f"{_UNSET}  {TABLE}: {{source: ./lake, keys: [id]}}\n")
    for command in ("plan", "status"):
        assert main([command, "--config", str(file), "--json"]) == 2
        shown = capsys.readouterr()
        (line,) = json.loads(shown.out)
        assert (line["source_version"], line["error"]["table"]) == (1, str(TABLE))
        assert named in line["error"]["message"]
        assert "REGION" not in shown.err + shown.out
    assert main(["plan", "--config", str(file)]) == 2
    assert "source at 1" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"lake", "mirror.yaml"}, "nothing is written"
    assert main(["run", "--config", str(file), "--table", str(TABLE)]) == 2
    assert "REGION" in capsys.readouterr().err, "what changes something needs the whole file"


@pytest.mark.parametrize("source", ["s3://lake/t", "{store: used, path: t}"])
def test_a_store_that_a_table_uses_needs_its_variables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.delenv("REGION", raising=False)
    file = tmp_path / "mirror.yaml"
    file.write_text(
        "landing_zone: {path: ./landing}\nstores: {used: {root: 's3://lake', region: '${REGION}'}}\n"
        f"tables: {{t: {{source: {source}, keys: [id]}}}}\n"
    )
    assert main(["plan", "--config", str(file)]) == 2
    assert "stores.used.region: the environment variable REGION is not set" in capsys.readouterr().err


def test_the_json_of_plan_has_the_break_that_stops_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paper = Paper(tmp_path)
    paper.create()
    paper.commit(1, 1.0)
    paper.cover(1)
    paper.commit(2, 2.0, metadata_action(SCHEMA, "table-2", **FEED), operation="CREATE OR REPLACE TABLE")
    file = tmp_path / "mirror.yaml"
    file.write_text(f"landing_zone: {{path: ./landing}}\ntables:\n  {TABLE}: {{source: ./lake, keys: [id]}}\n")
    assert main(["plan", "--config", str(file), "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["table"], line["stop"]["code"]) == (str(TABLE), "source_break")
    assert line["stop"]["next_step"]
