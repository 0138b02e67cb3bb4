"""`mirror-assets doctor` on a folder of this machine, and on OneLake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.main import main
from mirror_assets_tests.onelake import Fault, LoopbackOneLake, Moment, Operation, Reply

TABLES = "tables: {planes: {source: ./lake, keys: [id]}}\n"


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


def test_a_local_disk_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mirror.yaml").write_text(f"landing_zone: {{path: ./landing}}\n{TABLES}")
    assert main(["doctor", "--config", str(tmp_path / "mirror.yaml"), "--json"]) == Exit.FINE
    assert all(one["passed"] for one in json.loads(capsys.readouterr().out))


def test_onelake_passes_and_its_answers_are_told(
    onelake: LoopbackOneLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = on_onelake(onelake, tmp_path, monkeypatch)
    assert main(["doctor", "--config", str(file), "--json"]) == Exit.FINE
    found = {one["question"]: one["saw"] for one in json.loads(capsys.readouterr().out)}
    assert "PUT 409" in found["is a file written only where there is none?"]
    assert "which x-ms-version does it answer with?" in found


def test_a_refusal_is_a_failed_question_and_exit_1(
    onelake: LoopbackOneLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = on_onelake(onelake, tmp_path, monkeypatch)
    onelake.faults.add(Fault(Reply(400, "UnsupportedHeader", moment=Moment.BEFORE), on=Operation.RENAME, times=100))
    assert main(["doctor", "--config", str(file)]) == Exit.FAILED
    told = capsys.readouterr().out
    assert "FAIL" in told
    assert "400 UnsupportedHeader" in told
