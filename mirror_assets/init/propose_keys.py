"""Which columns may be a table's key: by names, types and the statistics of its log, the likeliest first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from mirror_assets.config import why_no_key
from mirror_assets.init.survey import Survey
from mirror_assets.source.column_statistics import ColumnStatistics
from mirror_assets.source.schema import Field

# Microsoft advises fewer than five key columns.
_MOST_COLUMNS = 4
# Columns that are combined, and sets of them that are examined.
_POOL, MOST_SETS = 12, 1_000

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALONE = frozenset({"id", "key", "pk", "sk", "uuid", "guid"})
_STRONG = frozenset({"id", "key", "pk", "sk", "bk", "uuid", "guid"})
_WEAK = frozenset({"no", "nr", "num", "nbr", "number", "code"})
_PREFIXES = ("dim", "fact", "fct", "stg", "tbl", "raw")
_TEXTS = ("string", "char", "varchar")
# A name below this says that the column identifies something.
_NAMED = 3.0


class Proof(str, Enum):
    """How sure a proposal is."""

    DECLARED = "declared"
    PROVEN = "proven"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class KeyProposal:
    """Columns that may be the key, how sure that is, and what was found, in words."""

    columns: tuple[str, ...]
    proof: Proof
    finding: str


@dataclass(frozen=True)
class KeyCandidate:
    """A column that may be in a key; `index` is its place in the table.

    The less `cost`, the likelier. `alone`: it may be the whole key. `distinct_at_most` is what statistics prove, None
    where they prove nothing.
    """

    column: str
    index: int
    cost: float
    alone: bool
    distinct_at_most: int | None = None

    @property
    def is_named(self) -> bool:
        """Whether its name says that it identifies something."""
        return self.cost < _NAMED


def key_candidates(survey: Survey, table: str) -> tuple[KeyCandidate, ...]:
    """Return the columns that may be in the key of the table with this name, the likeliest first."""
    known = {column.name: column for column in survey.statistics}
    found = (
        _candidate(survey, index, table, known.get(field.name))
        for index, field in enumerate(survey.fields)
        if _may_be_key(survey, field, known.get(field.name))
    )
    return tuple(sorted(found, key=lambda candidate: candidate.cost))


def assumed_key(survey: Survey, table: str) -> KeyProposal | None:
    """Return the key that names and statistics make likely; None where no column's name says that it is one."""
    likely = [one for one in key_candidates(survey, table) if one.alone and one.is_named]
    if not likely:
        return None
    state = survey.state
    why = f"the table is empty at version {state.version}" if state.rows == 0 else "by name and statistics"
    return KeyProposal((likely[0].column,), Proof.NOT_PROVEN, why)


def declared_key(columns: Sequence[str]) -> KeyProposal | None:
    """Return the key that a catalog declares, if it declares one."""
    finding = "the primary key of the catalog's constraint, which nothing enforces"
    return KeyProposal(tuple(columns), Proof.DECLARED, finding) if columns else None


def column_sets(candidates: Sequence[KeyCandidate]) -> tuple[tuple[str, ...], ...]:
    """Return the sets of columns to examine, the likeliest first: each column alone, and the best of them together.

    A set comes behind all of its subsets; its columns are in the table's order.
    """
    pool = candidates[:_POOL]
    sets = [(one,) for one in candidates if one.alone]
    together = [chosen for size in range(2, _MOST_COLUMNS + 1) for chosen in combinations(pool, size)]
    ordered = sorted([*sets, *together], key=_cost_of_set)
    return tuple(map(_in_order, ordered[:MOST_SETS]))


def _in_order(chosen: Sequence[KeyCandidate]) -> tuple[str, ...]:
    return tuple(one.column for one in sorted(chosen, key=lambda one: one.index))


def _cost_of_set(chosen: Sequence[KeyCandidate]) -> float:
    return sum(one.cost for one in chosen) + 1.2 * (len(chosen) - 1)


def _candidate(survey: Survey, index: int, table: str, known: ColumnStatistics | None) -> KeyCandidate:
    field = survey.fields[index]
    most = known.distinct_at_most if known else None
    return KeyCandidate(field.name, index, _cost(field, index, table), not _repeats(survey, known), most)


def _may_be_key(survey: Survey, field: Field, known: ColumnStatistics | None) -> bool:
    if why_no_key(field.type) or "${" in field.name or any("\ud800" <= c <= "\udfff" for c in field.name):
        return False
    if field.type == "boolean":
        return False
    has_nulls = known is not None and bool(known.nulls_at_most) and not _has_hidden_rows(survey)
    is_constant = known is not None and known.distinct_at_most == 1 and survey.state.rows != 1
    return not has_nulls and not is_constant


def _has_hidden_rows(survey: Survey) -> bool:
    """Whether statistics may count rows that are no longer in the table."""
    return survey.state.rows is None or survey.state.rows != survey.state.stored_rows


def _repeats(survey: Survey, known: ColumnStatistics | None) -> bool:
    """Whether statistics prove that values repeat: there are more rows than values."""
    rows = survey.state.rows
    return (
        rows is not None and known is not None and known.distinct_at_most is not None and known.distinct_at_most < rows
    )


def _cost(field: Field, index: int, table: str) -> float:
    return _name_cost(field.name, table) + _type_cost(field.type) + min(0.05 * index, 1.0)


def _name_cost(column: str, table: str) -> float:
    words = [word.lower() for word in _WORD.findall(column)]
    plain = "".join(words)
    nouns = set(_nouns(table))
    if plain in _ALONE or any(plain == noun + ending for noun in nouns for ending in _STRONG):
        return 0.0
    if plain in nouns or any(plain == noun + ending for noun in nouns for ending in _WEAK):
        return 0.5
    if words and words[-1] in _STRONG:
        return 1.0
    return 1.5 if words and words[-1] in _WEAK else 4.0


def _nouns(table: str) -> Iterator[str]:
    """Yield what one row of the table may be called: `order` of `fact_orders`."""
    words = [word.lower() for word in _WORD.findall(table)]
    words = words[1:] if len(words) > 1 and words[0] in _PREFIXES else words
    for name in ("".join(words), words[-1] if words else ""):
        yield name
        yield name.removesuffix("s")
        yield name.removesuffix("es")
        yield name.removesuffix("ies") + "y" if name.endswith("ies") else name


def _type_cost(column_type: str) -> float:
    """Numbers are often measures, and decimals nearly always; texts and dates rarely are."""
    if column_type.startswith(_TEXTS):
        return 0.0
    if column_type.startswith("decimal(") and not column_type.endswith(",0)"):
        return 4.0
    return 2.0 if column_type in ("timestamp", "timestamp_ntz", "binary") else 0.5
