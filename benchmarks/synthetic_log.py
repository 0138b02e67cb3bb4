"""Tables whose Delta log is written by hand: as many commits, files and deletion vectors as wanted, within seconds."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets_tests.source.random_lakes import z85_encoded

_TIME_MS = 1_700_000_000_000
_Action = Mapping[str, object]
_PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "1000000"}
_ROWS = 20


class Log:
    """A table of a few files, all of which every commit replaces; without `linked`, their data is not there."""

    def __init__(self, folder: Path, commits: int, files: int = 1, *, linked: bool = False) -> None:
        """Make the commits after version 0, with a checkpoint before the last."""
        self.uri, self._folder, self._files, self._linked = str(folder), folder, files, linked
        write_deltalake(self.uri, pa.table({"id": [1]}), configuration=_PROPERTIES)
        self._pattern = _added(folder, 0)
        self._live = [self._pattern["path"]]
        self.version = 0
        while self.version < commits:
            self.commit()
            if self.version == commits - 1:
                DeltaTable(self.uri).create_checkpoint()

    def commit(self) -> None:
        """Commit once more."""
        self.version += 1
        time_ms = _TIME_MS + self.version
        new = [f"part-{self.version}-{number}.parquet" for number in range(self._files)]
        if self._linked:
            _link(self._folder, self._pattern["path"], new)
        removed = ({"path": path, "deletionTimestamp": time_ms, "dataChange": True} for path in self._live)
        _write(
            self._folder,
            self.version,
            [
                {"commitInfo": {"timestamp": time_ms, "operation": "WRITE"}},
                *({"remove": one} for one in removed),
                *({"add": {**self._pattern, "path": path}} for path in new),
            ],
        )
        self._live = new


def many_files(spark: SparkSession, folder: Path, files: int, *, vectors: bool) -> None:
    """Make a table of files of 20 rows, which are links to one, with a deletion vector each if wanted.

    The rows, and so the keys, are the same in each file.
    """
    table = f"delta.`{folder}`"
    rows = spark.range(0, _ROWS, 1, 1).selectExpr("id", "id / 2 AS amount", "concat('row ', id) AS name")
    rows.write.format("delta").option("delta.enableDeletionVectors", str(vectors).lower()).save(str(folder))
    if vectors:
        spark.sql(f"DELETE FROM {table} WHERE id = 7")
    last = DeltaTable(str(folder)).version() if not vectors else 1
    pattern = _added(folder, last)
    names = [f"part-{number}.parquet" for number in range(files - 1)]
    _link(folder, pattern["path"], names)
    vector = _vectors(folder, pattern) if vectors else dict
    info = {"commitInfo": {"timestamp": _TIME_MS, "operation": "WRITE"}}
    _write(folder, last + 1, [info, *({"add": {**pattern, "path": name, **vector()}} for name in names)])


def _vectors(folder: Path, pattern: _Action) -> Callable[[], dict[str, object]]:
    """Return what gives the next file a deletion vector that is a link to the pattern's."""
    known = pattern["deletionVector"]
    assert isinstance(known, dict)  # noqa: S101 Spark wrote it
    (file,) = folder.glob("deletion_vector_*.bin")

    def vector() -> dict[str, object]:
        id_ = uuid.uuid4()
        os.link(file, folder / f"deletion_vector_{id_}.bin")
        return {"deletionVector": {**known, "pathOrInlineDv": z85_encoded(id_.bytes)}}

    return vector


def _link(folder: Path, path: str, names: list[str]) -> None:
    for name in names:
        os.link(folder / path, folder / name)


def _added(folder: Path, version: int) -> dict[str, str]:
    """Return the file that the commit adds."""
    added: dict[str, str] = next(action["add"] for action in _actions(folder, version) if "add" in action)
    return added


def _actions(folder: Path, version: int) -> Iterator[dict[str, dict[str, str]]]:
    yield from map(json.loads, _entry(folder, version).read_text(encoding="utf-8").splitlines())


def _write(folder: Path, version: int, actions: Sequence[_Action]) -> None:
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    _entry(folder, version).write_text(text, encoding="utf-8")


def _entry(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020d}.json"
