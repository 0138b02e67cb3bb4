"""Dagster's resources of a configuration whose tables are in a catalog, or found by a rule."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.load import load_config
from mirror_assets.encode import session
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration import resources
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import SparkSessions, project
from mirror_assets.pipeline.spark_sessions import SparkSettings
from mirror_assets_tests.pipeline.doctor_lake import write_table
from mirror_assets_tests.worlds.unity.server import LoopbackUnity

_ZONE = "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\n"


def test_tables_of_a_catalog_and_found_ones_are_opened(unity: LoopbackUnity, tmp_path: Path) -> None:
    write_table(tmp_path / "elsewhere" / "orders")
    write_table(tmp_path / "lake" / "lines")
    unity.add("main.sales.orders", (tmp_path / "elsewhere" / "orders").as_uri())
    (tmp_path / "mirror.yaml").write_text(
        f"{_ZONE}catalogs:\n  main: {{type: unity, url: '{unity.url}', token_variable: UC_TOKEN}}\n"
        "stores: {lake: {root: ./lake}}\ndiscover:\n  - {from: {store: lake}, keys: {default: [id]}}\n"
        "tables: {orders: {source: {catalog: main, table: sales.orders}, keys: [id]}}\n"
    )
    config = load_config(tmp_path / "mirror.yaml")
    assert unity.log == []  # no catalog is asked before the first read
    assets = MirrorAssets(config)
    with dg.build_resources(resources.resources(assets)) as opened:
        composed = project(assets, opened, with_spark=False)
    versions = {str(name): composed.log(name).state().version for name in config.names}
    assert versions == {"orders": 0, "lines": 0}
    assert composed.log(TableName.parse("orders")).uri == str(tmp_path / "elsewhere" / "orders")


def test_the_folder_of_jars_is_kept_beside_what_asks_catalogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "mirror.yaml").write_text(
        f"{_ZONE}spark: {{jars_folder: ./jars}}\ncatalogs: {{hive: {{type: spark}}}}\n"
        "tables: {orders: {source: {catalog: hive, table: sales.orders}, keys: [id]}}\n"
    )
    spark = SparkSessions.of(load_config(tmp_path / "mirror.yaml"))
    assert spark.jars_folder == str(tmp_path / "jars")


def test_a_run_reports_the_start_of_spark_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirror.yaml").write_text(f"{_ZONE}tables: {{orders: {{source: ./orders, keys: [id]}}}}\n")
    config, told, started = load_config(tmp_path / "mirror.yaml"), list[str](), list[str | None]()
    monkeypatch.setattr(session, "spark_has_started", lambda: bool(started))

    def opens(_: object, owner: str | None = None, **_more: object) -> None:
        time.sleep(0.01)  # the others ask while the first one starts it
        started.append(owner)

    monkeypatch.setattr(SparkSettings, "open", opens)
    assets = MirrorAssets(config)
    with dg.build_resources(resources.resources(assets)) as opened:
        composed = project(assets, opened, told.append)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(composed.session, "abcd"))
    assert sorted(map(str, started)) == ["a", "b", "c", "d"]
    assert told == ["Starting Spark: this can take 20 s", "Spark has started in 0.0 s"]


_WITHOUT = """
import sys
sys.modules |= {"dagster_pyspark": None, "dagster_deltalake": None, "dagster_deltalake.handler": None}
import dagster as dg
import pyarrow as pa
from mirror_assets import build_definitions

@dg.asset(ins={"orders": dg.AssetIn("orders_source")})
def report(orders: pa.Table) -> None: ...

settings = {"landing_zone": {"path": "landing"}, "tables": {"orders": {"source": "orders", "keys": ["id"]}}}
defs = dg.Definitions.merge(build_definitions(settings), dg.Definitions(assets=[report]))
job = defs.resolve_implicit_global_asset_job_def()
result = job.execute_in_process(asset_selection=[report.key], raise_on_error=False)
(failed,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
print(failed.error.cause.message)
"""


def test_only_inputs_need_the_integrations_of_dagster_and_name_their_extra(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", _WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "a table can't be loaded as pyarrow.Table: dagster_deltalake" in ran.stdout, ran.stderr[-2000:]
    assert "Next: pip install 'mirror-assets[io]'" in ran.stdout
