"""A source that goes on while its publishers are killed, and what must land of it, told by delta-rs alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mirror_assets.markers import Marker

_SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("amount", pa.float64())])
_FEED = {"delta.enableChangeDataFeed": "true"}
_NEW = ("insert", "update_postimage")


@dataclass(frozen=True)
class Change:
    """One landed row: its marker, its key, and the version that gave it its amount; a delete has only a key."""

    marker: Marker
    id: int
    amount: float | None


class Orders:
    """A table with key `id`. Every commit writes its own version into `amount`, so that changes can be told apart."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, rows: int = 60, files: int = 3) -> None:
        """Versions 0 to `files` - 1, each a file with its share of the rows."""
        share = rows // files
        for version in range(files):
            ids = range(version * share, (version + 1) * share)
            write_deltalake(self.path, _rows(ids, version), mode="append", configuration=_FEED)

    @property
    def tip(self) -> int:
        return self._table.version()

    def touch(self, rows: int = 30) -> None:
        """One commit that updates this many rows, the lowest by key."""
        last = sorted(self.ids())[:rows][-1]
        self._table.update(updates=self._amount, predicate=f"id <= {last}")

    def overwrite(self) -> None:
        """One commit that replaces every row: a commit of many parts that has to be paired."""
        write_deltalake(self.path, _rows(self.ids(), self.tip + 1), mode="overwrite")

    def go_on(self, random: Random) -> None:
        kinds = (self._insert, self._update, self._delete, self._merge, self._rename_key, self._compact)
        for _ in range(random.randint(1, 3)):
            random.choice(kinds)(random)

    def ids(self) -> list[int]:
        return [int(key) for key in self._table.to_pyarrow_table(columns=["id"])["id"].to_pylist()]

    def rows(self) -> pa.Table:
        return self._table.to_pyarrow_table().sort_by("id")

    def snapshot(self, version: int) -> Counter[Change]:
        rows = DeltaTable(self.path, version=version).to_pyarrow_table().to_pylist()
        return Counter(Change(Marker.INSERT, row["id"], row["amount"]) for row in rows)

    def changes(self, first: int, last: int) -> Counter[Change]:
        """What slices of changes must land of these versions: at most one change per key and commit."""
        if first > last:
            return Counter()
        feed = pa.table(self._table.load_cdf(first, last).read_all())
        commits: dict[tuple[int, int], list[tuple[str, float]]] = defaultdict(list)
        for row in feed.to_pylist():
            commits[row["_commit_version"], row["id"]].append((row["_change_type"], row["amount"]))
        return Counter(_net(key, rows) for (_, key), rows in commits.items())

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable(self.path)

    @property
    def _amount(self) -> dict[str, str]:
        return {"amount": f"{self.tip + 1}.0"}

    def _insert(self, random: Random) -> None:
        ids = range(begin := max(self.ids()) + 1, begin + random.randint(1, 25))
        write_deltalake(self.path, _rows(ids, self.tip + 1), mode="append")

    def _update(self, random: Random) -> None:
        self._table.update(updates=self._amount, predicate=f"id % {random.randint(2, 9)} = 1")

    def _delete(self, random: Random) -> None:
        gone = random.sample(ids := self.ids(), max(1, len(ids) // 10))
        self._table.delete(f"id IN ({', '.join(map(str, gone))})")

    def _merge(self, random: Random) -> None:
        ids = self.ids()
        rows = _rows([*random.sample(ids, len(ids) // 4), max(ids) + 1, max(ids) + 2], self.tip + 1)
        merge = self._table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def _rename_key(self, random: Random) -> None:
        ids = self.ids()
        changed = {**self._amount, "id": str(max(ids) + 1)}
        self._table.update(updates=changed, predicate=f"id = {random.choice(ids)}")

    def _compact(self, _: Random) -> None:
        self._table.optimize.compact()


def _rows(ids: Iterable[int], version: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "name": f"n{i}", "amount": float(version)} for i in ids], _SCHEMA)


def _net(key: int, rows: Sequence[tuple[str, float]]) -> Change:
    """What the feed's rows of one key and commit come to."""
    new = [amount for kind, amount in rows if kind in _NEW]
    if not new:
        return Change(Marker.DELETE, key, None)
    return Change(Marker.UPDATE if len(rows) > len(new) else Marker.INSERT, key, new[0])
