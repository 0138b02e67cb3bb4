"""No secret leaves the environment: not into the noisiest logs, Dagster's storage, messages or the landing zone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets.config import Staging, load_config
from mirror_assets.mirroring.zone import SparkSettings
from mirror_assets.resources.catalog import resources
from mirror_assets.storage.onelake.clients import shared_clients
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.onelake import LoopbackOneLake
from mirror_assets_tests.onelake.lab import OneLakeLab

PLANTED = "planted-secret-that-is-wrong-0123456789"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Dagster's storage; clients of another test hold another test's secret."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    shared_clients.cache_clear()
    yield tmp_path / "home"
    shared_clients.cache_clear()


@pytest.fixture
def zone(lab: Lab, onelake: LoopbackOneLake, monkeypatch: pytest.MonkeyPatch) -> OneLakeLab:
    """The lab's table, mirrored into OneLake by whom the environment names."""
    for name, value in onelake.environment().items():
        monkeypatch.setenv(name, value)
    return OneLakeLab.on(lab, onelake, Staging.UPLOAD)


def written(*roots: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below these folders."""
    for root in roots:
        yield from ((str(path), path.read_bytes()) for path in root.rglob("*") if path.is_file())


def test_runs_that_work_and_that_fail_tell_no_secret(
    zone: OneLakeLab,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    config = ["--config", str(zone.lab.config_file)]
    assert main(["run", *config]) == 0
    right = zone.server.principal.secret
    monkeypatch.setenv("AZURE_CLIENT_SECRET", PLANTED)
    shared_clients.cache_clear()
    assert main(["status", *config]) == 2
    out, err = capfd.readouterr()
    assert "could not be reached as this identity" in err
    told = {"log": caplog.text, "out": out, "err": err}
    files = dict(written(home, zone.lab.root))
    files |= {path: zone.item.read(path) for path in zone.item.paths()}
    assert zone.server.entra.tokens
    for secret in (right, PLANTED, *zone.server.entra.tokens):
        assert [name for name, text in told.items() if secret in text] == []
        assert [name for name, data in files.items() if secret.encode() in data] == []
    assert "azure" in caplog.text, "the noisiest logs were not looked at"


def test_no_setting_of_spark_or_dagster_holds_a_secret(zone: OneLakeLab) -> None:
    zone.lab.config_file.write_text(zone.lab.config_file.read_text().replace("staging: upload", "staging: direct"))
    config = load_config(zone.lab.config_file)
    secret = zone.server.principal.secret
    settings = SparkSettings.of(config).filled()
    assert "${env.AZURE_CLIENT_SECRET}" in settings.values()
    dumped = [str(settings), config.model_dump_json(), repr(config), *map(repr, resources(config).values())]
    assert [text for text in dumped if secret in text] == []
