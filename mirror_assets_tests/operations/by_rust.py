"""What delta-rs writes, alone or beside Spark; it makes its own rows, from 1000 on, and none of them stays."""

from __future__ import annotations

from deltalake import write_deltalake

from mirror_assets_tests.operations.operation import Lands, Operation, Trait, sql
from mirror_assets_tests.operations.source import Source, arrow

_RUST = frozenset({Trait.RUST})


def _append(source: Source) -> None:
    write_deltalake(source.uri, arrow(range(1000, 1010)), mode="append")


def _update(source: Source) -> None:
    source.table.update(updates={"name": "'r'"}, predicate="id IN (1001, 1002)")


def _update_key(source: Source) -> None:
    source.table.update(updates={"id": "id + 100"}, predicate="id = 1003")


def _delete(source: Source) -> None:
    source.table.delete("id = 1004")


def _merge(source: Source) -> None:
    merger = source.table.merge(arrow([1005, 1006, 1020], "m"), "s.id = t.id", source_alias="s", target_alias="t")
    merger.when_matched_delete("s.id = 1005").when_matched_update({"name": "s.name"})
    merger.when_not_matched_insert({name: f"s.{name}" for name in ("id", "part", "name", "amount")})
    merger.when_not_matched_by_source_delete("t.id = 1007").execute()


def _replace_where(source: Source) -> None:
    write_deltalake(
        source.uri, arrow([1008, 1030], "w"), mode="overwrite", predicate="id = 1008 OR id = 1009 OR id = 1030"
    )


def _optimize(source: Source) -> None:
    source.table.optimize.compact()


def _delete_to_be_restored(source: Source) -> None:
    source.table.delete("id = 1001")


def _restore(source: Source) -> None:
    source.table.restore(source.version - 1)


OPERATIONS = (
    Operation("append by delta-rs", _append, Lands(inserts=10), _RUST),
    Operation("update by delta-rs", _update, Lands(updates=2), _RUST),
    Operation("update of a key by delta-rs", _update_key, Lands(inserts=1, deletes=1), _RUST),
    Operation("delete by delta-rs", _delete, Lands(deletes=1), _RUST),
    Operation("merge by delta-rs", _merge, Lands(1, 1, 2), _RUST),
    Operation("replaceWhere by delta-rs", _replace_where, Lands(1, 1, 1), _RUST),
    Operation("optimize by delta-rs", _optimize, Lands(), _RUST),
    Operation("delete to be restored by delta-rs", _delete_to_be_restored, Lands(deletes=1), _RUST),
    Operation("restore by delta-rs", _restore, Lands(inserts=1, updates=None), _RUST),
    Operation(
        "update by Spark behind delta-rs", sql("UPDATE {t} SET name = 's' WHERE id > 1020"), Lands(updates=2), _RUST
    ),
    Operation("delete by Spark behind delta-rs", sql("DELETE FROM {t} WHERE id >= 1000"), Lands(deletes=8), _RUST),
)
