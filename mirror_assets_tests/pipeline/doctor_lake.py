"""Tables by deltalake and a mirror.yaml over them, for the doctor to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.pipeline.doctor import DoctorAnswer, examine_sources
from mirror_assets.pipeline.project import Project

FEED = {"delta.enableChangeDataFeed": "true"}


def write_table(
    path: Path, columns: Mapping[str, list[Any]] | None = None, properties: Mapping[str, str] | None = None
) -> None:
    """Write the next version of a table, by default of three ids with the feed on."""
    rows = pa.table(columns or {"id": [1, 2, 3]})
    write_deltalake(str(path), rows, mode="append", configuration={**FEED, **(properties or {})})


def project(folder: Path, tables: str, more: str = "") -> Project:
    """Return the project of a mirror.yaml with these tables, each a line."""
    file = folder / "mirror.yaml"
    listed = "".join(f"  {line}\n" for line in tables.splitlines())
    file.write_text(f"landing_zone: {{path: ./landing}}\nmirror: {{path: ./mirror}}\n{more}tables:\n{listed}")
    return compose(load_config(file))


def answers(made: Project, *, with_spark: bool = False, thorough: bool = False) -> dict[tuple[str, str], DoctorAnswer]:
    """Return the answers by table and question."""
    found = examine_sources(made.tables(), with_spark=with_spark, thorough=thorough)
    return {(one.subject, one.question): one for one in found}
