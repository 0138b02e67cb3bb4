"""What a run is replaced for: other definitions, and not the same ones in another process of a daemon's."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, ManagedGrpcPythonEnvCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from mirror_assets.config import Config, load_config
from mirror_assets.orchestration import code_mark as module
from mirror_assets.orchestration.code_mark import code_mark

_OF_DAEMON = ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(module_name="mirror_assets.definitions"))
_SERVER = GrpcServerCodeLocationOrigin(host="localhost", port=4000)


def _config(folder: Path, *tables: str) -> Config:
    entries = "".join(f"  {name}: {{source: /lake/{name}, keys: [id]}}\n" for name in tables)
    (folder / "mirror.yaml").write_text(f"landing_zone: {{path: ./landing}}\ntables:\n{entries}")
    return load_config(folder / "mirror.yaml")


def test_each_load_of_a_server_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = _config(tmp_path, "orders")
    loaded = code_mark(_SERVER, config)
    assert code_mark(_SERVER, config) == code_mark(None, config) == loaded
    assert code_mark(_SERVER, config, "found") == "found"
    monkeypatch.setattr(module, "_LOADED", "another process")
    assert code_mark(_SERVER, config) != loaded


def test_a_daemons_processes_are_told_apart_by_what_they_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = code_mark(_OF_DAEMON, _config(tmp_path, "orders"))
    monkeypatch.setattr(module, "_LOADED", "another process")
    assert code_mark(_OF_DAEMON, _config(tmp_path, "orders"), "found") == loaded
    assert code_mark(_OF_DAEMON, _config(tmp_path, "orders", "lines")) != loaded
    monkeypatch.setattr("os.getppid", lambda: 1)
    assert code_mark(_OF_DAEMON, _config(tmp_path, "orders")) != loaded, "another daemon may have other variables"


def test_other_code_is_another_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PACKAGE", tmp_path / "package")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "a.py").write_text("1")
    config = _config(tmp_path, "orders")
    loaded = code_mark(_OF_DAEMON, config)
    (tmp_path / "package" / "a.py").write_text("12")
    assert code_mark(_OF_DAEMON, config) != loaded
