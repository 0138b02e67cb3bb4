"""Mirrors tables of a Hive metastore, Spark's embedded Derby, in a process that has such a session.

A process has one kind of catalog, chosen when Spark starts: so the test's own can't have it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mirror_assets.cli import main as mirror_assets
from mirror_assets.composition import compose, open_spark
from mirror_assets.config.load import load_config
from mirror_assets.errors import MirrorError
from mirror_assets.lakes import catalogs as locate
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.project import Project
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landed_slices import landed_slices

ORDERS, PLAIN, ABSENT, VIEW = (TableName("shop", name) for name in ("orders", "plain", "absent", "seen"))
_TABLE = "shop.orders (id INT, name STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
_KEPT = "INSERT INTO shop.orders SELECT CAST(id AS INT), concat('n', id) FROM range(10)"


def write_settings(root: Path, java_options: str) -> None:
    names = ("orders", "plain", "absent", "seen")
    tables = "".join(
        f"  shop.{name}: {{source: {{catalog: hive, table: shop.{name}}}, keys: [id]}}\n" for name in names
    )
    (root / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\nautomation: {mode: batch}\n"
        "catalogs: {hive: {type: spark}}\nspark:\n  settings:\n"
        + "".join(f"    {name}: {value}\n" for name, value in settings(root, java_options))
        + f"tables:\n{tables}"
    )


def settings(root: Path, java_options: str) -> tuple[tuple[str, str], ...]:
    return (
        ("spark.sql.catalogImplementation", "hive"),
        ("spark.sql.warehouse.dir", f"{root}/warehouse"),
        ("spark.driver.extraJavaOptions", f"-Dderby.system.home={root}/derby {java_options}"),
    )


def main(root: Path, java_options: str) -> dict[str, object]:
    """Mirror the table, change it, make it again elsewhere, run `init`; return what was seen at each step."""
    locate._TRUSTED_SECONDS = 0.0  # the catalog is asked for each plan
    config = load_config(root / "mirror.yaml")
    project, spark = compose(config), open_spark(config)
    told: dict[str, object] = {"metastore": spark.conf.get("spark.sql.catalogImplementation")}
    for statement in ("CREATE SCHEMA shop", f"CREATE TABLE {_TABLE}", _KEPT):
        spark.sql(statement)
    told["first"] = _mirrored(project, root)
    spark.sql("UPDATE shop.orders SET name = 'changed' WHERE id = 1")
    spark.sql("DELETE FROM shop.orders WHERE id = 2")
    told["changes"] = _mirrored(project, root)
    spark.sql("DROP TABLE shop.orders")
    elsewhere = f"USING delta LOCATION '{root / 'elsewhere'}'"
    spark.sql(f"CREATE TABLE {_TABLE.replace('USING delta', elsewhere)}")
    spark.sql(_KEPT)
    told["replaced"] = _mirrored(project, root)
    spark.sql("CREATE TABLE shop.plain (id INT) USING parquet")
    spark.sql("CREATE VIEW shop.seen AS SELECT * FROM shop.orders")
    options = [f"--spark-setting={name}={value}" for name, value in settings(root, java_options)]
    found = str(root / "found.yaml")
    told["init"] = mirror_assets(["init", "spark", "--catalog", "spark_catalog", *options, "--out", found])
    told["refused"] = {name.table: _refusal(project, name) for name in (PLAIN, ABSENT, VIEW)}
    return told


def _mirrored(project: Project, root: Path) -> dict[str, object]:
    context, replicator = (
        project.table(project.config.table(ORDERS)),
        LocalReplicator(LocalStore(root / "landing"), root / "mirror"),
    )
    landed = list(landed_slices(context, replicator))
    replicator.poll()
    manifest = context.manifest()
    assert manifest is not None
    state = reconcile_table(context, replicator).state
    return {"source": context.log.uri, "slices": len(landed), "epoch": manifest.epoch, "state": state.value}


def _refusal(project: Project, name: TableName) -> str:
    try:
        project.table(project.config.table(name)).log.state()
    except MirrorError as error:
        return f"{error.code.value}: {error}"
    return "none"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "seen.json").write_text(json.dumps(main(folder, sys.argv[2])), encoding="utf-8")
