"""`doctor` examines zone and sources; `drop` asks first; `download-jars` fills a folder with JARs."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets.cli.execute import orphan_lines
from mirror_assets.cli.options import Exit
from mirror_assets.config.load import load_config
from mirror_assets.encode import session
from mirror_assets.encode.spark_start import PACKAGES
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.doctor import FOUND
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage
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
    assert main(command) == Exit.BAD_SETTING
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


def test_a_local_disk_and_a_sound_source_pass_without_loading_spark(tmp_path: Path) -> None:
    write_table(tmp_path / "lake")
    (tmp_path / "mirror.yaml").write_text(f"landing_zone: {{path: ./landing}}\n{TABLES}")
    script = (
        "import sys; from mirror_assets.cli import main; "
        "code = main(['doctor', '--no-spark', '--json', '--config', sys.argv[1]]); "
        "sys.exit(code or ('pyspark' in sys.modules) * 3 or ('dagster' in sys.modules) * 4)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "mirror.yaml")], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {one["subject"] for one in told} == {str(tmp_path / "landing"), "planes"}
    assert {one["verdict"] for one in told} == {"ok", "not asked"}


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


@pytest.mark.parametrize(
    ("reply", "words", "next_step"),
    [
        (Reply(403, "CapacityNotActive"), "the capacity of the workspace is paused", "resume the capacity"),
        (Reply(403, "RequestDeniedByInboundPolicy"), "from this network: its inbound policy", "private link"),
        (Reply(400, "FriendlyNameSupportDisabled"), "does not resolve the names", "use the GUIDs"),
        (Reply(404, "ArtifactNotFound"), "was deleted, or never existed", "A re-created one has another GUID"),
    ],
)
def test_the_doctor_ends_after_an_answer_that_makes_all_others_pointless(
    onelake: LoopbackOneLake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reply: Reply,
    words: str,
    next_step: str,
) -> None:
    file = on_onelake(onelake, tmp_path, monkeypatch)
    onelake.faults.add(Fault(reply, times=1000))
    assert main(["doctor", "--config", str(file), "--json"]) == Exit.FAILED
    shown = capsys.readouterr()
    (only,) = json.loads(shown.out)
    assert (only["verdict"], only["ends"]) == ("no", True)
    assert words in only["words"]
    assert next_step in only["next_step"]
    assert "All other questions were left out" in shown.err
    assert len(onelake.log.storage) == 1


SETTINGS = (
    "landing_zone: {{path: ./landing}}\nmirror: {{path: ./mirror}}\ntables: {{{table}: {{source: ./t, keys: [a]}}}}\n"
)


@pytest.fixture
def zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    """A landing zone where the table has landed, and its mirror; mirror.yaml has another table only."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror.yaml").write_text(SETTINGS.format(table="other"))
    store = LocalStore(tmp_path / "landing")
    drive(publish(TABLE, stage(store, position_of(store), last=7), CHECKS), store)
    LocalReplicator(store, tmp_path / "mirror").poll()
    return store


def answers(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let somebody at a terminal type this."""
    typed = io.StringIO(text)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_an_orphan_goes_from_zone_and_mirror(
    zone: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drop", "shop.orders", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"table": "shop.orders", "dropped": True}]
    assert zone.list(TABLE.folder) == zone.list(TABLE.scratch) == []
    assert not (tmp_path / "mirror" / "shop" / "orders").exists()
    assert main(["drop", "shop.orders"]) == 0
    assert "there is nothing to drop" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "is_there"), [("shop.orders", True), ("other", False)])
def test_a_dry_run_of_drop_deletes_nothing(
    zone: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, is_there: bool
) -> None:
    files = sorted(tmp_path.rglob("*"))
    assert main(["drop", name, "--dry-run"]) == 0
    assert ("its landing files" in capsys.readouterr().err) is is_there
    assert main(["drop", name, "--dry-run", "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)
    assert line == {"table": name, "dropped": False, "is_there": is_there, "landing_zone": zone.root}
    assert sorted(tmp_path.rglob("*")) == files


def test_validate_needs_the_file_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its store nor its landing zone exists, and no variable of an identity is set."""
    monkeypatch.delenv("AZURE_CLIENT_SECRET", raising=False)
    file = tmp_path / "mirror.yaml"
    guid = "11111111-2222-3333-4444-555555555555"
    zone = f"https://onelake.dfs.fabric.microsoft.com/{guid}/{guid}/Files/LandingZone"
    file.write_text(
        f"landing_zone: {{onelake: {{url: '{zone}', credential: client_secret}}}}\n"
        "stores: {lake: {root: 's3://nowhere.invalid', region: eu-central-1}}\n"
        "tables:\n  sales.orders: {source: {store: lake, path: orders}, keys: [id]}\n"
        "  hr.people: {source: ./people, changes: append_only}\n"
    )
    before = (
        "import sys; from mirror_assets.cli import main; code = main(['validate', '--json', '--config', sys.argv[1]]);"
    )
    program = f"{before} sys.exit(code + 10 * any(name in sys.modules for name in ('pyspark', 'dagster', 'azure')))"
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [(line["table"], line["source"], line["changes"], line["keys"]) for line in json.loads(done.stdout)]
    assert found == [
        ("sales.orders", "s3://nowhere.invalid/orders", "feed", ["id"]),
        ("hr.people", str(tmp_path / "people"), "append_only", []),
    ]
    assert main(["validate", "--config", str(file)]) == 0
    assert f"{file}: 2 tables, into {zone}" in capsys.readouterr().err
    file.write_text(file.read_text().replace("keys: [id]", "key: [id]").replace("append_only", "appended"))
    assert main(["validate", "--config", str(file)]) == 2
    assert capsys.readouterr().err.count("mirror.yaml:") == 3, "each mistake has its line"


def test_validate_opens_landing_zone_and_sources_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path / "lake")
    file, tables = tmp_path / "mirror.yaml", "tables: {planes: {source: ./lake, keys: [id]}"
    file.write_text(f"landing_zone: {{path: ./landing}}\n{tables}}}\n")
    assert main(["validate", "--connect", "--config", str(file)]) == 0
    file.write_text(f"landing_zone: {{path: ./landing}}\n{tables}, none: {{source: ./none, keys: [id]}}}}\n")
    capsys.readouterr()
    assert main(["validate", "--connect", "--config", str(file), "--json"]) == 2
    planes, none = json.loads(capsys.readouterr().out)
    assert (planes["error"], none["error"]["code"]) == (None, "source_not_delta")
    assert not (tmp_path / "landing").exists()
    (tmp_path / "landing").touch()
    assert main(["validate", "--connect", "--config", str(file)]) == 2
    assert "it is a file, not a folder" in capsys.readouterr().err


def test_drop_without_a_terminal_requires_yes(zone: LocalStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drop", "shop.orders"]) == 2
    told = capsys.readouterr().err
    assert "shop.orders: its landing files" in told
    assert "add --yes" in told
    assert zone.list(TABLE.folder)


@pytest.mark.parametrize(
    ("typed", "code", "gone"), [("shop.orders\n", 0, True), ("yes\n", 1, False), ("\n", 1, False), ("", 1, False)]
)
def test_at_a_terminal_the_name_has_to_be_typed(
    zone: LocalStore, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, gone: bool
) -> None:
    answers(monkeypatch, typed)
    assert main(["drop", "shop.orders"]) == code
    assert (zone.list(TABLE.folder) == []) is gone


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("name", ["shop.order", "../landing", "_rebuild"])
def test_a_name_that_nothing_has_exits_with_2(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["drop", name, "--yes"]) == 2
    assert name in capsys.readouterr().err


def test_a_table_that_is_still_configured_is_named_so(
    zone: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mirror.yaml").write_text(SETTINGS.format(table="shop.orders"))
    assert main(["drop", "shop.orders", "--yes"]) == 0
    assert "the next run loads it again" in capsys.readouterr().err
    assert zone.list(TABLE.folder) == []


def test_status_reports_orphans(zone: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The orphans are reported although the source of the other table is missing."""
    assert zone.list(TABLE.folder)
    main(["status"])
    assert "`mirror-assets drop shop.orders`" in capsys.readouterr().err
    (line,) = orphan_lines(load_config())
    assert (line.asset, line.check, line.error) == ("shop/orders_landing", "orphans", None)
    (tmp_path / "mirror.yaml").write_text(SETTINGS.format(table="shop.orders"))
    main(["status"])
    assert "drop" not in capsys.readouterr().err


def test_a_run_after_it_begins_another_epoch_with_a_snapshot(mirrored: Lab) -> None:
    config = ["--config", str(mirrored.config_file)]
    mirrored.replicator.poll()
    assert main(["drop", "shop.orders", "--yes", *config]) == 0
    assert mirrored.files == []
    assert main(["run", *config]) == 0
    manifest = mirrored.manifest()
    assert (manifest.epoch, manifest.kind.value, manifest.covered) == (3, "snapshot", 5)
    assert main(["replicate", *config]) == 0
    assert main(["reconcile", *config]) == 0


_CONFIG = """landing_zone: {path: ./landing}
spark: {jars_folder: ./jars}
tables: {orders: {source: "abfss://lake@acme.dfs.core.windows.net/orders", keys: [id]}}
"""


def test_the_folder_that_the_configuration_uses_can_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = dict[Path, str]()

    def fill(folder: Path, settings: Mapping[str, str]) -> tuple[Path, ...]:
        filled[folder] = settings[PACKAGES]
        return ()

    monkeypatch.setattr(session, "fill_jar_folder", fill)
    (tmp_path / "mirror.yaml").write_text(_CONFIG)
    assert main(["download-jars", "--config", str(tmp_path / "mirror.yaml"), str(tmp_path / "jars")]) == 0
    assert "io.delta:delta-spark" in filled[tmp_path / "jars"]
    assert "hadoop-azure" in filled[tmp_path / "jars"]
