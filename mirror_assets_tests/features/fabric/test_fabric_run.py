"""`mirror-assets fabric`, against the loopback Fabric and OneLake, as the principal of the environment."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.cli import main
from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.features.fabric.database import Definition, TargetProperties
from mirror_assets.landing.format import Column
from mirror_assets_tests.cli import test_help
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.worlds.fabric.databases import OPEN_MIRROR, LoopbackDatabase, definition, reported_table
from mirror_assets_tests.worlds.fabric.interface import Answer
from mirror_assets_tests.worlds.fabric.loopback import Fault, LoopbackFabric


def printed_line(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    (line,) = json.loads(capsys.readouterr().out)
    assert isinstance(line, dict)
    return line


def write_before_create(folder: Path, fabric: str) -> None:
    """Write a mirror.yaml whose landing zone has an identity, and no URL yet."""
    zone = "{url: '${UNKNOWN_YET}', credential: client_secret, ca_bundle: ca.pem}"
    text = f"landing_zone: {{onelake: {zone}}}\nmirror: {{fabric: {fabric}}}\n"
    (folder / "mirror.yaml").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("database")
def test_create_needs_no_landing_zone(
    fabric: LoopbackFabric, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_before_create(tmp_path, f"{{endpoint: '{fabric.url}'}}")
    create = ["fabric", "create", "new one", "--workspace", fabric.interface.workspace]
    assert main([*create, "--json"]) == 0
    line = printed_line(capsys)
    made = fabric.interface.databases[-1]
    assert line == {
        "name": "new one",
        "workspace": fabric.interface.workspace,
        "item": made.id,
        "was_there": False,
    }
    assert main(create) == 0
    shown = capsys.readouterr()
    assert "was there already" in shown.out
    assert f"/{fabric.interface.workspace}/{made.id}/Files/LandingZone," in shown.err


@pytest.mark.usefixtures("database")
def test_create_sets_the_properties_of_the_mirrored_tables(
    fabric: LoopbackFabric, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_before_create(tmp_path, f"{{endpoint: '{fabric.url}', default_schema: bronze}}")
    create = ["fabric", "create", "new one", "--workspace", fabric.interface.workspace, "--retention-days"]
    assert main([*create, "1", "--change-data-feed"]) == 0
    assert "warning" not in capsys.readouterr().err
    made = Definition.model_validate({"definition": fabric.interface.databases[-1].definition})
    wanted = TargetProperties(defaultSchema="bronze", retentionInDays=1, enableDeltaChangeDataFeed=True)
    assert made.mirroring is not None
    assert made.mirroring.target == wanted
    assert main([*create, "7"]) == 0
    assert (
        "warning: retentionInDays is 1, not 7; change it with `mirror-assets fabric update`" in capsys.readouterr().err
    )


def test_update_changes_what_it_is_given_and_nothing_else(
    database: LoopbackDatabase, fabric: LoopbackFabric, capsys: pytest.CaptureFixture[str]
) -> None:
    target = {"defaultSchema": "dbo", "format": "Delta", "compactionFrequency": 0}
    database.definition = definition({**OPEN_MIRROR, "target": {"type": "x", "typeProperties": target}})

    def properties() -> object:
        (part,) = cast("list[dict[str, str]]", database.definition["parts"])
        return json.loads(base64.b64decode(part["payload"]))["properties"]["target"]["typeProperties"]

    assert main(["fabric", "update", "--change-data-feed", "--retention-days", "30"]) == 0
    assert "has these settings" in capsys.readouterr().err
    assert properties() == {**target, "enableDeltaChangeDataFeed": True, "retentionInDays": 30}
    assert main(["fabric", "update", "--no-change-data-feed", "--json"]) == 0
    assert printed_line(capsys)["differences"] == []
    assert properties() == {**target, "enableDeltaChangeDataFeed": False, "retentionInDays": 30}
    sent = [request.operation for request in fabric.log]
    assert sent == ["getDefinition", "updateDefinition", "getDefinition"] * 2
    assert main(["fabric", "update", "--no-change-data-feed"]) == 0, "nothing to change"
    assert len(fabric.log) == len(sent) + 1
    fabric.faults.append(Fault("updateDefinition", Answer(200)))
    assert main(["fabric", "update", "--retention-days", "2"]) == 1
    assert "accepted the definition, and retentionInDays is 30, not 2" in capsys.readouterr().err


def test_update_needs_something_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fabric", "update"])
    assert ended.value.code == 2
    assert "Give --retention-days, --change-data-feed or --no-change-data-feed" in capsys.readouterr().err


def test_refresh_shows_the_result_of_each_table(database: LoopbackDatabase, capsys: pytest.CaptureFixture[str]) -> None:
    tables = [reported_table("shop", "orders"), reported_table("shop", "bad")]
    database.tables, database.refusals = lambda: tables, {"shop.bad": "DeltaTableCorrupt"}
    assert main(["fabric", "refresh", "shop.orders"]) == 0
    assert "2026-11-21 05:07:11 UTC" in capsys.readouterr().out
    assert main(["fabric", "refresh", "--json"]) == 1
    well, bad = json.loads(capsys.readouterr().out)
    assert (well["table"], well["result"], well["error"]) == ("shop.orders", "Success", None)
    assert (bad["table"], bad["result"], bad["error"]["code"]) == ("shop.bad", "Failure", "fabric_refused")
    assert "DeltaTableCorrupt: The table was not synchronized." in bad["error"]["message"]
    assert main(["fabric", "refresh", "shop.unknown"]) == 2
    assert database.refreshed == [["shop.orders"], ["shop.orders", "shop.bad"]]


def test_start_is_refused_while_initializing_and_fine_when_it_runs(
    database: LoopbackDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    database.state, database.coming = "Initializing", ["Initialized"]
    assert main(["fabric", "start"]) == 1
    assert "is Initializing: mirroring can't be started now. Next: wait" in capsys.readouterr().err
    assert main(["fabric", "start"]) == 0
    assert "is Starting" in capsys.readouterr().err
    assert main(["fabric", "start"]) == 0
    assert "is Running: nothing to do" in capsys.readouterr().err
    assert database.starts == 1


def test_start_of_what_was_stopped_says_what_it_means(
    database: LoopbackDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    database.state = "Stopped"
    assert main(["fabric", "start"]) == 1
    assert "without the files that Fabric has deleted" in capsys.readouterr().err
    assert main(["fabric", "start", "--replay", "--json"]) == 0
    assert printed_line(capsys)["state"] == "Starting"


def test_status_shows_the_states_of_tables(database: LoopbackDatabase, capsys: pytest.CaptureFixture[str]) -> None:
    database.state = "Running"
    tables = [reported_table("shop", "orders", processedRows=12, lastSyncDateTime="2026-11-21T05:07:11Z")]
    database.tables = lambda: tables
    assert main(["fabric", "status"]) == 0
    shown = capsys.readouterr().out
    for text in ("is Running", "shop.orders", "Replicating", "gone", "12", "latency (s)", "2026-11-21 05:07:11 UTC"):
        assert text in shown
    tables.append(reported_table("shop", "bad", "Failed", error={"errorCode": "X", "message": "type changed"}))
    assert main(["fabric", "status", "--json"]) == 1
    found = printed_line(capsys)
    assert (found["item"], found["state"]) == (database.id, "Running")
    listed = found["tables"]
    assert isinstance(listed, list)
    assert [(table["name"], table["state"], table["message"]) for table in listed] == [
        ("shop.bad", "Failed", "type changed"),
        ("shop.orders", "Replicating", None),
    ]


def test_all_commands_report_a_database_that_runs_and_applies_nothing(
    database: LoopbackDatabase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a capacity was resumed: the database is Running, the table Replicating."""
    file = tmp_path / "mirror.yaml"
    file.write_text(f"{file.read_text()}defaults: {{replication: {{warn_seconds: 0.1, error_seconds: 0.2}}}}\n")
    orders = pa.table({"id": pa.array([1, 2], pa.int64())})
    write_deltalake(str(tmp_path / "lake" / "orders"), orders, configuration={"delta.enableChangeDataFeed": "true"})
    (table,) = compose(load_config()).tables()
    state = table.log.state()
    cover(table.store, table.name, 0, state.table_id, state.schema_string, (Column(name="id", type="bigint"),))
    table.store.create(table.name.landing_file(1), b"waits")
    database.state = "Running"
    database.tables = lambda: [reported_table("shop", "orders")]
    time.sleep(1.5)  # the loopback's times have whole seconds

    def shown(*command: str) -> tuple[int, str]:
        code, found = main(list(command)), capsys.readouterr()
        return code, " ".join((found.out.replace("│", " ") + found.err).split())

    commands = [("status",), ("check", "--only", "replicating"), ("fabric", "status"), ("fabric", "start")]
    results = {" ".join(command): shown(*command) for command in commands}
    assert {command: code for command, (code, _) in results.items()} == {
        "status": 0,
        "check --only replicating": 1,
        "fabric status": 1,
        "fabric start": 1,
    }
    for _, text in results.values():
        for part in ("nothing was applied for", "seconds while a landing file waits", "Next: check in the portal"):
            assert part in text
        for part in ("capacity is active", "Resume replication", "`mirror-assets fabric start --replay`", "rebuild"):
            assert part in text
    assert "nothing to do" not in results["fabric start"][1]
    assert database.starts == 0
    assert main(["fabric", "start", "--json"]) == 1
    (problem,) = cast("list[dict[str, object]]", printed_line(capsys)["problems"])
    assert (problem["table"], problem["is_error"]) == ("shop.orders", True)


def test_status_shows_an_unknown_state_where_fabric_refuses(
    database: LoopbackDatabase, fabric: LoopbackFabric, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = pa.table({"id": pa.array([1, 2], pa.int64())})
    write_deltalake(str(tmp_path / "lake" / "orders"), orders, configuration={"delta.enableChangeDataFeed": "true"})
    database.tables = lambda: [reported_table("shop", "orders", "Snapshotting")]
    assert main(["status", "--json"]) == 0
    line = printed_line(capsys)
    assert (line["state"], line["applied_files"], line["source_version"]) == ("Snapshotting", None, 0)
    assert line["sync_latency_seconds"] == 5
    fabric.faults.append(Fault("getTablesMirroringStatus", Answer.refusal(403, "InsufficientPrivileges")))
    assert main(["status", "--json"]) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)[0]["state"] == "unknown"
    assert "InsufficientPrivileges" in shown.err
    assert "needs the role Contributor" in shown.err


@pytest.mark.parametrize("step", ["start", "status"])
def test_where_the_stand_in_mirrors_there_is_nothing_to_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], step: str
) -> None:
    file = tmp_path / "mirror.yaml"
    file.write_text("landing_zone: {path: ./l}\nmirror: {path: ./m}\ntables: {t: {source: ./t, keys: [a]}}\n")
    assert main(["fabric", step, "--config", str(file)]) == 2
    assert f"{file}:2: mirror.fabric: this setting is missing" in capsys.readouterr().err


def test_there_is_no_stop_and_the_help_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fabric", "stop"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit):
        main(["fabric", "--help"])
    assert "replays all files" in " ".join(capsys.readouterr().out.split())


def test_a_shell_completes_its_commands(tmp_path: Path) -> None:
    test_help.test_a_shell_completes_commands_and_tables(tmp_path, "fabric st", ["start", "status"])
