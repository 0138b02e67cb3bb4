"""Proves keys by Spark: no NULLs, and as many different values as rows, at one version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.init.propose_keys import KeyCandidate, KeyProposal, Proof, column_sets
from mirror_assets.source.source_state import SourceState

_MOST_COLUMNS = 40
# Sets of columns that one pass over the table estimates, and sets that are counted exactly.
_SETS, _EXACT = 24, 6
# An estimate of Spark's is off by 5 % as a rule, and hardly ever by three times that.
_ENOUGH = 0.85

_Columns: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class _Counts:
    """The rows of a table, and of its columns without NULLs about how many different values they have."""

    rows: int
    distinct: Mapping[str, int]

    def may_be_unique(self, columns: Sequence[str]) -> bool:
        """Whether the columns have values enough for all rows to differ."""
        known = all(column in self.distinct for column in columns)
        return known and prod(self.distinct[column] for column in columns) >= self.rows * _ENOUGH


def prove_key(spark: SparkSession, state: SourceState, uri: str, likely: Sequence[KeyCandidate]) -> KeyProposal | None:
    """Return the likeliest key of the table at the state's version; None when no set that was tried is one.

    The likeliest column is counted at once if statistics show that it has no NULLs. Else the table is read once for all
    columns, once more for every 24 sets of columns, and at most six times to count a set exactly. Raises what Spark
    raises, as MirrorErrors.
    """
    with spark_errors(f"keys of {uri}"):
        table = spark.read.format("delta").option("versionAsOf", state.version).load(uri)
        return _Search(table, state, likely[:_MOST_COLUMNS]).run()


class _Search:
    """Looks for the first set of columns that is unique; columns are renamed, for names may have any character."""

    def __init__(self, table: DataFrame, state: SourceState, likely: Sequence[KeyCandidate]) -> None:
        self._likely, self._state = likely, state
        self._short = {one.column: f"c{index}" for index, one in enumerate(likely)}
        named = (F.col(f"`{name.replace('`', '``')}`").alias(short) for name, short in self._short.items())
        self._table = table.select(*named)

    def run(self) -> KeyProposal | None:
        first = self._likely[0] if self._likely else None
        rows = self._state.rows
        if (
            first
            and first.alone
            and first.is_named
            and first.has_no_nulls
            and rows
            and self._is_unique((first.column,))
        ):
            return self._proposal((first.column,), rows)
        return self._among(self._count()) if self._likely else None

    def _among(self, counts: _Counts) -> KeyProposal | None:
        """Return the first set that is unique, of those that may be by the numbers of different values."""
        estimates: dict[_Columns, int] = {(column,): number for column, number in counts.distinct.items()}
        waiting = [columns for columns in column_sets(self._likely) if counts.may_be_unique(columns)]
        tries = 0
        for index, columns in enumerate(waiting if counts.rows else ()):
            if columns not in estimates:
                estimates |= self._estimate([one for one in waiting[index:] if one not in estimates][:_SETS])
            if estimates[columns] < counts.rows * _ENOUGH:
                continue
            if self._is_unique(columns):
                return self._proposal(columns, counts.rows)
            tries += 1
            if tries == _EXACT:
                break
        return None

    def _count(self) -> _Counts:
        shorts = list(self._short.values())
        row = self._table.agg(
            F.count(F.lit(1)),
            *(F.count(short) for short in shorts),
            *(F.approx_count_distinct(short) for short in shorts),
        ).first()
        numbers = [int(number) for number in row or ()]
        rows, filled, distinct = numbers[0], numbers[1 : len(shorts) + 1], numbers[len(shorts) + 1 :]
        columns = zip(self._short, filled, distinct, strict=True)
        return _Counts(rows, {name: values for name, not_null, values in columns if not_null == rows})

    def _estimate(self, sets: Sequence[_Columns]) -> dict[_Columns, int]:
        structs = (F.struct(*(self._short[column] for column in columns)) for columns in sets)
        row = self._table.agg(*(F.approx_count_distinct(struct) for struct in structs)).first()
        return dict(zip(sets, row or (), strict=True))

    def _is_unique(self, columns: _Columns) -> bool:
        counted = self._table.groupBy(*(self._short[column] for column in columns)).agg(F.count(F.lit(1)).alias("rows"))
        return bool(counted.where("rows > 1").isEmpty())

    def _proposal(self, columns: _Columns, rows: int) -> KeyProposal:
        found = f"{rows:,} rows, 0 NULLs, {rows:,} distinct at version {self._state.version}"
        return KeyProposal(columns, Proof.PROVEN, found)
