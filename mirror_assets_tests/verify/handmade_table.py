"""A table whose commits are written by hand, and the ledger of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.source.log import DeltaLog
from mirror_assets.verify.ledger_log import SliceLedger, commits_ledger
from mirror_assets_tests.source.handmade import Action, column, info, metadata_action, schema_string, write_commit

VECTORS: Action = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
}


@dataclass
class HandmadeTable:
    """A table whose commits are written by hand; its Parquet files have as many rows as a test says."""

    root: Path
    version: int = -1

    def commit(self, *actions: Action) -> int:
        """Write the next commit; the first has protocol and metadata."""
        self.version += 1
        first = (VECTORS, metadata_action(schema_string(column("id")))) if self.version == 0 else ()
        write_commit(self.root, self.version, [info(), *first, *actions])
        return self.version

    def file(self, path: str, rows: int) -> None:
        """Write a Parquet file."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": list(range(rows))}), target)

    def ledger(self, first: int, last: int | None = None) -> SliceLedger:
        """Return the ledger of these commits, or of one."""
        return commits_ledger(DeltaLog(str(self.root)), first, first if last is None else last)
