"""The import borders of pyproject.toml hold, and each of them would be noticed if it were crossed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINTER = Path(sys.executable).with_name("lint-imports")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """The linter's verdict on the package in `folder`, which comes before any installed one."""
    command = [str(LINTER), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project in a folder of its own, to be broken."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "mirror_assets", tmp_path / "mirror_assets", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_borders_hold(copy: Path) -> None:
    verdict = lint(copy)
    assert verdict.returncode == 0, verdict.stdout
    assert ", 0 broken" in verdict.stdout


@pytest.mark.parametrize(
    ("file", "line", "border"),
    [
        ("zones/store.py", "import mirror_assets.landing", "Packages import in one direction"),
        ("landing/names.py", "import mirror_assets.source.log", "Packages import in one direction"),
        ("standin/table_record.py", "import mirror_assets.source.log", "Packages import in one direction"),
        ("pipeline/context.py", "import mirror_assets.orchestration.resources", "Packages import in one direction"),
        ("orchestration/jobs.py", "import mirror_assets.composition", "Objects are built at the entry points"),
        ("source/planner.py", "import mirror_assets.landing.names", "The source side knows no landing zone"),
        (
            "features/history/history_plan.py",
            "import mirror_assets.landing.names",
            "The source side knows no landing zone",
        ),
        ("source/log_listing.py", "import mirror_assets.config.model", "Packages import in one direction"),
        ("source/log_listing.py", "import pyspark.sql", "The landing zone's side needs no Spark"),
        ("verify/reconcile.py", "import mirror_assets.encode.columns", "Reconcile shares nothing with what reads"),
        ("verify/landed_values.py", "import mirror_assets.source.replay", "Reconcile shares nothing with what reads"),
        ("verify/staged.py", "import mirror_assets.column_types", "Verify has types of its own"),
        ("pipeline/context.py", "import dagster", "Dagster stays in the top packages"),
        ("config/model.py", "def late() -> None:\n    import dagster_pyspark", "Dagster stays in the top packages"),
        ("landing/staged_parts.py", "import pyspark.sql", "The landing zone's side needs no Spark"),
        ("standin/replicator.py", "from pyspark.sql import SparkSession", "The landing zone's side needs no Spark"),
        ("landing/staged_parts.py", "import deltalake", "delta-rs stays where Delta logs are read or written"),
        ("landing/staged_parts.py", "import azure.core", "Azure's SDK stays in lakes, zones and fabric"),
        ("pipeline/context.py", "import microsoft_fabric_api", "Fabric's client stays in fabric"),
        ("zones/store.py", "import opentelemetry.metrics", "OpenTelemetry stays in telemetry"),
        ("telemetry/record.py", "import mirror_assets.zones", "Packages import in one direction"),
        ("monitoring.py", "import mirror_assets.standin.replicator", "Packages import in one direction"),
        ("features/init/finding.py", "import mirror_assets.zones", "The source side knows no landing zone"),
        (
            "features/direct_lake/layout.py",
            "import mirror_assets.features.direct_lake.with_dagster.maintenance_job",
            "A feature's Dagster code stays in with_dagster and commands",
        ),
        (
            "features/history/with_spark/append.py",
            "import dagster",
            "A feature's Dagster code stays in with_dagster and commands",
        ),
        (
            "features/init/find_tables.py",
            "import mirror_assets.features.init.with_spark.keys",
            "A feature's Spark code stays in with_spark, with_dagster and commands",
        ),
        (
            "features/alerts/messages.py",
            "import mirror_assets.features.alerts.commands",
            "Only a feature's entry point imports its commands",
        ),
    ],
)
def test_a_crossed_border_is_noticed(copy: Path, file: str, line: str, border: str) -> None:
    with (copy / "mirror_assets" / file).open("a") as module:
        module.write(f"\n{line}\n")
    verdict = lint(copy)
    assert verdict.returncode == 1
    assert f"{border} BROKEN" in verdict.stdout


def test_a_new_package_needs_its_place(copy: Path) -> None:
    package = copy / "mirror_assets" / "attic"
    package.mkdir()
    (package / "__init__.py").touch()
    verdict = lint(copy)
    assert verdict.returncode == 1
    assert "attic" in verdict.stdout
