"""Facts of footers on disk, so that a file is read once: Delta's data files never change.

One folder per table. Each report adds what it had to read as one Parquet file of facts, under a name that no other
process uses, by a rename; so processes need no lock. Files that two processes read at once are kept twice and looked
up once. Nothing is kept that can't be read from the table again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.direct_lake.footers.errors import CacheUnusable
from mirror_assets.direct_lake.footers.facts import FOOTER_SCHEMA

# In the names of the cache's files: another set of facts is another number, and older ones are let be.
_FORMAT = "v1"
_MOST_SEGMENTS = 16


@dataclass(frozen=True)
class FooterCache:
    """The facts kept of one table's files. Raises CacheUnusable when the folder can't be read or written."""

    folder: Path

    @classmethod
    def of(cls, root: Path, uri: str) -> FooterCache:
        """That of the table at `uri`, below the folder `root`; nothing is read or written yet."""
        address = uri if "://" in uri else str(Path(uri).absolute())
        return cls(root / hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:32])

    def load(self) -> pa.Table:
        """All that is kept, a row per file, some perhaps twice."""
        return pa.concat_tables([FOOTER_SCHEMA.empty_table(), *self._segments()])

    def add(self, facts: pa.Table) -> None:
        """Keep the facts."""
        with self._translated():
            self.folder.mkdir(parents=True, exist_ok=True)
            name = uuid4().hex
            written = self.folder / f".{name}"
            try:
                pq.write_table(facts, written, compression="zstd", write_page_checksum=True)
                written.rename(self.folder / f"{_FORMAT}-{name}.parquet")
            finally:
                written.unlink(missing_ok=True)

    def tidy(self, wanted: pa.Table) -> None:
        """Once there are many files of facts, keep one with the `wanted` ones in their place.

        Of files that no report asks for any more, the facts go with it. A process that was about to read what is
        deleted here reads footers of the table instead.
        """
        names = self._names()
        if len(names) <= _MOST_SEGMENTS:
            return
        self.add(wanted)
        with self._translated():
            for path in names:
                path.unlink(missing_ok=True)

    def _segments(self) -> Iterator[pa.Table]:
        for path in self._names():
            with self._translated():
                table = _read(path)
            if table is not None and table.schema.equals(FOOTER_SCHEMA):
                yield table

    def _names(self) -> Sequence[Path]:
        with self._translated():
            return sorted(self.folder.glob(f"{_FORMAT}-*.parquet"))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CacheUnusable(str(self.folder), error.strerror or str(error)) from error


def _read(path: Path) -> pa.Table | None:
    """The facts in a file; None when another process has tidied it up, or a crash of the machine has damaged it."""
    try:
        # Not read_table: importing what that needs takes longer than reading the facts of 1,000 files.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read()
    except (FileNotFoundError, ValueError, pa.ArrowException):
        return None
    except OSError as error:
        if error.errno is None:  # Arrow's, of what is in the file
            return None
        raise
