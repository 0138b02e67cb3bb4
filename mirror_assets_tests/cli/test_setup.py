"""`mirror-assets doctor`: landing zones on a folder of this machine and on OneLake, and sources."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.main import main
from mirror_assets.pipeline.doctor_questions import FOUND
from mirror_assets_tests.pipeline.doctor_lake import write_table
from mirror_assets_tests.worlds.disk_lake import DiskLake
from mirror_assets_tests.worlds.onelake import Fault, LoopbackOneLake, Moment, Operation, Reply

TABLES = "tables: {planes: {source: ./lake, keys: [id]}}\n"
_ZONE = ["--no-spark", "--json"]


def on_onelake(server: LoopbackOneLake, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror.yaml for a new item of the server, and the environment of its credential."""
    item, principal = server.new_item(), server.principal
    monkeypatch.setenv("AZURE_TENANT_ID", principal.tenant)
    monkeypatch.setenv("AZURE_CLIENT_ID", principal.client)
    monkeypatch.setenv("AZURE_CLIENT_SECRET", principal.secret)
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", server.url)
    place = f'{{url: "{item.url}", credential: client_secret, ca_bundle: "{server.ca}"}}'
    file = folder / "mirror.yaml"
    file.write_text(f"landing_zone: {{onelake: {place}}}\n{TABLES}")
    return file


def _answers(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    told: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return told


def test_a_local_disk_and_a_sound_source_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path / "lake")
    (tmp_path / "mirror.yaml").write_text(f"landing_zone: {{path: ./landing}}\n{TABLES}")
    assert main(["doctor", "--config", str(tmp_path / "mirror.yaml"), *_ZONE]) == Exit.FINE
    told = _answers(capsys)
    assert {one["subject"] for one in told} == {str(tmp_path / "landing"), "planes"}
    assert {one["verdict"] for one in told} == {"ok", "not asked"}


@pytest.mark.usefixtures("known_locations")
def test_a_catalog_of_spark_is_not_asked_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\ncatalogs: {hive: {type: spark}}\n"
        "tables: {planes: {source: {catalog: hive, table: air.planes}, keys: [id]}}\n"
    )
    assert main(["doctor", "--config", str(tmp_path / "mirror.yaml"), *_ZONE]) == Exit.FAILED
    (wrong,) = (one for one in _answers(capsys) if one["verdict"] == "no")
    assert "only Spark can ask it" in wrong["words"]


def test_a_source_that_is_not_there_fails_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "lake")
    more = "tables: {planes: {source: ./lake, keys: [id]}, none: {source: ./none, keys: [id]}}\n"
    (tmp_path / "mirror.yaml").write_text(f"landing_zone: {{path: ./landing}}\n{more}")
    command = ["doctor", "--config", str(tmp_path / "mirror.yaml"), *_ZONE]
    assert main(command) == Exit.FAILED
    (wrong,) = (one for one in _answers(capsys) if one["verdict"] == "no")
    assert wrong["subject"] == "none"
    assert "write the table first" in wrong["next_step"]
    assert main([*command, "--table", "planes"]) == Exit.FINE


def test_a_place_whose_tables_vanished_fails_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lake = DiskLake(tmp_path)
    lake.add("orders")
    lake.configure("{from: {store: lake, path: '*/'}, keys: {default: [id]}}")
    command = ["--config", str(tmp_path / "mirror.yaml")]
    assert main(["doctor", *command, "--no-spark"]) == Exit.FINE
    shutil.rmtree(lake.lake / "orders")
    for _ in range(2):
        assert main(["discover", *command]) in (Exit.FINE, Exit.FAILED)
    capsys.readouterr()
    assert main(["doctor", *command, *_ZONE]) == Exit.FAILED
    (place,) = (one for one in _answers(capsys) if one["question"] == FOUND)
    assert "1 of 1 tables are no longer listed" in place["words"]
    assert "mirror-assets discover --accept" in place["next_step"]


def test_without_spark_none_is_loaded(tmp_path: Path) -> None:
    write_table(tmp_path / "lake")
    (tmp_path / "mirror.yaml").write_text(f"landing_zone: {{path: ./landing}}\n{TABLES}")
    script = (
        "import sys; from mirror_assets.cli import main; "
        "code = main(['doctor', '--no-spark', '--config', sys.argv[1]]); "
        "sys.exit(code or ('pyspark' in sys.modules) * 3 or ('dagster' in sys.modules) * 4)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "mirror.yaml")], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_onelake_passes_and_its_answers_are_shown(
    onelake: LoopbackOneLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "lake")
    file = on_onelake(onelake, tmp_path, monkeypatch)
    assert main(["doctor", "--config", str(file), *_ZONE]) == Exit.FINE
    found = {one["question"]: one["words"] for one in _answers(capsys)}
    assert "PUT 409" in found["is a file written only where there is none?"]
    assert "which x-ms-version does it answer with?" in found


def test_a_refusal_is_a_failed_question_and_exit_1(
    onelake: LoopbackOneLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "lake")
    file = on_onelake(onelake, tmp_path, monkeypatch)
    onelake.faults.add(Fault(Reply(400, "UnsupportedHeader", moment=Moment.BEFORE), on=Operation.RENAME, times=100))
    assert main(["doctor", "--config", str(file), "--no-spark"]) == Exit.FAILED
    told = capsys.readouterr().out
    assert "FAIL" in told
    assert "400 UnsupportedHeader" in told
