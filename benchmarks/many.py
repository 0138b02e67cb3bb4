"""Many small tables within seconds, each with its own table id, and commits that appear in all of them at once.

`python -m benchmarks.many --tables 100 FOLDER` makes them; `make dev MIRROR_CONFIG=FOLDER/mirror.yaml` shows them in
Dagster; `python -m benchmarks.many --commit FOLDER` makes a commit in each.
"""

from __future__ import annotations

import argparse
import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.suites.small import make_small

ROWS, CHANGED = 2_000, 51
_HEAD = "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\ntables:\n"
_LOG = "_delta_log"


@dataclass(frozen=True)
class ManyTables:
    """Copies of one small table in `folder`, with the mirror.yaml that mirrors them."""

    folder: Path
    names: tuple[str, ...]

    @classmethod
    def make(cls, folder: Path, tables: int) -> ManyTables:
        """Make so many tables of `ROWS` rows in a new folder; delta-rs writes one, the others are copies."""
        made = cls.named(folder, tables)
        make_small(made.pattern, ROWS)
        for name in made.names:
            _copy_as_another(made.pattern, made.source(name))
        made.configure()
        return made

    @classmethod
    def named(cls, folder: Path, tables: int) -> ManyTables:
        """So many tables in a new folder, which are not made yet."""
        folder.mkdir(parents=True)
        return cls(folder, tuple(f"t{number:03}" for number in range(tables)))

    def configure(self) -> None:
        """Write mirror.yaml."""
        lines = (f"  bench.{name}: {{source: ./lake/{name}, keys: [id]}}\n" for name in self.names)
        self.config.write_text(_HEAD + "".join(lines), encoding="utf-8")

    @classmethod
    def open(cls, folder: Path) -> ManyTables:
        """The tables that an earlier process has made there."""
        return cls(folder, tuple(sorted(path.name for path in (folder / "lake").iterdir())))

    @property
    def config(self) -> Path:
        """Their mirror.yaml."""
        return self.folder / "mirror.yaml"

    def source(self, name: str) -> Path:
        """The table's folder."""
        return self.folder / "lake" / name

    def manifest(self, name: str) -> Path:
        """The file in the landing zone that says which version is covered."""
        return self.folder / "landing" / "bench.schema" / name / "_mirror.json"

    def committed(self, name: str, version: int) -> int:
        """The moment of a table's commit (nanoseconds since 1970): when its log entry got its name."""
        return _entry(self.source(name), version).stat().st_ctime_ns

    def copied(self, folder: Path) -> ManyTables:
        """The same tables as far as they have landed, in another folder; paths in mirror.yaml are relative."""
        shutil.copytree(self.folder, folder)
        return ManyTables(folder, self.names)

    def commit(self) -> int:
        """Update `CHANGED` rows of every table; their new version.

        The update is made once, in the table that they are copies of, and its files are copied: a hundred tables
        have their commit within a fraction of a second, and what is measured starts for all of them at once.
        """
        version = _update(self.pattern)
        for name in self.names:
            _copy_commit(self.pattern, self.source(name), version)
        return version

    def commit_one(self, name: str) -> int:
        """Update `CHANGED` rows of one table; its new version. No `commit` may follow: this one would be lost."""
        return _update(self.source(name))

    @property
    def pattern(self) -> Path:
        """The table that the others are copies of; nobody mirrors it."""
        return self.folder / "pattern"


def _update(folder: Path) -> int:
    """Commit an update with delta-rs, which writes its change files; the new version."""
    table = DeltaTable(str(folder))
    first = (table.version() * CHANGED) % (ROWS - CHANGED)
    table.update({"amount": "amount + 1"}, predicate=f"id >= {first} AND id < {first + CHANGED}")
    return table.version()


def _copy_as_another(pattern: Path, copy: Path) -> None:
    """Copy the table; its id becomes another, as that of a table that was made by itself."""
    shutil.copytree(pattern, copy)
    entry = _entry(copy, 0)
    (known,) = (
        action["metaData"]["id"]
        for action in map(json.loads, entry.read_text(encoding="utf-8").splitlines())
        if "metaData" in action
    )
    entry.write_text(entry.read_text(encoding="utf-8").replace(known, str(uuid.uuid4())), encoding="utf-8")


def _copy_commit(pattern: Path, table: Path, version: int) -> None:
    """Copy what the commit has added, its log entry last and in one step: it is the commit."""
    entry = _entry(pattern, version)
    for action in map(json.loads, entry.read_text(encoding="utf-8").splitlines()):
        for kind in action.keys() & {"add", "cdc"}:
            path = action[kind]["path"]
            (table / path).parent.mkdir(exist_ok=True)
            shutil.copyfile(pattern / path, table / path)
    unseen = table / _LOG / f".{entry.name}.tmp"
    shutil.copyfile(entry, unseen)
    unseen.rename(_entry(table, version))


def _entry(table: Path, version: int) -> Path:
    return table / _LOG / f"{version:020}.json"


def main() -> None:
    """Make tables, or commits in tables that are there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--tables", type=int, default=100, metavar="N", help="how many to make (default: 100)")
    parser.add_argument("--commit", action="store_true", help="make a commit in each table that is there")
    options = parser.parse_args()
    if options.commit:
        print(f"version {ManyTables.open(options.folder).commit()} of each table")
    else:
        print(f"make dev MIRROR_CONFIG={ManyTables.make(options.folder.resolve(), options.tables).config}")


if __name__ == "__main__":
    main()
