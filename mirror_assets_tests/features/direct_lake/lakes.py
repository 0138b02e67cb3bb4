"""A mirrored table that delta-rs writes, and what the checks of Direct Lake say of it; no Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.translator import AssetKind, asset_key

TABLE = TableName("shop", "orders")
CHECKS = ("frames_safe", "guardrails", "layout", "types")
# Has these checks run, and differs from the defaults in nothing else that they look at.
READ_DIRECTLY = "direct_lake: {mode: sql}"
Evaluations = Mapping[str, dg.AssetCheckEvaluation]


@dataclass(frozen=True)
class Shop:
    """The table's source, and its mirror where the stand-in would have it, below one folder."""

    root: Path

    @property
    def source(self) -> str:
        """The source's folder."""
        return str(self.root / "lake")

    def write(self, files: int = 1, **columns: pa.Array) -> None:
        """As many commits, each of one file."""
        rows = pa.table({"id": pa.array([1, 2, 3]), **columns})
        for _ in range(files):
            write_deltalake(self.source, rows, mode="append")

    def overwrite(self) -> None:
        """Replace all files."""
        write_deltalake(self.source, pa.table({"id": pa.array([4, 5])}), mode="overwrite")

    def age(self, days: float) -> None:
        """Have the data files that the newest version has no more be written, and removed, so long ago."""
        ms = int(days * 86_400_000)
        for log in sorted((self.root / "lake" / "_delta_log").glob("*.json")):
            text = log.read_text()
            for word in ('"deletionTimestamp":', '"timestamp":', '"modificationTime":'):
                text = _earlier(text, word, ms)
            log.write_text(text)
        for path in (self.root / "lake").rglob("*"):
            if path.is_file():
                at = path.stat().st_mtime - days * 86_400
                os.utime(path, (at, at))

    def version(self) -> int:
        """The newest version."""
        return DeltaTable(self.source).version()

    def config(self, settings: str = "", zone: str = "landing_zone: {path: ./landing}", top: str = "") -> Config:
        """Its settings, with the table's own."""
        text = (
            f"{zone}\n{top}\ntables:\n  {TABLE}:\n    source: ./lake\n    keys: [id]\n"
            f"    changes: append_only\n    {settings}\n"
        )
        return parse_config(text.encode(), self.root / "mirror.yaml", {})

    def checked(
        self, settings: str = "", kind: AssetKind = AssetKind.SOURCE, names: tuple[str, ...] = CHECKS
    ) -> Evaluations:
        """What the checks find."""
        return evaluated(self.config(settings), kind, names)


def evaluated(config: Config, kind: AssetKind, names: tuple[str, ...]) -> Evaluations:
    """What these checks of the table find."""
    keys = [dg.AssetCheckKey(asset_key(kind, TABLE), name) for name in names]
    job = dg.define_asset_job("only", dg.AssetSelection.checks(*keys))
    definitions = dg.Definitions.merge(build_definitions(config), dg.Definitions(jobs=[job]))
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def("only").execute_in_process(instance=instance)
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}


def _earlier(text: str, word: str, ms: int) -> str:
    first, *rest = text.split(word)
    moved = []
    for part in rest:
        digits = len(part) - len(part.lstrip("0123456789"))
        moved.append(f"{int(part[:digits]) - ms}{part[digits:]}")
    return word.join([first, *moved])
