"""A lake of small tables written by delta-rs, in which faults can be planted before anybody looks."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

FEED = {"delta.enableChangeDataFeed": "true"}
_LOG = "_delta_log"


def _rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": numbers, "name": [f"n{number}" for number in numbers], "amount": [1.5] * count})


@dataclass(frozen=True)
class Lake:
    """Tables in folders below `folder`, with columns id, name and amount."""

    folder: Path

    def make(self, table: str) -> None:
        """Write the table at version 0, of ten rows, with its feed on."""
        write_deltalake(str(self.path(table)), _rows(0, 10), configuration=FEED)

    def path(self, table: str) -> Path:
        return self.folder / table

    def open(self, table: str) -> DeltaTable:
        return DeltaTable(str(self.path(table)))

    def update(self, table: str) -> None:
        """Commit an update of two rows, which writes a change file."""
        self.open(table).update({"amount": "amount + 1"}, predicate="id < 2")

    def append_null_key(self, table: str) -> None:
        row = pa.table({"id": pa.array([None], pa.int64()), "name": ["nobody"], "amount": [0.0]})
        write_deltalake(str(self.path(table)), row, mode="append")

    def change_type(self, table: str) -> None:
        """Commit the same table with another type of a column: nothing that has landed can go on with that."""
        rows = _rows(0, 10)
        texts = rows.set_column(2, "amount", pa.array(["1.5"] * 10))
        write_deltalake(str(self.path(table)), texts, mode="overwrite", schema_mode="overwrite")

    def move_away(self, table: str) -> None:
        self.path(table).rename(self.folder / "elsewhere")

    def move_back(self, table: str) -> None:
        (self.folder / "elsewhere").rename(self.path(table))

    def commit_lost(self, table: str) -> None:
        """Commit an update whose files are gone before anyone can read them; they are kept elsewhere."""
        self._commit_at_once(table, keeps_files=True)

    def restore(self, table: str) -> None:
        """Put the files of the lost commit in their place."""
        shutil.copytree(self._lost(table), self.path(table), dirs_exist_ok=True)

    def _lost(self, table: str) -> Path:
        return self.folder.parent / "lost" / table

    def commit_behind_gap(self, table: str) -> None:
        """Commit an update as the version after the next one, which is missing."""
        self._commit_at_once(table, gap=1)

    def close_gap(self, table: str) -> None:
        """Commit the update behind the gap as the version that is missing."""
        last = max(path for path in (self.path(table) / _LOG).glob("*.json"))
        last.rename(last.with_name(f"{int(last.stem) - 1:020}.json"))

    def commit_in_the_future(self, table: str) -> None:
        """Commit an update by a writer whose clock is an hour ahead."""

        def later(action: dict[str, dict[str, object]]) -> None:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = int((time.time() + 3600) * 1000)

        self._commit_at_once(table, edit=later)

    def _commit_at_once(
        self,
        table: str,
        edit: Callable[[dict[str, dict[str, object]]], None] = lambda _: None,
        *,
        keeps_files: bool = False,
        gap: int = 0,
    ) -> None:
        """Make the commit in a copy, and publish it from there, its log entry last: nobody sees it half done."""
        copy = self.folder.parent / "copies" / table
        shutil.copytree(self.path(table), copy)
        before = {path.relative_to(copy) for path in copy.rglob("*")}
        opened = DeltaTable(str(copy))
        opened.update({"amount": "amount + 1"}, predicate="id < 2")
        entry = Path(_LOG) / f"{opened.version():020}.json"
        actions = [json.loads(line) for line in (copy / entry).read_text(encoding="utf-8").splitlines()]
        for action in actions:
            edit(action)
        for path in copy.rglob("*"):
            own = path.relative_to(copy)
            if path.is_file() and own not in before and own.parts[0] != _LOG:
                place = (self._lost(table) if keeps_files else self.path(table)) / own
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        name = f"{opened.version() + gap:020}.json"
        unseen = self.path(table) / _LOG / f".{name}.tmp"
        unseen.write_text("".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8")
        unseen.rename(self.path(table) / _LOG / name)
        shutil.rmtree(copy)
