"""A Dagster project as `dg` lays it out: an asset writes a Delta table, and another one reads its mirror."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_FILES = {
    "pyproject.toml": '[project]\nname = "shop"\nversion = "0"\n[tool.dg]\ndirectory_type = "project"\n'
    '[tool.dg.project]\nroot_module = "shop"\n',
    "src/shop/__init__.py": "",
    "src/shop/definitions.py": "from pathlib import Path\n\nimport dagster as dg\n\n\n@dg.definitions\n"
    "def defs() -> dg.Definitions:\n    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)\n",
    "src/shop/defs/__init__.py": "",
    "src/shop/defs/own.py": """import os

import dagster as dg
import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

LAKE = os.environ["LAKE"]


@dg.asset
def orders() -> None:
    known = DeltaTable(LAKE).version() + 1 if DeltaTable.is_deltatable(LAKE) else 0
    rows = pa.table({"id": pa.array([known]), "amount": pa.array([known * 1.5])})
    write_deltalake(LAKE, rows, mode="append", configuration={"delta.enableChangeDataFeed": "true"})


@dg.asset(
    ins={"orders": dg.AssetIn(["fabric", "orders"])}, automation_condition=dg.AutomationCondition.eager()
)
def report(context: dg.AssetExecutionContext, orders: pd.DataFrame) -> None:
    context.add_output_metadata({"rows": len(orders), "amount": float(orders.amount.sum())})


follow = dg.AutomationConditionSensorDefinition(
    "default_automation_condition_sensor",
    target=dg.AssetSelection.all(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=5,
)
""",
    # Keys that the mirror must not take.
    "src/shop/defs/resources.py": """import dagster as dg


@dg.definitions
def resources() -> dg.Definitions:
    return dg.Definitions(resources={"spark": 1, "sources": 2, "landing_zone": 3})
""",
}
_DEFS_YAML = """type: mirror_assets.MirrorComponent
attributes:
  config: mirror.yaml
  name: fabric
  translation:
    key: "fabric/{{ table if stage == 'mirror' else table ~ '_' ~ stage }}"
"""
_MIRROR_YAML = """landing_zone: {path: ./landing}
mirror: {path: ./mirror}
tables: {orders: {source: %s, keys: [id], source_asset: orders}}
"""


@dataclass(frozen=True)
class OwnProject:
    """The project below a folder; `home` is its DAGSTER_HOME."""

    folder: Path

    @property
    def home(self) -> Path:
        """Where Dagster stores its runs."""
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of each of its processes."""
        return {
            **os.environ,
            "DAGSTER_HOME": str(self.home),
            "LAKE": str(self.folder / "lake" / "orders"),
            "MIRROR_SENSORS": "on",
            "PYTHONPATH": str(self.folder / "src"),
        }

    def create(self) -> None:
        """Write its files, without a mirror."""
        for name, text in _FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.home.mkdir()
        (self.home / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")

    def configure(self) -> None:
        """Fill in the files of the scaffolded mirror."""
        place = self.folder / "src" / "shop" / "defs" / "fabric"
        (place / "defs.yaml").write_text(_DEFS_YAML, encoding="utf-8")
        (place / "mirror.yaml").write_text(_MIRROR_YAML % self.environment["LAKE"], encoding="utf-8")

    def dg(self, *arguments: str) -> str:
        """Run `dg`, and return what it prints; its environment is this one, not a project's own `.venv`."""
        command = [str(Path(sys.executable).with_name("dg")), *arguments]
        run = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
        return run.stdout + run.stderr

    def dev(self, log: Path, port: int) -> subprocess.Popen[bytes]:
        """Start `dg dev`: webserver, daemon and code server."""
        command = [str(Path(sys.executable).with_name("dg")), "dev", "--port", str(port)]
        with log.open("wb") as written:
            return subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=written, stderr=written, start_new_session=True
            )
