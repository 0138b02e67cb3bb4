"""`mirror-assets fabric accept`, against the loopback Fabric and OneLake, whose files the stand-in applies."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from mirror_assets.cli import main
from mirror_assets.features.fabric.accept.exercises import EXERCISES
from mirror_assets.features.fabric.accept.scratch import PREFIX, ScratchTable, leftovers, remove
from mirror_assets.features.fabric.commands import accept_run
from mirror_assets.landing.names import TableName
from mirror_assets.zones import Store
from mirror_assets_tests.pages import DOCS, sections
from mirror_assets_tests.worlds.fabric.databases import LoopbackDatabase
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric
from mirror_assets_tests.worlds.fabric.replicating_item import ReplicatingItem
from mirror_assets_tests.worlds.onelake.item import LoopbackItem
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.stores import loopback_store

_ACCEPT = ["fabric", "accept", "--yes", "--wait", "60s"]
_ROWS = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture
def item(signed_in: LoopbackOneLake, database: LoopbackDatabase, fabric: LoopbackFabric) -> LoopbackItem:
    """The item of the mirrored database, which is running."""
    database.state = "Running"
    return signed_in.item(fabric.interface.workspace, database.id)


@pytest.fixture
def store(signed_in: LoopbackOneLake, item: LoopbackItem) -> Store:
    """Its landing zone."""
    return loopback_store(signed_in, item)


@pytest.fixture
def replicating(
    signed_in: LoopbackOneLake,
    item: LoopbackItem,
    database: LoopbackDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LoopbackItem]:
    """The item, whose landing files are applied."""
    monkeypatch.setattr(accept_run, "_PAUSE_SECONDS", 0.3)
    with ReplicatingItem(signed_in, item, database, tmp_path / "mirror"):
        yield item


_SOME = ("update", "column_types", "recreate", "odd_names", "endpoint_refresh", "stop_and_start")


@pytest.mark.long(8)
@pytest.mark.parametrize("names", [_SOME, pytest.param([one.name for one in EXERCISES], marks=pytest.mark.soak)])
def test_all_is_as_expected_and_nothing_is_left(
    names: Sequence[str],
    replicating: LoopbackItem,
    store: Store,
    tmp_path: Path,
    signed_in: LoopbackOneLake,
    fabric: LoopbackFabric,
) -> None:
    only = [part for name in names for part in ("--only", name)]
    assert main([*_ACCEPT, "--report", "reports", *only]) == 0
    assert [name for name in replicating.names() if PREFIX in name] == []
    assert leftovers(store) == ()
    document, page = sorted((tmp_path / "reports").iterdir())
    answers = json.loads(document.read_text())["answers"]
    assert [one["name"] for one in answers] == list(names)
    assert {one["verdict"] for one in answers} == {"as expected"}
    for text in (document.read_text(), page.read_text()):
        private = (signed_in.principal.secret, signed_in.principal.tenant, replicating.workspace, replicating.guid)
        assert not [one for one in (*private, "127.0.0.1", "localhost", fabric.url) if one in text]
        assert re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", text) is None


@pytest.mark.usefixtures("replicating")
def test_a_table_that_is_kept_can_be_queried_and_is_deleted_later(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*_ACCEPT, "--only", "odd_names", "--keep"]) == 0
    (name,), odd = leftovers(store), "\"'#%+:?`"
    assert f"SELECT [id], [größe in m], [a,;{{}}()=b], [{odd}] FROM [dbo].[{name}];" in capsys.readouterr().out
    assert main(["fabric", "accept", "--clean", "--yes"]) == 0
    assert leftovers(store) == ()
    assert main(["fabric", "accept", "--clean"]) == 0
    assert "no table of a former run is left" in capsys.readouterr().err


@pytest.mark.usefixtures("replicating")
def test_the_next_run_deletes_what_a_killed_one_has_left(store: Store) -> None:
    killed = ScratchTable(store, TableName(f"{PREFIX}1_x", f"{PREFIX}1_x"), ["id"])
    killed.land(_ROWS)
    killed.drop()
    killed.land(_ROWS)
    other = ScratchTable(store, TableName(None, "orders"), ["id"])
    other.land(_ROWS)
    store.create(f"{TableName(None, f'{PREFIX}2_staged').scratch}/1-{'0' * 32}/parts/part-00000.parquet", b"staged")
    store.make_folder(f"{PREFIX}3_x.schema")
    assert len(leftovers(store)) == 3
    assert main([*_ACCEPT, "--only", "first_load"]) == 0
    assert leftovers(store) == ()
    assert [info.name for info in store.list("") if not info.name.startswith("_")] == ["orders"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_deletes_its_tables_and_reports_what_it_has(
    number: signal.Signals, store: Store, database: LoopbackDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is applied, so all exercises wait."""
    monkeypatch.setattr(accept_run, "_PAUSE_SECONDS", 0.05)
    assert database.state == "Running"
    timer = threading.Timer(1.0, os.kill, (os.getpid(), number))
    timer.start()
    with pytest.raises(SystemExit) as ended:
        main([*_ACCEPT, "--only", "gap", "--only", "update", "--report", "reports"])
    timer.join()
    assert ended.value.code == 130
    assert leftovers(store) == ()
    (document,) = (tmp_path / "reports").glob("*.json")
    assert {one["seen"] for one in json.loads(document.read_text())["answers"]} == {"interrupted"}


@pytest.mark.usefixtures("replicating")
def test_mirroring_is_started_again_if_the_run_is_interrupted_while_it_is_stopped(
    store: Store, database: LoopbackDatabase
) -> None:
    def interrupt() -> None:
        while database.state != "Stopped":
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(SystemExit) as ended:
        main([*_ACCEPT, "--only", "stop_and_start"])
    thread.join()
    assert ended.value.code == 130
    assert database.state in ("Starting", "Running")
    assert leftovers(store) == ()


@pytest.mark.usefixtures("store")
def test_a_folder_that_can_not_be_written_is_refused_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as ended:
        main([*_ACCEPT, "--report", "file/reports"])
    assert ended.value.code == 2
    assert "--report" in capsys.readouterr().err


@pytest.mark.usefixtures("replicating")
def test_other_tables_are_never_replayed(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    ScratchTable(store, TableName(None, "orders"), ["id"]).land(_ROWS)
    assert main([*_ACCEPT, "--only", "stop_and_start"]) == 0
    assert "stop_and_start: not run after" in capsys.readouterr().err


@pytest.mark.usefixtures("replicating")
def test_what_can_not_be_observed_is_unknown(database: LoopbackDatabase, capsys: pytest.CaptureFixture[str]) -> None:
    database.endpoint = {"provisioningStatus": "InProgress"}
    assert main([*_ACCEPT, "--only", "endpoint_refresh"]) == 1
    assert "endpoint_refresh: unknown" in capsys.readouterr().err


def test_it_asks_before_it_writes(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "accept", "--only", "gap"]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert f"tables whose names begin with {PREFIX} land there, and they are deleted at the end, for gap" in shown
    assert "add --yes" in shown
    assert store.list("") == []


@pytest.mark.usefixtures("store")
def test_a_database_that_does_not_run_is_refused(
    database: LoopbackDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    database.state = "Stopped"
    assert main(_ACCEPT) == 2
    assert "is Stopped: nothing would be applied. Next: run `mirror-assets fabric start`" in capsys.readouterr().err


def test_the_stand_in_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mirror.yaml"
    file.write_text("landing_zone: {path: ./l}\nmirror: {path: ./m}\ntables: {t: {source: ./t, keys: [a]}}\n")
    assert main([*_ACCEPT, "--config", str(file)]) == 2
    assert "mirror.fabric: this setting is missing" in capsys.readouterr().err


def test_exercises_are_listed_and_unknown_ones_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "accept", "--list", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == [one.name for one in EXERCISES]
    with pytest.raises(SystemExit) as ended:
        main([*_ACCEPT, "--only", "upate"])
    assert ended.value.code == 2
    assert "expected one of first_load, update" in capsys.readouterr().err


def test_the_page_has_a_section_for_each_exercise_with_what_is_expected() -> None:
    found = sections(DOCS / "accept.md")
    assert list(found) == [one.name for one in EXERCISES]
    for one in EXERCISES:
        text = " ".join(found[one.name].split())
        assert [part for part in (one.expected, one.fits, one.otherwise) if part not in text] == []


def test_a_table_of_someone_else_is_never_removed(store: Store) -> None:
    with pytest.raises(ValueError, match="is not a scratch table"):
        remove(store, TableName(None, "orders"))
