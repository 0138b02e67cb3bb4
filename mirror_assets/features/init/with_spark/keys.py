"""Proposes the columns of a table's key by names, types and the statistics of its log, and proves them with Spark.

Proven: no NULLs, and as many distinct values as rows, at one version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import pyarrow.compute as pc

from mirror_assets.features.init.with_spark.survey import Survey
from mirror_assets.source.commits import SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_version
from mirror_assets.spark_api import arrow_table
from mirror_assets.spark_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Microsoft advises fewer than five key columns.
_MOST_COLUMNS = 4
# Columns that are combined, and sets of them that are examined.
_POOL, MOST_SETS = 12, 1_000
# The cost of each further column in a set.
_COLUMN_COST = 1.2

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALONE = frozenset({"id", "key", "pk", "sk", "uuid", "guid"})
_STRONG = frozenset({"id", "key", "pk", "sk", "bk", "uuid", "guid"})
_WEAK = frozenset({"no", "nr", "num", "nbr", "number", "code"})
_PREFIXES = ("dim", "fact", "fct", "stg", "tbl", "raw")
# The cost of decimals without a fraction; others are nearly always measures.
_WHOLE_DECIMAL = 0.5
# A column with a lower cost has a name that suggests a key.
_NAMED = 3.0


class Proof(str, Enum):
    """The certainty of a proposal."""

    DECLARED = "declared"
    PROVEN = "proven"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class KeyProposal:
    """The proposed key columns, their certainty, and the finding in words."""

    columns: tuple[str, ...]
    proof: Proof
    finding: str


@dataclass(frozen=True)
class KeyCandidate:
    """A column that may be part of a key; `index` is its position in the table.

    The lower the `cost`, the likelier it is. `alone`: it may be the whole key. `distinct_at_most` is the number of
    values that statistics allow, None without statistics.
    """

    column: str
    index: int
    cost: float
    alone: bool
    distinct_at_most: int | None = None

    @property
    def is_named(self) -> bool:
        """Whether its name suggests a key."""
        return self.cost < _NAMED


def likely_key(survey: Survey) -> KeyProposal | None:
    """Return the key that a catalog declares, or else the likeliest by names and statistics; None without any."""
    if survey.table.declared_keys:
        finding = "the primary key of the catalog's constraint, which the catalog doesn't enforce"
        return KeyProposal(survey.table.declared_keys, Proof.DECLARED, finding)
    likely = [one for one in key_candidates(survey) if one.alone and one.is_named]
    if not likely:
        return None
    state = survey.state
    why = f"the table is empty at version {state.version}" if state.rows == 0 else "by name and statistics"
    return KeyProposal((likely[0].column,), Proof.NOT_PROVEN, why)


def key_candidates(survey: Survey) -> tuple[KeyCandidate, ...]:
    """Return the columns that may be part of the table's key, the likeliest first."""
    known = {column.name: column for column in survey.statistics}
    rows = survey.state.rows
    # Statistics include rows that deletion vectors hide.
    are_exact = rows is not None and rows == survey.state.stored_rows
    found = list[KeyCandidate]()
    for index, field in enumerate(survey.fields):
        unwritable = "${" in field.name or any("\ud800" <= character <= "\udfff" for character in field.name)
        of_type = _WHOLE_DECIMAL if field.type.endswith(",0)") else field.kind.key_cost
        if unwritable or field.kind.why_no_key or of_type is None:
            continue
        statistics = known.get(field.name)
        most = statistics.distinct_at_most if statistics else None
        has_nulls = are_exact and statistics is not None and bool(statistics.nulls_at_most)
        if has_nulls or (most == 1 and rows != 1):
            continue
        repeats = rows is not None and most is not None and most < rows
        cost = _name_cost(field.name, survey.name.table) + of_type + min(0.05 * index, 1.0)
        found.append(KeyCandidate(field.name, index, cost, not repeats, most))
    return tuple(sorted(found, key=lambda candidate: candidate.cost))


def column_sets(candidates: Sequence[KeyCandidate]) -> tuple[tuple[str, ...], ...]:
    """Return the sets of columns to examine, the likeliest first: each column alone, and the best ones combined.

    A set follows all of its subsets; its columns are in the table's order.
    """

    def cost(chosen: Sequence[KeyCandidate]) -> float:
        return sum(one.cost for one in chosen) + _COLUMN_COST * (len(chosen) - 1)

    sets = [(one,) for one in candidates if one.alone]
    pool = candidates[:_POOL]
    combined = [chosen for size in range(2, _MOST_COLUMNS + 1) for chosen in combinations(pool, size)]
    ordered = sorted([*sets, *combined], key=cost)[:MOST_SETS]
    return tuple(tuple(one.column for one in sorted(chosen, key=lambda one: one.index)) for chosen in ordered)


def _name_cost(column: str, table: str) -> float:
    words = [word.lower() for word in _WORD.findall(column)]
    plain, last = "".join(words), words[-1] if words else ""
    nouns = set(_nouns(table))
    if plain in _ALONE or any(plain == noun + ending for noun in nouns for ending in _STRONG):
        return 0.0
    if plain in nouns or any(plain == noun + ending for noun in nouns for ending in _WEAK):
        return 0.5
    if last in _STRONG:
        return 1.0
    return 1.5 if last in _WEAK else 4.0


def _nouns(table: str) -> Iterator[str]:
    """Yield the possible names of one row of the table: `order` for `fact_orders`."""
    words = [word.lower() for word in _WORD.findall(table)]
    words = words[1:] if len(words) > 1 and words[0] in _PREFIXES else words
    for name in ("".join(words), words[-1] if words else ""):
        yield name
        yield name.removesuffix("s")
        yield name.removesuffix("es")
        yield name.removesuffix("ies") + "y" if name.endswith("ies") else name


_MOST_PROVEN = 40
# Rows of the sample, and sets of columns that are counted in the whole table.
_SAMPLE, _EXACT = 10_000, 8
# Most sets repeat within this many rows.
_FIRST_ROWS = 500

_Columns: TypeAlias = tuple[str, ...]


def prove_key(
    spark: SparkSession, state: SourceState, log: DeltaLog, likely: Sequence[KeyCandidate]
) -> KeyProposal | None:
    """Return the likeliest key of the table at the state's version; None if no set that was tried is a key.

    The likeliest column is counted first if its name suggests a key. Otherwise the first 10,000 rows exclude sets of
    columns, and at most eight of the others are counted in the whole table. Raises Spark's errors as MirrorErrors.
    """
    from mirror_assets.encode.scan_reader import read_scan  # without Spark, keys are proposed only
    from mirror_assets.encode.spark_errors import spark_errors

    likely = likely[:_MOST_PROVEN]
    if not likely:
        return None
    with spark_errors(f"keys of {log.uri}"):
        # Columns are renamed, because names may have any character.
        short = {one.column: f"c{index}" for index, one in enumerate(likely)}
        named = [f"{quoted(name)} AS {alias}" for name, alias in short.items()]
        table = read_scan(spark, scan_version(log, state.version)).selectExpr(*named)
        rows = table.count() if state.rows is None else state.rows
        if not rows:
            return None
        tried = (likely[0].column,)
        if likely[0].alone and likely[0].is_named and _is_key(table, [short[likely[0].column]]):
            return _proposal(tried, rows, state.version)
        most = {one.column: one.distinct_at_most for one in likely}
        sample = arrow_table(table.limit(_SAMPLE)).combine_chunks()
        # Each value as its number among those of its column; None is NULL.
        numbers = {
            column: pc.dictionary_encode(sample[alias].combine_chunks()).indices.to_pylist()
            for column, alias in short.items()
        }
        waiting = [
            columns
            for columns in column_sets(likely)
            if not _has_too_few([most[column] for column in columns], rows)
            and _may_be_key([numbers[column] for column in columns])
            and not (columns == tried and likely[0].is_named)
        ]
        found = (columns for columns in waiting[:_EXACT] if _is_key(table, [short[column] for column in columns]))
        return next((_proposal(columns, rows, state.version) for columns in found), None)


def _has_too_few(most: Sequence[int | None], rows: int) -> bool:
    """Return whether columns with at most this many values can't identify all rows."""
    known = [number for number in most if number is not None]
    return len(known) == len(most) and prod(known) < rows


def _is_key(table: DataFrame, columns: Sequence[str]) -> bool:
    """Return whether the columns have no NULL and no duplicate in the whole table."""
    broken = " OR ".join(["count > 1", *(f"{column} IS NULL" for column in columns)])
    return bool(table.groupBy(*columns).count().where(broken).isEmpty())


def _proposal(columns: _Columns, rows: int, version: int) -> KeyProposal:
    return KeyProposal(columns, Proof.PROVEN, f"{rows:,} rows, 0 NULLs, {rows:,} distinct at version {version}")


def _may_be_key(columns: Sequence[Sequence[int | None]]) -> bool:
    """Return whether these columns have no NULL and no duplicate in the sample."""
    if any(None in numbers for numbers in columns):
        return False
    rows = list(zip(*columns, strict=True))
    return all(len(set(rows[:count])) == len(rows[:count]) for count in (_FIRST_ROWS, _SAMPLE))
