"""A statement that may be run on a source at any moment, as a value; what it does exactly is picked at random."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from mirror_assets_tests.worlds.operations.operation import Operation, Trait
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, values


@dataclass(frozen=True)
class Pick:
    """What a statement is about: some ids of rows that may be there or not, and a number for anything else."""

    ids: tuple[int, ...]
    others: tuple[int, ...]
    n: int

    def sql(self, source: Source, *statements: str) -> None:
        """Run statements.

        {t} is the table, {columns} are those of its first schema, {ids} and {others} are lists, {n} is the number,
        {part} a partition, {rows} a query for rows with the ids, and {new} one for those that the table does not have.
        """
        ids, others = (", ".join(map(str, picked)) for picked in (self.ids, self.others))
        words = {"t": "{t}", "columns": COLUMNS, "ids": ids, "others": others, "n": self.n, "part": self.n % 2}
        words |= {"rows": values(self.ids, f"v{self.n}"), "new": new_rows(self)}
        for statement in statements:
            source.sql(statement.format(**words))


def new_rows(pick: Pick) -> str:
    """A query for rows with the picked ids that the table does not have."""
    return f"SELECT * FROM ({values(pick.ids)}) WHERE id NOT IN (SELECT id FROM {{t}})"


Run = Callable[[Source, Pick], None]


@dataclass(frozen=True, repr=False)
class Statement:
    """One statement, or a few in a row.

    `appends`: no row that is there changes or goes. `breaks`: the mirror may have to be rebuilt; behind others, never.
    """

    name: str
    run: Run
    appends: bool = False
    breaks: bool = False
    needs: frozenset[Trait] = frozenset()
    never_with: frozenset[Trait] = frozenset()
    weight: int = 1
    kind: str = ""

    def __repr__(self) -> str:
        return f"{self.name!r}"

    def fits(self, traits: frozenset[Trait]) -> bool:
        """Whether a table with these traits can have it."""
        return self.needs <= traits and not self.never_with & traits


def of_kind(kind: str, *statements: Statement) -> tuple[Statement, ...]:
    """The statements, to be counted together."""
    return tuple(replace(statement, kind=kind) for statement in statements)


def sql(*statements: str) -> Run:
    """Run the statements, as `Pick.sql` does."""
    return lambda source, pick: pick.sql(source, *statements)


def of(operation: Operation) -> Statement:
    """An operation of the catalogue that touches no row, and works on any table that it fits."""
    return Statement(
        operation.name,
        lambda source, _: operation.do(source),
        appends=True,
        needs=operation.needs,
        never_with=operation.never_with,
    )


# Few ids, so that statements meet; key changes make others of them.
_IDS = st.sets(st.integers(0, 9), min_size=1, max_size=4).map(lambda ids: tuple(sorted(ids)))
PICKS = st.builds(Pick, _IDS, _IDS, st.integers(0, 9))


def bursts(statements: Iterable[Statement], least: int, most: int) -> st.SearchStrategy[list[tuple[Statement, Pick]]]:
    """Some of the statements in a row, each as often as it weighs."""
    weighed = [statement for statement in statements for _ in range(statement.weight)]
    return st.lists(st.tuples(st.sampled_from(weighed), PICKS), min_size=least, max_size=most)
