"""Parquet files of several writers and kinds, and what to read them with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.features.direct_lake.footers import FooterReader, Footers
from mirror_assets.features.direct_lake.layout import LayoutReport, layout_report
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


def reader(folder: Path, cache: Path | None = None, *, dictionaries: bool = True) -> FooterReader:
    """A reader of the folder."""
    return FooterReader(str(folder), SourceFiles(str(folder), PlainAccess(str(folder))), cache, dictionaries)


def read(folder: Path) -> Footers:
    """The footers of all Parquet files of a folder."""
    return reader(folder).read(named(folder))


def write(folder: Path, name: str, rows: pa.Table, **options: object) -> None:
    """A file by Arrow's C++ writer."""
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / name, **options)


def age(path: Path, offset: bytes) -> None:
    """Make Arrow's file one of parquet-mr before 1.12, with this offset of the dictionary, where its data begin."""
    data, metadata = path.read_bytes(), pq.read_metadata(path)
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8].replace(b"parquet-cpp-arrow", b"parquet-mr".ljust(17))
    for column in range(metadata.num_columns):
        chunk = metadata.row_group(0).column(column)
        # Fields 9, 11 and 12, each after its type and the distance of its number from the one before.
        dictionary = b"\x26" + _offset(chunk.dictionary_page_offset)
        both = b"\x26" + _offset(chunk.data_page_offset) + dictionary + b"\x1c"
        assert footer.count(both) == 1
        footer = footer.replace(both, dictionary + (offset + b"\x1c" if offset else b"\x3c"))
    path.write_bytes(data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + data[-4:])


def _offset(value: int) -> bytes:
    """As Thrift's compact protocol writes it: seven bits at a time, the lowest of all for the sign."""
    rest, out = value << 1, bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes(out + bytes([rest]))


def report(path: Path) -> LayoutReport:
    """Return the layout of a table's newest version."""
    log = DeltaLog(str(path))
    snapshot = log.snapshot()
    return layout_report(snapshot, FooterReader(str(path), log.files).read(snapshot.files))
