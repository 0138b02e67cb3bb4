"""Bugs for the machine to find: the encoder with a few words of its text exchanged, or a plan that is wrong."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import DataFrame, Observation

from mirror_assets.encode import changes, net_changes, part_assignment
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.source.schema import LandedColumn
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.conservation import ROW_CONSERVATION
from mirror_assets_tests.worlds.histories.history import Way

Inject = Callable[[pytest.MonkeyPatch], None]
_DIFFERING = ("pipeline.stage.encode_differences",)
_PAIRED = ("encode.changes.paired_rows", "encode.changes.landed_in_parts")


@dataclass(frozen=True)
class Bug:
    """One bug, where changes are found this way. The blocking checks are off, for some would stop it.

    `needs_many_parts`: it shows only in slices of many parts in which keys change several times.
    """

    name: str
    way: Way
    inject: Inject
    needs_many_parts: bool = False

    def __str__(self) -> str:
        return self.name


def unchecked(patch: pytest.MonkeyPatch) -> None:
    """Let every staged slice land, and none be read by files because its rows disagree with the log."""
    passed = tuple(CheckResult(check, ()) for check in BLOCKING_CHECKS)
    patch.setattr("mirror_assets.pipeline.check_slice.check_staged", lambda *_: passed)
    patch.setattr("mirror_assets.pipeline.stage.check_rows", lambda *_: CheckResult(ROW_CONSERVATION))


def with_text(module: ModuleType, used: Sequence[str], *exchanged: tuple[str, str]) -> Inject:
    """What the module calls by the last words of `used`, as its text would have it with words exchanged."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        mutated = _mutated(module, exchanged)
        for name in used:
            patch.setattr(f"mirror_assets.{name}", getattr(mutated, name.rpartition(".")[2]))

    return inject


def _mutated(module: ModuleType, exchanged: Sequence[tuple[str, str]]) -> ModuleType:
    spec = module.__spec__
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text()
    for old, new in exchanged:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    mutated = importlib.util.module_from_spec(spec)
    exec(compile(text, spec.origin, "exec"), mutated.__dict__)  # noqa: S102
    return mutated


def _moved(patch: pytest.MonkeyPatch) -> None:
    """What once was after the exchange, and here is after what would count the rows in other files."""

    right = changes.landed_in_parts

    def moved(
        pairs: DataFrame, columns: Sequence[LandedColumn], footer: Mapping[str, str], counted: Observation
    ) -> DataFrame:
        rows = right(pairs, columns, footer, counted)
        return rows.coalesce(int(rows.rdd.getNumPartitions()))

    patch.setattr("mirror_assets.encode.changes.landed_in_parts", moved)


BUGS = (
    Bug("part order: Spark moves partitions after the exchange", Way.FEED, _moved, needs_many_parts=True),
    Bug(
        "ordering: new rows before old ones",
        Way.FEED,
        with_text(changes, _PAIRED, (".orderBy(ours.is_new)", ".orderBy(F.desc(ours.is_new))")),
    ),
    Bug(
        "pairing: a new row without its old one",
        Way.FEED,
        with_text(changes, _PAIRED, ("F.lag(ours.is_new).over(window)", "F.lit(None).cast('boolean')")),
    ),
    Bug(
        "ordering: commits of a part in no order",
        Way.FEED,
        with_text(
            changes,
            _PAIRED,
            ("return placed.where(", "return placed.sortWithinPartitions(F.desc(ours.order)).where("),
        ),
    ),
    Bug(
        "key change: the old key stays",
        Way.FEED,
        with_text(
            changes,
            _PAIRED,
            ("        is_new.alias(ours.is_new),\n", "        is_new.alias(ours.is_new),\n        '_change_type',\n"),
            ("F.col(ours.next).isNull()", "(F.col(ours.next).isNull() & (F.col('_change_type') == 'delete'))"),
        ),
    ),
    Bug(
        "part assignment: later commits in earlier parts",
        Way.FEED,
        with_text(
            part_assignment,
            ("encode.changes.part_of_row",),
            (
                "[assignment.first_part - group.first_part for",
                "[group.parts - assignment.first_part + group.first_part - assignment.parts for",
            ),
        ),
    ),
    Bug(
        "net: the first row of a key lands, not its last",
        Way.COMPACT,
        with_text(
            net_changes,
            ("pipeline.stage.encode_net",),
            (".orderBy(COMMIT_VERSION, ours.is_new)", ".orderBy(F.desc(COMMIT_VERSION), ours.is_new)"),
        ),
    ),
    Bug(
        "files: the last column is not compared",
        Way.FILES,
        with_text(net_changes, _DIFFERING, ("in columns.items() if name", "in [*columns.items()][:-1] if name")),
    ),
    Bug(
        "files: a key that both versions have is unchanged",
        Way.FILES,
        with_text(net_changes, _DIFFERING, ("& F.col(names.is_same)))", "))")),
    ),
    Bug(
        "files: the old rows are not read",
        Way.FILES,
        with_text(net_changes, _DIFFERING, ("self._stamped(self.old,", "self._stamped(self.old.limit(0),")),
    ),
    Bug(
        "row tracking: a row's id is its stamp",
        Way.TRACKED,
        with_text(net_changes, _DIFFERING, ("F.coalesce(ROW_VERSION, none)", "F.lit(1)")),
    ),
)
