"""Statements by delta-rs."""

from __future__ import annotations

import shutil

from deltalake import write_deltalake

from mirror_assets_tests.histories.statement import Pick, Run, Statement, of_kind
from mirror_assets_tests.operations.features import FEED
from mirror_assets_tests.operations.operation import Trait
from mirror_assets_tests.operations.source import Source, arrow

_RUST = frozenset({Trait.RUST})


def _among(ids: tuple[int, ...]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def _new(source: Source, ids: tuple[int, ...]) -> list[int]:
    return sorted(set(ids) - set(source.table.to_pyarrow_table(columns=["id"])["id"].to_pylist()))


def _append(source: Source, pick: Pick) -> None:
    write_deltalake(source.uri, arrow(_new(source, pick.ids), "rust"), mode="append", schema_mode="merge")


def _update(source: Source, pick: Pick) -> None:
    source.table.update(updates={"name": "concat(coalesce(name, ''), 'r')"}, predicate=_among(pick.ids))


def _change_key(source: Source, pick: Pick) -> None:
    """The smallest and the largest are swapped, or one becomes the other."""
    first, last = pick.ids[0], pick.others[-1]
    source.table.update(updates={"id": f"{first + last} - id"}, predicate=_among((first, last)))


def _delete(source: Source, pick: Pick) -> None:
    source.table.delete(_among(pick.ids))


def _merge(source: Source, pick: Pick) -> None:
    merger = source.table.merge(arrow(pick.ids, "rust"), "s.id = t.id", source_alias="s", target_alias="t")
    merger.when_matched_delete(f"s.id % 3 = {pick.n % 3}").when_matched_update(
        {"name": "s.name", "amount": "t.amount + 1"}
    )
    merger.when_not_matched_insert({name: f"s.{name}" for name in ("id", "part", "name", "amount")})
    merger.when_not_matched_by_source_delete(f"t.id = {pick.others[0]}").execute()


def _replace_where(source: Source, pick: Pick) -> None:
    both = _among(tuple(sorted({*pick.ids, *pick.others})))
    write_deltalake(source.uri, arrow(pick.ids, "where"), mode="overwrite", predicate=both, schema_mode="merge")


def _restore(source: Source, pick: Pick) -> None:
    source.table.restore(max(0, source.version - 1 - pick.n % 3))


def _optimize(source: Source, _: Pick) -> None:
    source.table.optimize.compact()


def _replace_table(source: Source, pick: Pick) -> None:
    """By another one under the path, whose versions begin with 0."""
    shutil.rmtree(source.uri)
    write_deltalake(source.uri, arrow(pick.ids, "other"), configuration=FEED)


def _run(name: str, run: Run, *, appends: bool = False, breaks: bool = False, weight: int = 2) -> Statement:
    return Statement(f"{name} by delta-rs", run, appends=appends, breaks=breaks, needs=_RUST, weight=weight)


STATEMENTS = of_kind(
    "by delta-rs",
    _run("append", _append, appends=True),
    _run("update", _update),
    _run("keys changed or swapped", _change_key),
    _run("delete", _delete),
    _run("merge", _merge),
    _run("replaceWhere", _replace_where),
    _run("optimize", _optimize, appends=True, weight=1),
    _run("restore", _restore, breaks=True, weight=1),
    Statement("another table by delta-rs under the path", _replace_table, breaks=True),
)
