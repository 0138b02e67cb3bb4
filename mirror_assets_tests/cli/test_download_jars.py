"""The command that fills a folder with JARs, for machines and images that can't download them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets.encode import session
from mirror_assets.encode.spark_start import PACKAGES

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
