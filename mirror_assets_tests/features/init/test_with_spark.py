"""A lake of many kinds of tables: `init` proposes the right keys, and what it wrote runs as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets.config.load import load_config
from mirror_assets_tests.features.init.lake import BY_DELTA_RS, BY_SPARK, UNREADABLE, make_by_delta_rs, make_by_spark

# One process makes the lake once for all of these.
pytestmark = [pytest.mark.long(150), pytest.mark.xdist_group("init with Spark")]

_TABLES = BY_DELTA_RS | BY_SPARK


@pytest.fixture(scope="module")
def project(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the lake, and what `init` wrote beside it."""
    root = tmp_path_factory.mktemp("project")
    make_by_delta_rs(root / "lake")
    make_by_spark(spark, root / "lake")
    assert main(["init", str(root / "lake"), "--out", str(root / "mirror.yaml")]) == 0
    return root


def test_keys_and_changes_are_those_that_are_known(project: Path) -> None:
    found = {
        str(table.name): (table.changes.value, table.keys)
        for table in load_config(project / "mirror.yaml").all_tables()
    }
    assert found == {one.name: (one.changes, one.keys) for one in _TABLES.values() if not one.waits}


def test_the_file_says_what_was_found(project: Path) -> None:
    text = (project / "mirror.yaml").read_text()
    for line in (
        "# order_id: proven: 60 rows, 0 NULLs, 60 distinct at version 0",
        "# order_id, line_no: proven: 60 rows, 0 NULLs, 60 distinct at version 0",
        "# id: not proven: the table is empty at version 0",
        "# Without `nothing`: a landing file can't hold its type, void.",
        "row tracking is on.",
        "neither the change data feed nor row tracking is on.",
    ):
        assert line in text, line
    assert "Direct Lake can't load `more` of the source: it is complex" in " ".join(text.replace("\n  #", "").split())
    assert "    columns: [id, more]\n" in text
    assert all(f"# - {path}: " in text for path in UNREADABLE)


def test_the_sql_file_has_the_missing_statements_and_nothing_ran_them(project: Path) -> None:
    statements = [line for line in (project / "mirror.sql").read_text().splitlines() if line.startswith("ALTER")]
    lake = project / "lake"
    assert statements == [
        f"ALTER TABLE delta.`{lake}/crm/clicks` SET TBLPROPERTIES (delta.enableRowTracking = true);",
    ]
    assert [file.name for file in (lake / "stock/items/_delta_log").glob("*.json")] == [f"{0:020d}.json"]


@pytest.mark.soak  # one table in make test: lakes/test_every_store.py
def test_the_file_runs_as_it_is_and_once_the_statements_ran_as_a_whole(
    project: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    config = project / "mirror.yaml"
    assert main(["run", "--config", str(config), "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert {report["table"] for report in reports} == {one.name for one in _TABLES.values() if not one.waits}
    assert not any(report["error"] for report in reports)
    for line in (project / "mirror.sql").read_text().splitlines():
        if line.startswith("ALTER"):
            spark.sql(line.removesuffix(";"))
    config.write_text(re.sub("(?m)^#(?=  )", "", config.read_text()))
    assert {str(name) for name in load_config(config).names} == {one.name for one in _TABLES.values()}
    assert main(["run", "--config", str(config)]) == 0
    assert main(["replicate", "--config", str(config)]) == 0
    capsys.readouterr()
    assert main(["reconcile", "--config", str(config), "--json"]) == 0
    states = {line["table"]: line["state"] for line in json.loads(capsys.readouterr().out)}
    assert states == {one.name: "equal" for one in _TABLES.values()}


@pytest.mark.usefixtures("spark")
def test_a_table_that_spark_can_not_read_waits_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_by_delta_rs(tmp_path / "lake")
    for file in (tmp_path / "lake/sales/orders").glob("*.parquet"):
        file.unlink()
    assert main(["init", str(tmp_path / "lake"), "--out", str(tmp_path / "m.yaml"), "--json"]) == 0
    records = {record["path"]: record for record in json.loads(capsys.readouterr().out)}
    assert "sales/orders" in records["sales/orders"]["missing"]
    assert records["crm/customers"]["keys"] == ["email"]
    assert "sales.orders" not in load_config(tmp_path / "m.yaml").tables
