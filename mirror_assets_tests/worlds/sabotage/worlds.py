"""The tables in which faults matter: one source with many features, mirrored in several ways, with commits that wait.

The statements run once. Each world is a copy of the source in which the commits after the base wait to be mirrored, and
each fault gets a copy of its world.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pyspark.sql import SparkSession

from mirror_assets_tests.lab import Lab

BASE = 2
"""The version that is mirrored before the waiting commits; also the first one in which all columns exist."""

_COLUMNS = (
    "id INT, place INT, name STRING, code CHAR(4), price DECIMAL(10,2), at TIMESTAMP, weight FLOAT, "
    "tags STRUCT<a: INT, b: STRING>, area STRING"
)
_VALUES = (
    "CAST(id AS INT), CAST(1000 + id AS INT), IF(id % 4 = 0, '', concat('name ', id)), concat('c', id % 10), "
    "CAST(id + 0.25 AS DECIMAL(10,2)), timestamp_millis(1600000000000 + id), CAST(id / 3 AS FLOAT), "
    "named_struct('a', CAST(id AS INT), 'b', concat('b', id)), IF(id % 2 = 0, 'west', 'east')"
)
_STATEMENTS = (
    (
        f"CREATE TABLE {{t}} ({_COLUMNS}) USING delta PARTITIONED BY (area) TBLPROPERTIES ("
        "delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true, delta.enableRowTracking = true)"
    ),
    f"INSERT INTO {{t}} SELECT {_VALUES} FROM range(0, 10, 1, 1)",
    "ALTER TABLE {t} ADD COLUMNS (note STRING)",
    "UPDATE {t} SET price = 100 WHERE id IN (1, 2)",  # 3
    "UPDATE {t} SET price = 200 WHERE id = 1",  # 4
    "DELETE FROM {t} WHERE id = 3",  # 5
    f"INSERT INTO {{t}} SELECT {_VALUES}, concat('note ', id) FROM range(77, 79, 1, 1)",  # 6
    "UPDATE {t} SET id = 500 WHERE id = 5",  # 7
    "UPDATE {t} SET price = 300 WHERE id = 7",  # 8
)
_WHOLE = "slices: {max_commits: 100}"
_CONDITION = "id <> 6\n    columns: {name: {sql: \"concat('x', name)\"}}"


class World(Enum):
    """A source, and how it is mirrored."""

    LOAD = "first load"
    CHUNKS = "first load in chunks"
    LOAD_WHERE = "first load, `where` and a mask"
    FEED = "changes"
    FEED_WHERE = "changes, `where` and a mask"
    NET = "net changes"
    KEYLESS = "row tracking, no keys"
    APPENDS = "appends"


@dataclass(frozen=True)
class _Making:
    """The settings of a world, and its waiting commits by their versions."""

    table: str = ""
    keys: str = "[id]"
    defaults: str = _WHOLE
    base: int | None = BASE
    tip: int = 8


_MAKING = {
    World.LOAD: _Making(base=None),
    World.CHUNKS: _Making(base=None, defaults="slices: {max_rows: 5}"),
    World.LOAD_WHERE: _Making(f"where: {_CONDITION}", base=None),
    World.FEED: _Making(),
    World.FEED_WHERE: _Making(f"where: {_CONDITION}"),
    World.NET: _Making("compact: true"),
    World.KEYLESS: _Making("changes: row_tracking", keys="[]"),
    World.APPENDS: _Making("changes: append_only", keys="[]", base=0, tip=1),
}


@dataclass(frozen=True)
class Worlds:
    """Makes worlds, each once, and copies of them."""

    spark: SparkSession
    folder: Path

    def copy(self, world: World, name: str) -> Lab:
        target = self.folder / "copies" / name
        shutil.copytree(self._made(world), target)
        return Lab(self.spark, target)

    def _source(self) -> Path:
        lab = Lab(self.spark, self.folder / "source")
        if not lab.root.exists():
            lab.root.mkdir(parents=True)
            lab.sql(*_STATEMENTS)
        return Path(lab.uri)

    def _made(self, world: World) -> Path:
        root, making = self.folder / world.name, _MAKING[world]
        if root.exists():
            return root
        lab = Lab(self.spark, root)
        lake = Path(shutil.copytree(self._source(), lab.uri))
        lab.configure(making.table, making.defaults, making.keys)
        waiting = {version: _commit(lake, version).read_text() for version in range(len(_STATEMENTS))}
        for version in waiting:
            # Hadoop's checksum would refuse another commit, and Delta's would show a version that isn't there.
            _commit(lake, version).with_name(f".{version:020d}.json.crc").unlink(missing_ok=True)
            _commit(lake, version).with_suffix(".crc").unlink(missing_ok=True)
            if version > (making.tip if making.base is None else making.base):
                _commit(lake, version).unlink()
        if making.base is not None:
            lab.mirror()
            lab.replicator.poll()
            for version in range(making.base + 1, making.tip + 1):
                _commit(lake, version).write_text(waiting[version])
        return root


def _commit(lake: Path, version: int) -> Path:
    return lake / "_delta_log" / f"{version:020d}.json"
