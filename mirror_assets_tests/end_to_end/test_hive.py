"""Tables by their names in a Hive metastore: Spark's embedded Derby."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mirror_assets.config.load import load_config
from mirror_assets_tests import quick_jvm
from mirror_assets_tests.worlds.hive import program


@pytest.mark.long(60)
def test_a_table_of_a_metastore_lands_changes_and_is_replaced(tmp_path: Path) -> None:
    program.write_settings(tmp_path, quick_jvm.OPTIONS)
    environment = os.environ | quick_jvm.own_cache(tmp_path / "cache")
    command = [sys.executable, "-m", "mirror_assets_tests.worlds.hive.program", str(tmp_path), quick_jvm.OPTIONS]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert made.returncode == 0, made.stderr[-3000:]
    told = json.loads((tmp_path / "seen.json").read_text(encoding="utf-8"))
    assert told["metastore"] == "hive"
    warehouse, elsewhere = f"{tmp_path}/warehouse/shop.db/orders", f"{tmp_path}/elsewhere"
    assert told["first"] == {"source": warehouse, "slices": 1, "epoch": 1, "state": "equal"}
    assert told["changes"] == {"source": warehouse, "slices": 1, "epoch": 1, "state": "equal"}
    assert told["replaced"]["source"] == elsewhere
    assert (told["replaced"]["epoch"], told["replaced"]["state"]) == (2, "equal")
    refused = told["refused"]
    assert refused["plain"].startswith("source_not_delta: shop.plain")
    assert "not a Delta table" in refused["plain"]
    assert refused["absent"].startswith("catalog_table_refused: shop.absent")
    assert refused["seen"].startswith("source_not_delta: shop.seen")
    assert told["init"] == 0, made.stderr[-3000:]
    found = load_config(tmp_path / "found.yaml")
    assert {str(table.name): (table.source, table.keys) for table in found.all_tables()} == {
        "shop.orders": ("catalog://spark_catalog/shop.orders", ("id",))
    }, "neither the view nor the table of Parquet files"


def test_definitions_load_without_a_jvm(tmp_path: Path) -> None:
    program.write_settings(tmp_path, "")
    code = (
        "from mirror_assets.config.load import load_config; from mirror_assets.definitions import build_definitions; "
        "build_definitions(load_config()); "
        "from pyspark import SparkContext; assert SparkContext._active_spark_context is None"
    )
    environment = os.environ | {"MIRROR_CONFIG": str(tmp_path / "mirror.yaml"), "XDG_CACHE_HOME": str(tmp_path)}
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-2000:]
    assert load_config(tmp_path / "mirror.yaml").table("shop.orders").source == "catalog://hive/shop.orders"
