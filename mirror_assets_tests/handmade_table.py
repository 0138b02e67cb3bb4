"""A Delta table whose log is written by hand, with data files by pyarrow: as other writers and their bugs leave it."""

from __future__ import annotations

import json
import struct
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from mirror_assets_tests.source.handmade import commit_file, schema_string

Action = dict[str, Any]
Protocol = dict[str, Any]
Values = Mapping[str, object]
FEED = {"delta.enableChangeDataFeed": "true"}
_ARROW = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "string": pa.string(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}


def features(*readers: str, writers: Iterable[str] = ()) -> Protocol:
    """A protocol of table features; each of a reader is also a writer's."""
    named = [*writers, *readers, "changeDataFeed"]
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": list(readers), "writerFeatures": named}


class HandmadeTable:
    """A table at `path`. A test gives the actions of each commit, or its bytes."""

    def __init__(
        self,
        path: Path,
        *columns: Action,
        partitioned_by: Sequence[str] = (),
        configuration: Mapping[str, str] = FEED,
        protocol: Protocol | None = None,
    ) -> None:
        self.path, self.columns, self.partitioned_by = path, columns, list(partitioned_by)
        self._configuration = dict(configuration)
        self._protocol = protocol or {"minReaderVersion": 1, "minWriterVersion": 4}
        self._id = str(uuid.uuid4())
        self.version = -1
        (path / "_delta_log").mkdir(parents=True)

    def commit(self, *actions: Action) -> None:
        """Write the next version. The first version also gets the protocol and the metadata."""
        self.write(("\n".join(json.dumps(action) for action in self._begun(actions)) + "\n").encode())

    def write(self, data: bytes) -> None:
        """Write the next version with these bytes."""
        self.version += 1
        commit_file(self.path, self.version).write_bytes(data)

    def write_checksum(self, text: str) -> None:
        """Write the checksum file of the newest version."""
        commit_file(self.path, self.version).with_suffix(".crc").write_text(text)

    def metadata(self) -> Action:
        """The metaData action with the columns that the table has now."""
        return {
            "metaData": {
                "id": self._id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema_string(*self.columns),
                "partitionColumns": self.partitioned_by,
                "configuration": self._configuration,
                "createdTime": _now(),
            }
        }

    def add(
        self,
        *rows: Values,
        partition: Mapping[str, str | None] | None = None,
        stats: Mapping[str, object] | str | None = None,
        types: Mapping[str, pa.DataType] | None = None,
        name: str | None = None,
        **parquet: object,
    ) -> Action:
        """Write a data file at `name`. Its statistics are the number of rows, unless `stats` has others."""
        path = name or f"part-00000-{uuid.uuid4()}.snappy.parquet"
        size = self._write_rows(path, rows, types or {}, **parquet)
        counted = {"numRecords": len(rows)} if stats is None else stats
        return {
            "add": {
                "path": quote(path, safe="/=,+"),
                "partitionValues": dict(partition or {}),
                "size": size,
                "modificationTime": _now(),
                "dataChange": True,
                "stats": counted if isinstance(counted, str) else json.dumps(counted),
            }
        }

    def change_file(self, *rows: Values) -> Action:
        """Write a change file; each row has a `_change_type`."""
        path = f"_change_data/cdc-00000-{uuid.uuid4()}.snappy.parquet"
        size = self._write_rows(path, rows, {})
        return {"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": False}}

    def _begun(self, actions: Sequence[Action]) -> Sequence[Action]:
        return (
            actions if self.version >= 0 else (actions[0], {"protocol": self._protocol}, self.metadata(), *actions[1:])
        )

    def _write_rows(
        self, path: str, rows: Sequence[Values], types: Mapping[str, pa.DataType], **parquet: object
    ) -> int:
        stored = {
            physical_name(column): pa.array(
                [row.get(column["name"]) for row in rows], types.get(column["name"]) or _ARROW[column["type"]]
            )
            for column in self.columns
            if column["name"] not in self.partitioned_by
        }
        if rows and "_change_type" in rows[0]:
            stored["_change_type"] = pa.array([row["_change_type"] for row in rows])
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(stored), file, **parquet)
        return file.stat().st_size


def physical_name(column: Action) -> str:
    """The name of the column in files."""
    return str(column["metadata"].get("delta.columnMapping.physicalName", column["name"]))


def remove(add: Action, *without: str) -> Action:
    """The remove action of a file that was added, without some of its fields."""
    added = add["add"]
    action: Action = {
        "path": added["path"],
        "deletionTimestamp": _now(),
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": added["partitionValues"],
        "size": added["size"],
    }
    return {"remove": {name: value for name, value in action.items() if name not in without}}


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC = 1_681_511_377


def hidden(add: Action, *rows: int) -> Action:
    """The add action of the same file, with a deletion vector in the log that hides the rows at these positions."""
    bitmap = struct.pack("<i", _MAGIC) + BitMap64(rows).serialize()
    vector = {"storageType": "i", "pathOrInlineDv": _z85(bitmap), "sizeInBytes": len(bitmap), "cardinality": len(rows)}
    return {"add": add["add"] | {"deletionVector": vector}}


def _z85(data: bytes) -> str:
    padded = data + b"\0" * (-len(data) % 4)
    words = (struct.unpack(">I", padded[at : at + 4])[0] for at in range(0, len(padded), 4))
    return "".join(_Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def commit_info(operation: object = "WRITE", metrics: object = None, **more: object) -> Action:
    """A commitInfo action as Spark writes it, unless a test gives other fields."""
    info = {"timestamp": _now(), "operation": operation, "operationParameters": {}, "operationMetrics": metrics or {}}
    return {"commitInfo": info | more}


def _now() -> int:
    return time.time_ns() // 1_000_000
