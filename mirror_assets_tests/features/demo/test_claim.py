"""The demo deletes what it made, and nothing else: not what settings of the user's point it at."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from mirror_assets.cli.main import main
from mirror_assets.cli.options import Exit
from mirror_assets.config.load import parse_config
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.demo.claim import (
    MARK,
    ZONE_MARK,
    claim,
    claim_folder,
    claim_tables,
    clear,
    clear_folder,
    clear_tables,
)
from mirror_assets.features.demo.commands import demo_run as demo
from mirror_assets.landing.names import TableName
from mirror_assets.zones import LocalStore, Store
from mirror_assets.zones.onelake.onelake_zone import OneLakeConfig
from mirror_assets_tests.errors import raises
from mirror_assets_tests.zones.memory import MemoryStore

PLANES, OTHER = TableName("nycflights", "planes"), TableName("sales", "orders")


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "zone") if request.param == "local" else MemoryStore()


def test_a_folder_with_foreign_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/theirs").write_text("x")
    for touch in (claim_folder, clear_folder):
        with raises(SettingError, ErrorCode.PATH_REFUSED, match="nothing was deleted"):
            touch(tmp_path / "mirror")
    with raises(SettingError, ErrorCode.PATH_REFUSED):
        claim_folder(tmp_path / "mirror/theirs")
    assert [path.name for path in (tmp_path / "mirror").iterdir()] == ["theirs"]


def test_a_folder_of_the_demos_is_emptied_and_stays_the_demos(tmp_path: Path) -> None:
    folder, kept = tmp_path / "mirror", tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    claim_folder(folder)
    (folder / "a/b").mkdir(parents=True)
    (folder / "file").write_text("x")
    (folder / "link").symlink_to(kept)
    clear_folder(folder)
    assert [path.name for path in folder.iterdir()] == [MARK]
    assert (kept / "file").exists()
    claim_folder(folder)


def test_a_folder_that_is_new_or_empty_may_be_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "deep/new"):
        claim_folder(tmp_path / name)
        assert (tmp_path / name / MARK).exists()


@pytest.mark.parametrize("theirs", [PLANES.manifest, f"{PLANES.scratch}/1-a/slice.json", PLANES.rebuild_record])
def test_foreign_tables_in_a_landing_zone_are_refused_and_unchanged(store: Store, theirs: str) -> None:
    store.create(theirs, b"x")
    for touch in (claim_tables, clear_tables):
        with raises(SettingError, ErrorCode.PATH_REFUSED):
            touch(store, [OTHER, PLANES])
    assert store.head(theirs) is not None
    assert store.head(ZONE_MARK) is None


def test_the_demos_tables_go_and_those_beside_them_stay(store: Store) -> None:
    store.create(OTHER.manifest, b"theirs")
    claim_tables(store, [PLANES])
    for path in (PLANES.manifest, f"{PLANES.scratch}/1-a/slice.json", PLANES.rebuild_record):
        store.create(path, b"x")
    clear_tables(store, [PLANES])
    claim_tables(store, [PLANES])
    assert store.list(PLANES.folder) == store.list(PLANES.scratch) == []
    assert store.head(PLANES.rebuild_record) is None
    assert store.read(OTHER.manifest, 10).data == b"theirs"


@pytest.mark.parametrize("theirs", ["mine/report.txt", "landing/nycflights.schema/planes/_mirror.json"])
def test_the_command_refuses_before_it_builds_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], theirs: str
) -> None:
    """Seen: `--settings` with a mirror.path that held a user's files emptied it, unasked."""
    monkeypatch.setattr(demo, "open_spark", lambda _, **__: pytest.fail("it began"))
    root, settings = tmp_path / "demo", tmp_path / "settings.yaml"
    LocalStore(tmp_path).create(theirs, b"mine")
    settings.write_text(f"mirror: {{path: {tmp_path}/mine}}\nlanding_zone: {{path: {tmp_path}/landing}}\n")
    assert main(["demo", "--folder", str(root), "--settings", str(settings)]) == Exit.BAD_SETTING
    assert "was not made by the demo" in capsys.readouterr().err
    assert (tmp_path / theirs).read_text() == "mine"
    assert not (root / "lake").exists()


def test_a_mirror_in_fabric_leaves_every_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mirror.path` has a default; with `mirror.fabric` it names nothing, least of all the folder one stands in."""
    workspace, item = uuid4(), uuid4()
    text = (
        f"landing_zone: {{onelake: {{url: 'https://onelake.dfs.fabric.microsoft.com/{workspace}/{item}/Files/LandingZone'}}}}\n"
        f"mirror: {{fabric: {{}}}}\ntables: {{t: {{source: ./t, keys: [id]}}}}\n"
    )
    config = parse_config(text.encode(), tmp_path / "mirror.yaml", {})
    LocalStore(tmp_path).create("mirror/theirs", b"x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(OneLakeConfig, "open", lambda _: MemoryStore())
    claim(config)
    clear(config)
    assert (tmp_path / "mirror/theirs").exists()
