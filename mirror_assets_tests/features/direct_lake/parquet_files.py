"""Parquet files of several writers and kinds, and what to read them with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.features.direct_lake.footers import FooterReader, Footers
from mirror_assets.features.direct_lake.layout import LayoutReport, layout_report
from mirror_assets.features.direct_lake.table_columns import ColumnNames
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.source_files import SourceFiles


def live(path: str, size: int) -> LiveFile:
    """A file as a log has it, by its path and size alone."""
    return LiveFile(path, size, None, 0, {}, None, {})


def named(folder: Path) -> list[LiveFile]:
    """All Parquet files of a folder."""
    return [live(path.name, path.stat().st_size) for path in sorted(folder.glob("*.parquet"))]


def reader(folder: Path) -> FooterReader:
    """A reader of the folder."""
    return FooterReader(str(folder), SourceFiles(str(folder), PlainAccess(str(folder))))


def read(folder: Path) -> Footers:
    """The footers of all Parquet files of a folder."""
    return reader(folder).read(named(folder))


def write(folder: Path, name: str, rows: pa.Table, **options: object) -> None:
    """A file by Arrow's C++ writer."""
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / name, **options)


def report(path: Path) -> LayoutReport:
    """Return the layout of a table's newest version."""
    log = DeltaLog(str(path))
    snapshot = log.snapshot()
    is_dropped = ColumnNames.of(snapshot.metadata).is_dropped
    return layout_report(snapshot, FooterReader(str(path), log.files).read(snapshot.files, is_dropped))
