"""Statements by delta-rs."""

from __future__ import annotations

import shutil

from deltalake import write_deltalake

from mirror_assets_tests.worlds.histories.statement import Pick, Run, Statement, of_kind
from mirror_assets_tests.worlds.operations import by_rust
from mirror_assets_tests.worlds.operations.features import FEED
from mirror_assets_tests.worlds.operations.operation import Trait
from mirror_assets_tests.worlds.operations.source import Source, arrow


def _replace_table(source: Source, pick: Pick) -> None:
    """By another one under the path, whose versions begin with 0."""
    shutil.rmtree(source.uri)
    write_deltalake(source.uri, arrow(pick.ids, "other"), configuration=FEED)


def _run(name: str, run: Run, *, appends: bool = False, breaks: bool = False, weight: int = 2) -> Statement:
    needs = frozenset({Trait.RUST})
    return Statement(f"{name} by delta-rs", run, appends=appends, breaks=breaks, needs=needs, weight=weight)


STATEMENTS = of_kind(
    "by delta-rs",
    _run("append", lambda source, pick: by_rust.append(source, pick.ids), appends=True),
    _run("update", lambda source, pick: by_rust.update(source, pick.ids)),
    _run("keys changed or swapped", lambda source, pick: by_rust.change_key(source, pick.ids[0], pick.others[-1])),
    _run("delete", lambda source, pick: by_rust.delete(source, pick.ids)),
    _run("merge", lambda source, pick: by_rust.merge(source, pick.ids, pick.n, pick.others[0])),
    _run("replaceWhere", lambda source, pick: by_rust.replace_where(source, pick.ids, pick.others)),
    _run("optimize", lambda source, _: by_rust.optimize(source), appends=True, weight=1),
    _run("restore", lambda source, pick: by_rust.restore(source, 1 + pick.n % 3), breaks=True, weight=1),
    Statement("another table by delta-rs under the path", _replace_table, breaks=True),
)
