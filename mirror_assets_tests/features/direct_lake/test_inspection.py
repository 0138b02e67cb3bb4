"""`mirror-assets direct-lake` on real tables, by their paths and by mirror.yaml, with its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from stat import S_IXUSR

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import mirror_assets
from mirror_assets.cli.main import main
from mirror_assets.cli.options import Exit
from mirror_assets.landing.names import TableName
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.source.handmade import commit_file
from mirror_assets_tests.worlds.onelake import LoopbackOneLake

_FEED = {"delta.enableChangeDataFeed": "true"}
_DAY = 86_400


def _orders(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "amount": [i / 7 for i in range(first, last)]})


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table whose version 1 was overwritten ten days ago by version 2, and the empty folder to be in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "orders"
    write_deltalake(path, _orders(0, 20), configuration=_FEED)
    write_deltalake(path, _orders(20, 30), mode="append")
    write_deltalake(path, _orders(0, 5), mode="overwrite")
    _age(path, 10)
    write_deltalake(path, _orders(5, 9), mode="append")
    return path


def _age(path: Path, days: float) -> None:
    """Make files, commits and removals this many days old."""
    then = time.time() - days * _DAY
    for commit in (path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] = round(then * 1000)
        commit.write_text("\n".join(map(json.dumps, actions)))
    for file in path.rglob("*"):
        os.utime(file, (then, then))


def _json(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    (record,) = json.loads(capsys.readouterr().out)
    assert isinstance(record, dict)
    return record


def test_a_report_has_all_parts(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_deltalake(lake, _orders(0, 1).append_column("[bold]", [["b"]]), mode="append", schema_mode="merge")
    assert main(["direct-lake", "report", "./orders"]) == Exit.FINE
    shown = capsys.readouterr().out
    for text in (
        "[bold]",
        "./orders",
        "Guardrails of",
        "The table certainly fits into F2 and larger capacities.",
        "bytes of a file",
        "Columns",
        "VACUUM of",
        "may hold NaN",
        "Maintenance",
        "-- no optimize: not worth it",
    ):
        assert text in shown
    assert list((lake.parent / "caches" / "mirror_assets" / "footers").rglob("*.parquet"))


def test_a_report_as_json(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["direct-lake", "report", "./orders", "--json", "--sku", "f64"]) == Exit.FINE
    record = _json(capsys)
    assert (record["name"], record["uri"], record["version"]) == ("./orders", str(lake), 3)
    layout, guardrails = record["layout"], record["guardrails"]
    assert isinstance(layout, dict)
    assert isinstance(guardrails, dict)
    assert layout["rows"] == guardrails["table"]["size"]["rows"] == 9
    assert list(layout["writers"].values()) == [2]
    assert [fit["sku"] for fit in guardrails["table"]["fits"]] == ["F64"]
    assert guardrails["mirror"]["size"]["files"] == 1
    steps = record["maintenance"]
    assert isinstance(steps, list)
    assert (steps[0]["kind"], steps[0]["statement"]) == ("optimize", "")


def test_maintenance_for_fabric(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for first in range(10, 20):
        write_deltalake(lake, _orders(first, first + 1), mode="append")
    assert main(["direct-lake", "report", str(lake), "--fabric", "sales.orders", "--frame", "1"]) == Exit.FINE
    shown = capsys.readouterr().out
    assert "OPTIMIZE `sales`.`orders` VORDER;" in shown
    assert "Frames, refreshed now" in shown


@pytest.mark.parametrize(
    ("options", "code", "shown"),
    [
        ([], Exit.FINE, "2 files"),
        (["--frame", "3"], Exit.FINE, "always: VACUUM deletes no needed file"),
        (["--frame", "0", "--frame", "3"], Exit.FAILED, "frame v0"),
        (["--frame", "3", "--retain-hours", "500"], Exit.FINE, r"effective retention\W+168\.0 hours"),
        (["--frame", "3", "--retain-hours", "0"], Exit.FINE, r"effective retention\W+0\.0 hours"),
    ],
)
def test_vacuum_is_safe_unless_a_frame_needs_an_old_version(
    lake: Path, options: list[str], code: Exit, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["direct-lake", "vacuum-plan", "./orders/", *options]) == code
    found = capsys.readouterr().out
    assert re.search(shown, found)
    assert (f"ALTER TABLE delta.`{lake}` SET TBLPROPERTIES" in found) is (code is Exit.FAILED)


def test_vacuum_is_not_safe_without_the_log_of_a_frame(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DeltaTable(lake).create_checkpoint()
    commit_file(lake, 1).unlink()
    assert main(["direct-lake", "vacuum-plan", "./orders", "--frame", "1"]) == Exit.FAILED
    assert "The log no longer has the files of frame v1" in (shown := capsys.readouterr().out)
    assert "unknown" in shown


def test_a_vacuum_plan_as_json(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["direct-lake", "vacuum-plan", "./orders", "--frame", "1", "--json"]) == Exit.FAILED
    record = _json(capsys)
    gone = {path.name: path.stat().st_size for path in lake.glob("*.parquet")}
    for live in DeltaTable(lake).file_uris():
        gone.pop(Path(live).name)
    plan = record["plan"]
    assert isinstance(plan, dict)
    assert (record["is_safe"], record["deleted_bytes"]) == (False, sum(gone.values()))
    assert {file["path"] for file in plan["threatened"]} == set(gone)
    assert plan["threatened"][0]["needed_by"] == [{"reader": "frame", "version": 1}]


def test_frames_of_an_export(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = tmp_path / "tables.csv"
    export.write_text("[ID],[TableName],[CurrentVersion]\n1,orders,1\n2,other,3\n")
    assert main(["direct-lake", "vacuum-plan", f"{lake}/", "--export", str(export)]) == Exit.FAILED
    assert "model table orders v1" in capsys.readouterr().out


def test_the_least_safe_retention_is_never_rounded_down(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DeltaTable(lake).delete()
    assert main(["direct-lake", "vacuum-plan", "./orders", "--frame", "3"]) == Exit.FINE
    line = next(text for text in capsys.readouterr().out.splitlines() if "least safe retention" in text)
    assert "0.1 hours" in line


@pytest.mark.usefixtures("lake")
def test_a_folder_that_is_taken_for_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["direct-lake", "report", "orders"]) == Exit.BAD_SETTING
    assert "for the folder, write ./orders" in capsys.readouterr().err
    _mirror_yaml(tmp_path)
    assert main(["direct-lake", "report", "orders"]) == Exit.BAD_SETTING
    assert "for the folder, write ./orders" in capsys.readouterr().err
    assert main(["direct-lake", "report", "order"]) == Exit.BAD_SETTING
    assert "write ./" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "./nothing"], "is not a Delta table"),
        (["report", "./orders@v2"], "leave out `@v2` of the address"),
        (["report", "./orders@20240428091500000"], "leave out `@20240428091500000` of the address"),
        (["vacuum-plan", "./orders", "--frame", "77"], "its newest version is 3"),
        (["vacuum-plan", "./orders", "--frame", "yesterday"], "expected a version, or a time"),
        (["vacuum-plan", "./orders", "--export", "missing.csv"], "it can't be read"),
        (["vacuum-plan", "./orders", "--retain-hours", "nan"], "expected a number of hours"),
        (["report", "./orders", "--sku", "F65"], "F65 is not a capacity; expected one of F2"),
        (["report", "orders", "--config", "missing.yaml"], "missing.yaml"),
    ],
)
@pytest.mark.usefixtures("lake")
def test_a_mistake_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(["direct-lake", *arguments])
    except SystemExit as refused:  # by click
        code = refused.code
    assert code == Exit.BAD_SETTING
    assert message in capsys.readouterr().err


def test_a_guardrail_that_is_exceeded(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for commit in (lake / "_delta_log").glob("*3.json"):
        _repeat_file(commit, 1_001)
    requested = ["direct-lake", "report", "./orders"]
    assert main([*requested, "--no-cache"]) == Exit.FINE
    assert "certainly fits into F64" in capsys.readouterr().out
    assert main([*requested, "--sku", "F2"]) == Exit.FAILED
    shown = capsys.readouterr().out
    assert "framing fails" in shown
    assert ["table, as a model" in shown, "mirror, predicted, as a model" in shown] == [True, True]
    assert main([*requested, "--sku", "F2", "--mode", "sql"]) == Exit.FAILED
    assert "fall back to DirectQuery" in capsys.readouterr().out
    assert main([*requested, "--sku", "P1"]) == Exit.FINE
    capsys.readouterr()
    assert main([*requested, "--sku", "F32", "--json", "--mode", "sql-only"]) == Exit.FAILED
    guardrails = _json(capsys)["guardrails"]
    assert isinstance(guardrails, dict)
    assert guardrails["mode"] == "Direct Lake on SQL, DirectLakeOnly"
    table = guardrails["table"]
    assert (table["smallest"], table["fits"][0]["verdict"]) == ("F64", "over")


def _repeat_file(commit: Path, times: int) -> None:
    """Add this many copies of the file that the commit adds."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    (add,) = (action for action in actions if "add" in action)
    table = commit.parents[1]
    for number in range(times):
        name = f"copy-{number}.parquet"
        os.link(table / add["add"]["path"], table / name)
        actions.append({"add": add["add"] | {"path": name}})
    commit.write_text("\n".join(map(json.dumps, actions)))


def _mirror_yaml(folder: Path, settings: str = "") -> None:
    (folder / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\ntables:\n  shop.orders:\n    source: ./orders\n    keys: [id]\n" + settings
    )


def test_the_mirrors_covered_version_is_read_from_its_manifest(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _mirror_yaml(tmp_path)
    requested = ["direct-lake", "vacuum-plan", "shop.orders"]
    assert main(requested) == Exit.FINE
    cover(LocalStore(tmp_path / "landing"), TableName("shop", "orders"), 1)
    assert main(requested) == Exit.FAILED
    shown = capsys.readouterr().out
    assert "mirror v2" in shown
    assert "the mirror can continue until" in shown
    assert main(["direct-lake", "report", "shop.orders", "--json"]) == Exit.FINE
    report = _json(capsys)
    assert (report["name"], report["uri"]) == ("shop.orders", str(lake))
    vacuum = report["vacuum"]
    assert isinstance(vacuum, dict)
    assert not vacuum["is_safe"]


@pytest.mark.usefixtures("lake")
def test_settings_of_the_table_are_defaults_of_the_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _mirror_yaml(tmp_path, "    direct_lake: {sku: F64, mode: sql_only, frames: [0]}\n")
    assert main(["direct-lake", "report", "shop.orders"]) == Exit.FINE
    assert "Guardrails of F64/FT1/P1, Direct Lake on SQL, DirectLakeOnly" in capsys.readouterr().out
    assert main(["direct-lake", "report", "shop.orders", "--sku", "F2", "--mode", "onelake"]) == Exit.FINE
    assert "Guardrails of F2, Direct Lake on OneLake" in capsys.readouterr().out
    assert main(["direct-lake", "vacuum-plan", "shop.orders"]) == Exit.FAILED


_COMMAND = "import sys; from mirror_assets.cli.main import main; code = main(); "
_HERE = {"PYTHONPATH": str(Path(mirror_assets.__file__).parents[1])}


@pytest.mark.usefixtures("lake")
def test_a_closed_pipe_gives_no_traceback() -> None:
    command = [sys.executable, "-c", f"{_COMMAND}sys.exit(code)", "direct-lake", "report", "./orders", "--json"]
    with subprocess.Popen(
        command, env=os.environ | _HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()
        assert done.stderr.read() == ""
    assert done.returncode == Exit.FAILED


@pytest.mark.usefixtures("lake")
def test_neither_dagster_nor_a_jvm_is_started() -> None:
    loaded = "assert 'dagster' not in sys.modules and 'py4j.java_gateway' not in sys.modules; sys.exit(code)"
    done = _run(os.environ, "report", "./orders", then=loaded)
    assert done.returncode == 0, done.stderr


_AZ = """\
#!/bin/sh
cat <<END
{
  "accessToken": "%s",
  "expiresOn": "2096-10-02 07:06:40.000000",
  "expires_on": 4000000000,
  "subscription": "a subscription",
  "tenant": "a tenant",
  "tokenType": "Bearer"
}
END
"""


@pytest.fixture
def table(onelake: LoopbackOneLake, tmp_path: Path) -> str:
    """The URI of a table of two commits, the second an overwrite."""
    local, item = tmp_path / "orders", onelake.new_item()
    write_deltalake(local, pa.table({"id": range(20)}))
    write_deltalake(local, pa.table({"id": range(5)}), mode="overwrite")
    for file in local.rglob("*.*"):
        item.write(f"orders/{file.relative_to(local)}", file.read_bytes())
    return f"abfss://{item.workspace}@onelake.dfs.fabric.microsoft.com/{item.guid}/Files/LandingZone/orders"


def _run(
    variables: Mapping[str, str], *arguments: str, then: str = "sys.exit(code)"
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own with these environment variables."""
    command = [sys.executable, "-c", _COMMAND + then, "direct-lake", *arguments]
    return subprocess.run(command, env={**variables, **_HERE}, capture_output=True, text=True, check=False, timeout=60)


def _signed_in(onelake: LoopbackOneLake, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with these variables of Azure's alone, and the server in OneLake's place."""
    here = {name: text for name, text in os.environ.items() if not name.startswith("AZURE_")}
    return here | {"SSL_CERT_FILE": str(onelake.ca), "AZURE_STORAGE_ENDPOINT": onelake.url, **variables}


def test_a_service_principal_reads_a_table_in_onelake(onelake: LoopbackOneLake, table: str, tmp_path: Path) -> None:
    signed_in = _signed_in(onelake, onelake.environment())
    done = _run(signed_in, "report", table, "--json", "--cache", str(tmp_path / "cache"))
    assert done.returncode == Exit.FINE, done.stderr
    (report,) = json.loads(done.stdout)
    assert (report["uri"], report["version"], report["layout"]["rows"]) == (table, 1, 5)
    done = _run(signed_in, "vacuum-plan", table, "--frame", "0", "--retain-hours", "0")
    assert (done.returncode, "frame v0" in done.stdout) == (Exit.FAILED, True), done.stderr


def test_a_token_or_the_azure_cli_signs_in_too(onelake: LoopbackOneLake, table: str, tmp_path: Path) -> None:
    token = onelake.credential().get_token("https://storage.azure.com/.default").token
    az = tmp_path / "bin" / "az"
    az.parent.mkdir()
    az.write_text(_AZ % token)
    az.chmod(az.stat().st_mode | S_IXUSR)
    by_cli = {"PATH": f"{az.parent}:{os.environ['PATH']}"}
    for variables in ({"AZURE_STORAGE_TOKEN": token}, by_cli):
        done = _run(_signed_in(onelake, variables), "report", table, "--no-cache")
        assert done.returncode == Exit.FINE, done.stderr


def test_a_wrong_secret_is_a_setting(onelake: LoopbackOneLake, table: str) -> None:
    done = _run(_signed_in(onelake, onelake.environment() | {"AZURE_CLIENT_SECRET": "wrong"}), "report", table)
    assert done.returncode == Exit.BAD_SETTING, done.stderr
    root = table.partition("/Files")[0].rpartition("/")[0]
    assert f"{root} could not be reached as this identity" in done.stderr
    assert "set AZURE_CLIENT_SECRET to the value of the client secret" in done.stderr
    assert "wrong" not in done.stderr
