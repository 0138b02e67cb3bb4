"""A project's sessions, one for each thread."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.composition import compose
from mirror_assets.encode import connect
from mirror_assets.encode.errors import CONNECT_UNFIT
from mirror_assets.zones import LocalStore
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import TABLE, Lab


def test_a_session_that_does_not_share_the_staging_folder_is_refused_each_time(
    lab: Lab, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was kept before it was checked, so the second slice had it unchecked."""

    def refuse(_: SparkSession, folder: Path) -> None:
        raise CONNECT_UNFIT(why=f"it doesn't share {folder}", next_step="mount it.")

    monkeypatch.setattr(connect, "require_shared", refuse)
    project = replace(compose(lab.config), session=lambda _: spark, local_staging=LocalStore(tmp_path / "staging"))
    table = project.table(lab.config.table(TABLE))
    for _ in range(2):
        with raises_row(CONNECT_UNFIT):
            table.spark()
