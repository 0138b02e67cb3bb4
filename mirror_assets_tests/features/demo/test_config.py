"""The demo's mirror.yaml: it loads, fits the lake, and never replaces somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.config.load import load_config
from mirror_assets.config.source_fit import source_problems
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.demo.claim import write_config
from mirror_assets.features.demo.with_spark.histories import HISTORIES
from mirror_assets_tests.errors import raises
from mirror_assets_tests.features.demo.conftest import Demo
from mirror_assets_tests.features.demo.test_demo_lake import KEYS

# The lake is made once, in the process that runs all of these.
pytestmark = [pytest.mark.long(30), pytest.mark.xdist_group("demo")]


def test_it_names_each_table_of_the_lake_with_its_key(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path))
    assert set(config.tables) == {f"nycflights.{history.table}" for history in HISTORIES}
    for history in HISTORIES:
        table = config.table(f"nycflights.{history.table}")
        assert table.source == str(tmp_path / "lake" / history.table)
        assert table.keys == KEYS[history.table]


def test_the_projects_own_mirror_yaml_mirrors_the_same_lake(tmp_path: Path) -> None:
    project = Path(__file__).parents[3]
    ours = load_config(project / "mirror.yaml").model_dump_json()
    demos = load_config(write_config(tmp_path / ".demo")).model_dump_json()
    assert ours.replace(str(project), str(tmp_path)) == demos


def test_each_table_fits_its_source(spark: SparkSession, demo: Demo) -> None:
    config = load_config(demo.root / "mirror.yaml")
    for history in demo.histories:
        columns = spark.read.format("delta").load(str(demo.root / "lake" / history.table)).dtypes
        assert source_problems(config.table(f"nycflights.{history.table}"), columns) == ()


def test_it_is_written_again_and_replaces_no_other_file(tmp_path: Path) -> None:
    path = write_config(tmp_path)
    path.write_text(path.read_text() + "# a note\n")
    assert "a note" not in write_config(tmp_path).read_text()
    path.write_text("tables: {}\n")
    with raises(SettingError, ErrorCode.PATH_REFUSED) as refused:
        write_config(tmp_path)
    assert refused.value.what.startswith(f"{path} exists")
    assert path.read_text() == "tables: {}\n"
