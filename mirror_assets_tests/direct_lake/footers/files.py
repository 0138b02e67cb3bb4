"""Parquet files of several writers and kinds, and what to read them with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.delta.files import SourceFiles
from mirror_assets.direct_lake.footers.cache import FooterCache
from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.footers.reader import FooterReader


@dataclass(frozen=True)
class Named:
    """A file as a log has it."""

    path: str
    bytes: int


def named(folder: Path) -> list[Named]:
    """All Parquet files of a folder."""
    return [Named(path.name, path.stat().st_size) for path in sorted(folder.glob("*.parquet"))]


def reader(folder: Path, cache: Path | None = None, *, dictionaries: bool = True) -> FooterReader:
    """A reader of the folder."""
    kept = FooterCache.of(cache, str(folder)) if cache else None
    return FooterReader(str(folder), SourceFiles(str(folder), {}), kept, dictionaries=dictionaries)


def read(folder: Path) -> Footers:
    """The footers of all Parquet files of a folder."""
    return reader(folder).read(named(folder))


def write(folder: Path, name: str, rows: pa.Table, **options: object) -> None:
    """A file by Arrow's C++ writer."""
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / name, **options)
