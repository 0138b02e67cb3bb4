"""The table of a history: its columns and features are drawn, and its log is read without the project."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import delta.tables
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets_tests.source.handmade import commit_file

Action = dict[str, Any]
# Which has identity columns in Python, and in-commit timestamps.
_HAS_DELTA_3_3 = hasattr(delta.tables, "IdentityGenerator")
# Values of partition columns that are hard to spell in a folder's name, or before the Gregorian calendar.
_ODD = {
    "STRING": ("NULL", "''", "'a/b=c'", "'ü %20'", "'x'", "'y:z'", "'{[*]}?#'", "' '"),
    "INT": ("NULL", "0", "-7", "2147483647"),
    "DATE": ("NULL", "DATE'1500-02-03'", "DATE'0001-01-01'", "DATE'2024-02-29'"),
    "TIMESTAMP": (
        "NULL",
        "TIMESTAMP'1582-10-04 12:00:00'",
        "TIMESTAMP'2024-01-15 16:00:00.123456'",
        "TIMESTAMP'1899-12-31 23:59:59'",
    ),
    "DECIMAL(9, 3)": ("NULL", "0.000", "-1.500", "123456.789"),
}
_COLUMNS = {
    "name": ("STRING", "concat('n', id)"),
    "amount": ("DECIMAL(10, 2)", "CAST(id / 4 AS DECIMAL(10, 2))"),
    "n": ("INT", "CAST(id % 10 AS INT)"),
    "f": ("FLOAT", "CAST(id / 8 AS FLOAT)"),
    "d": ("DATE", "element_at(array(DATE'1500-02-03', DATE'1969-12-31', DATE'2024-02-29', NULL), id % 4 + 1)"),
    "ts": (
        "TIMESTAMP",
        "element_at(array(TIMESTAMP'1570-01-01 01:02:03', TIMESTAMP'2024-06-30 23:59:59.999999', NULL), id % 3 + 1)",
    ),
    "info": ("STRUCT<a: INT, b: STRING>", "named_struct('a', CAST(id % 5 AS INT), 'b', IF(id % 2 = 0, NULL, 'b'))"),
    "tags": ("ARRAY<STRING>", "IF(id % 3 = 0, NULL, array('t', concat('u', id)))"),
}
_ADDED = "concat('added', id)"


@dataclass(frozen=True)
class Shape:
    """The columns and features that a table begins with."""

    properties: Mapping[str, str]
    key_type: str = "INT"
    partition: str | None = None
    keyed_by_partition: bool = False
    clustered: bool = False
    generated: str | None = None
    identity: bool = False
    rows: int = 12

    @property
    def keys(self) -> tuple[str, ...]:
        return ("id", "p") if self.keyed_by_partition else ("id",)

    @classmethod
    def plain(cls, needed: Mapping[str, str]) -> Shape:
        """A table of rows alone, to which changes land in many parts."""
        return cls({"delta.enableDeletionVectors": "false"} | dict(needed), rows=6)

    @classmethod
    def drawn(cls, rng: Random, needed: Mapping[str, str]) -> Shape:
        optional = {
            "delta.enableChangeDataFeed": "true",
            "delta.enableDeletionVectors": "true",
            "delta.enableRowTracking": "true",
            "delta.enableTypeWidening": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.checkpointPolicy": "v2",
            "delta.checkpointInterval": "3",
            "delta.columnMapping.mode": rng.choice(("name", "id")),
        }
        # Without features, delta-rs can write the table until a statement enables one.
        is_plain = rng.random() < 0.3
        properties = {name: value for name, value in optional.items() if not is_plain and rng.random() < 0.3}
        if not _HAS_DELTA_3_3:
            properties.pop("delta.enableInCommitTimestamps", None)
        partition = rng.choice((None, None, *_ODD))
        generated = (
            rng.choice((None, None, None, "column", "partition")) if partition is None and not is_plain else None
        )
        return cls(
            properties={"delta.enableDeletionVectors": "false"} | properties | dict(needed),
            key_type=rng.choice(("INT", "INT", "BIGINT")),
            partition=partition,
            keyed_by_partition=partition is not None and rng.random() < 0.2,
            clustered=partition is None and not is_plain and generated != "partition" and rng.random() < 0.2,
            generated=generated,
            identity=not is_plain and rng.random() < 0.15,
            rows=300 if "delta.enableDeletionVectors" in properties and rng.random() < 0.3 else 12,
        )


@dataclass
class LogState:
    """A log, replayed by the protocol: its version, metadata, protocol, and the live files by path and vector."""

    version: int = -1
    metadata: Action = field(default_factory=dict)
    protocol: Action = field(default_factory=dict)
    files: dict[tuple[str, str], Action] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Path, up_to: int | None = None) -> LogState:
        """Replay all commits, none of which may be missing, or those up to a version."""
        state = cls()
        while state.version != up_to and (file := commit_file(table, state.version + 1)).exists():
            state.version += 1
            for action in actions_in(file):
                state._apply(action)
        return state

    def _apply(self, action: Action) -> None:
        self.metadata = action.get("metaData") or self.metadata
        self.protocol = action.get("protocol") or self.protocol
        if removed := action.get("remove"):
            self.files.pop(_identity(removed), None)
        if added := action.get("add"):
            self.files[_identity(added)] = added

    @property
    def configuration(self) -> Mapping[str, str]:
        return dict(self.metadata["configuration"])

    @property
    def columns(self) -> list[Action]:
        return list(json.loads(self.metadata["schemaString"])["fields"])

    @property
    def names(self) -> list[str]:
        return [column["name"] for column in self.columns]


def actions_in(file: Path) -> list[Action]:
    """The actions of a commit, without those that are null."""
    lines = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip())
    found = ({name: value for name, value in line.items() if value is not None} for line in lines)
    return [action for action in found if action]


def _identity(action: Action) -> tuple[str, str]:
    vector = action.get("deletionVector") or {}
    return action["path"], "".join(str(vector.get(name, "")) for name in ("storageType", "pathOrInlineDv", "offset"))


class Table:
    """The table, its statements so far, and what is drawn next.

    Spark writes through a symbolic link, whose name changes when the table was changed by others: Delta has no
    snapshot of the new name in its memory. The mirror reads the table at its own path.
    """

    def __init__(self, spark: SparkSession, path: Path, rng: Random, shape: Shape) -> None:
        self.spark, self.path, self.rng, self.shape = spark, path, rng, shape
        self.steps: list[str] = []
        # The newest version that is mirrored: commits up to it are history, which no one rewrites.
        self.mirrored = -1
        self.counts_are_right = True
        # Versions whose rows can't be mirrored.
        self.unfit: set[int] = set()
        self._links = 0
        self._alias = path

    @property
    def log(self) -> LogState:
        return LogState.of(self.path)

    def sql(self, *statements: str) -> None:
        """Run statements; {t} is the table."""
        for statement in statements:
            self.steps.append(f"  {statement}")
            self.spark.sql(statement.replace("{t}", f"delta.`{self._alias}`"))

    def note(self, text: str) -> None:
        """Add a line to the statements that are printed when the history fails."""
        self.steps.append(f"  -- {text}")

    def changed_by_others(self) -> None:
        self._links += 1
        self._alias = self.path.parent / f"writer{self._links}"
        self._alias.symlink_to(self.path, target_is_directory=True)

    def create(self, rows: Iterable[int]) -> None:
        builder = DeltaTable.create(self.spark).location(str(self._alias)).addColumn("id", self.shape.key_type)
        for name, kind in self._columns():
            builder = builder.addColumn(name, kind)
        if self.shape.generated == "column":
            builder = builder.addColumn("g", "BIGINT", generatedAlwaysAs="CAST(n AS BIGINT) * 2")
        if self.shape.generated == "partition":
            builder = builder.addColumn("g", "DATE", generatedAlwaysAs="CAST(ts AS DATE)").partitionedBy("g")
        if self.shape.identity and _HAS_DELTA_3_3:
            builder = builder.addColumn("i", "BIGINT", generatedByDefaultAs=delta.tables.IdentityGenerator())
        if self.shape.partition:
            builder = builder.partitionedBy("p")
        if self.shape.clustered:
            builder = builder.clusterBy("id")
        for name, value in self.shape.properties.items():
            builder = builder.property(name, value)
        self.note(f"create: {self.shape}")
        builder.execute()
        self.sql(f"INSERT INTO {{t}} {self.rows(rows)}")

    def create_again(self, make: Callable[[], None]) -> None:
        """Delete the folder, and make another table there; the old one is there again if that fails."""
        old = self.path.with_name("old")
        self.path.rename(old)
        self.path.mkdir()
        self.changed_by_others()
        try:
            make()
        except BaseException:
            shutil.rmtree(self.path)
            old.rename(self.path)
            raise
        shutil.rmtree(old)
        self.mirrored = -1
        self.counts_are_right = True
        self.unfit.clear()
        self.changed_by_others()

    @property
    def writers_path(self) -> Path:
        return self._alias

    def _columns(self) -> list[tuple[str, str]]:
        partition = [("p", self.shape.partition)] if self.shape.partition else []
        return [*partition, *((name, kind) for name, (kind, _) in _COLUMNS.items())]

    def rows(self, ids: Iterable[int], name: str | None = None, columns: Sequence[str] | None = None) -> str:
        """The columns and the query of an INSERT, for rows with these ids; other ids have other values."""
        found = self.writable if columns is None else columns
        listed = ", ".join(f"{self.expression(column, name)} AS {column}" for column in found)
        values = ", ".join(f"({id_})" for id_ in ids)
        return f"({', '.join(found)}) SELECT {listed} FROM VALUES {values} AS v(id)"

    def new_rows(self, ids: Iterable[int]) -> str:
        """The same for those ids that the table does not have."""
        return f"{self.rows(ids)} WHERE id NOT IN (SELECT id FROM {{t}})"

    def has_a_key_twice(self) -> bool:
        keys = self.spark.read.format("delta").load(str(self._alias)).select(*self.shape.keys)
        found: bool = keys.distinct().count() < keys.count()
        return found

    def take_back(self) -> None:
        self.note("the commit is deleted: two rows would have one key")
        commit_file(self.path, self.log.version).unlink()
        self.changed_by_others()

    @property
    def writable(self) -> list[str]:
        """Names of the columns that a statement gives values for."""
        return [name for name in self.log.names if name not in ("g", "i")]

    def expression(self, column: str, name: str | None = None) -> str:
        if column == "id":
            return "id"
        if column == "p":
            return self._partition_value()
        if column == "name" and name is not None:
            return f"concat('{name}', id)"
        return _COLUMNS[column][1] if column in _COLUMNS else _ADDED

    def _partition_value(self) -> str:
        odd = _ODD[self.shape.partition or "STRING"]
        if self.shape.keyed_by_partition:
            odd = tuple(value for value in odd if value not in ("NULL", "''"))
        return f"element_at(array({', '.join(odd)}), CAST(id % {len(odd)} AS INT) + 1)"

    def odd_partition(self) -> str:
        odd = [value for value in _ODD[self.shape.partition or "STRING"] if value not in ("NULL", "''")]
        return self.rng.choice(odd)

    def ids(self, most: int = 4) -> list[int]:
        limit = self.shape.rows + 4
        return sorted({self.rng.randrange(limit) for _ in range(self.rng.randint(1, most))})

    def newest(self) -> Path | None:
        """The newest commit's file, if it is not mirrored."""
        version = self.log.version
        return commit_file(self.path, version) if version > max(self.mirrored, 0) else None

    def rewrite(self, lines: Sequence[Action] | bytes, *, version: int | None = None) -> None:
        """Write a commit by hand: the newest one again, or another one after it."""
        at = self.log.version if version is None else version
        file = commit_file(self.path, at)
        data = lines if isinstance(lines, bytes) else "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        # Hadoop and Delta keep checksums of a commit.
        for checksum in (
            file.with_name(f".{file.name}.crc"),
            file.with_suffix(".crc"),
            file.with_name(f".{file.stem}.crc.crc"),
        ):
            checksum.unlink(missing_ok=True)
        file.unlink(missing_ok=True)
        file.write_bytes(data)
        os.utime(file)
        self.changed_by_others()

    def add_commit(self, *actions: Action, operation: str = "WRITE") -> None:
        version = self.log.version + 1
        info: Action = {"timestamp": 1_900_000_000_000 + version, "operation": operation, "operationParameters": {}}
        if self.log.configuration.get("delta.enableInCommitTimestamps") == "true":
            info = {"inCommitTimestamp": info["timestamp"], **info}
        self.note(f"commit by hand: {json.dumps(actions)[:600]}")
        self.rewrite([{"commitInfo": info}, *actions], version=version)
