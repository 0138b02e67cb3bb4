"""What delta-rs writes, alone or beside Spark; it makes its own rows, from 1000 on, and none of them stays."""

from __future__ import annotations

from collections.abc import Sequence

from deltalake import write_deltalake

from mirror_assets_tests.worlds.operations.operation import Do, Lands, Operation, Trait, sql
from mirror_assets_tests.worlds.operations.source import Source, arrow

_RUST = frozenset({Trait.RUST})


def append(source: Source, ids: Sequence[int]) -> None:
    """Append rows with those of the ids that the table does not have."""
    new = sorted(set(ids) - set(source.table.to_pyarrow_table(columns=["id"])["id"].to_pylist()))
    write_deltalake(source.uri, arrow(new, "rust"), mode="append", schema_mode="merge")


def update(source: Source, ids: Sequence[int]) -> None:
    """Update names; the new one depends on the one before."""
    source.table.update(updates={"name": "concat(coalesce(name, ''), 'r')"}, predicate=_among(ids))


def change_key(source: Source, first: int, last: int) -> None:
    """Swap two keys, or change one to the other."""
    source.table.update(updates={"id": f"{first + last} - id"}, predicate=_among((first, last)))


def delete(source: Source, ids: Sequence[int]) -> None:
    """Delete rows."""
    source.table.delete(_among(ids))


def merge(source: Source, ids: Sequence[int], deleted: int, other: int) -> None:
    """Delete rows by the rest of their ids by 3, update or insert the others, and delete one that is not given."""
    merger = source.table.merge(arrow(ids, "rust"), "s.id = t.id", source_alias="s", target_alias="t")
    merger.when_matched_delete(f"s.id % 3 = {deleted % 3}").when_matched_update(
        {"name": "s.name", "amount": "t.amount + 1"}
    )
    merger.when_not_matched_insert({name: f"s.{name}" for name in ("id", "part", "name", "amount")})
    merger.when_not_matched_by_source_delete(f"t.id = {other}").execute()


def replace_where(source: Source, ids: Sequence[int], others: Sequence[int]) -> None:
    """Replace rows with any of the ids by rows with the first ones."""
    predicate = _among(sorted({*ids, *others}))
    write_deltalake(source.uri, arrow(ids, "where"), mode="overwrite", predicate=predicate, schema_mode="merge")


def restore(source: Source, commits: int) -> None:
    """Restore to the version before so many commits."""
    source.table.restore(max(0, source.version - commits))


def optimize(source: Source) -> None:
    """Compact files."""
    source.table.optimize.compact()


def _among(ids: Sequence[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def _rust(name: str, do: Do, lands: Lands) -> Operation:
    return Operation(f"{name} by delta-rs", do, lands, _RUST)


OPERATIONS = (
    _rust("append", lambda source: append(source, range(1000, 1010)), Lands(inserts=10)),
    _rust("update", lambda source: update(source, (1001, 1002)), Lands(updates=2)),
    _rust("update of a key", lambda source: change_key(source, 1003, 1103), Lands(inserts=1, deletes=1)),
    _rust("delete", lambda source: delete(source, (1004,)), Lands(deletes=1)),
    _rust("merge", lambda source: merge(source, (1005, 1006, 1020), 0, 1007), Lands(1, 1, 2)),
    _rust("replaceWhere", lambda source: replace_where(source, (1008, 1030), (1009,)), Lands(1, 1, 1)),
    _rust("optimize", optimize, Lands()),
    _rust("delete to be restored", lambda source: delete(source, (1001,)), Lands(deletes=1)),
    _rust("restore", lambda source: restore(source, 1), Lands(inserts=1, updates=None)),
    Operation(
        "update by Spark after delta-rs", sql("UPDATE {t} SET name = 's' WHERE id > 1020"), Lands(updates=2), _RUST
    ),
    Operation("delete by Spark after delta-rs", sql("DELETE FROM {t} WHERE id >= 1000"), Lands(deletes=8), _RUST),
)
