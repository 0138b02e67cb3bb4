"""Proves keys by Spark: no NULLs, and as many different values as rows, at one version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.init.propose_keys import KeyCandidate, KeyProposal, Proof, column_sets
from mirror_assets.source.source_state import SourceState

_MOST_COLUMNS = 40
# Rows that are read first, and sets of columns that are counted in the whole table.
_SAMPLE, _EXACT = 10_000, 8
# Most sets repeat within so few rows.
_FIRST_LOOK = 500

_Columns: TypeAlias = tuple[str, ...]


def prove_key(spark: SparkSession, state: SourceState, uri: str, likely: Sequence[KeyCandidate]) -> KeyProposal | None:
    """Return the likeliest key of the table at the state's version; None when no set that was tried is one.

    The likeliest column is counted at once if its name says that it is a key. Else the first 10,000 rows rule sets of
    columns out, and at most eight of the others are counted in the whole table. Raises what Spark raises, as
    MirrorErrors.
    """
    with spark_errors(f"keys of {uri}"):
        table = spark.read.format("delta").option("versionAsOf", state.version).load(uri)
        return _Search(table, state, likely[:_MOST_COLUMNS]).run()


class _Search:
    """Looks for the first set of columns that is unique; columns are renamed, for names may have any character."""

    def __init__(self, table: DataFrame, state: SourceState, likely: Sequence[KeyCandidate]) -> None:
        self._likely, self._version = likely, state.version
        self._short = {one.column: f"c{index}" for index, one in enumerate(likely)}
        named = (F.col(f"`{name.replace('`', '``')}`").alias(short) for name, short in self._short.items())
        self._table = table.select(*named)
        self._rows = state.rows

    def run(self) -> KeyProposal | None:
        if not self._likely:
            return None
        if self._rows is None:
            self._rows = self._table.count()
        first, tried = self._likely[0], list[_Columns]()
        if first.alone and first.is_named and self._rows:
            tried = [(first.column,)]
            if self._is_key(tried[0]):
                return self._proposal(tried[0])
        waiting = [columns for columns in self._may_be_keys() if columns not in tried] if self._rows else []
        found = (columns for columns in waiting[:_EXACT] if self._is_key(columns))
        return next(map(self._proposal, found), None)

    def _may_be_keys(self) -> list[_Columns]:
        """Return the sets of columns that neither statistics nor the first rows rule out, the likeliest first."""
        most = {one.column: one.distinct_at_most for one in self._likely}
        sample = _Sample.of(self._table.limit(_SAMPLE), self._short)
        return [
            columns
            for columns in column_sets(self._likely)
            if not self._has_too_few([most[column] for column in columns]) and sample.may_be_key(columns)
        ]

    def _has_too_few(self, most: Sequence[int | None]) -> bool:
        """Whether columns with at most this many values can't identify all rows."""
        known = [number for number in most if number is not None]
        return len(known) == len(most) and prod(known) < (self._rows or 0)

    def _is_key(self, columns: _Columns) -> bool:
        shorts = [self._short[column] for column in columns]
        counted = self._table.groupBy(*shorts).agg(F.count(F.lit(1)).alias("rows"))
        broken = " OR ".join(["rows > 1", *(f"{short} IS NULL" for short in shorts)])
        return bool(counted.where(broken).isEmpty())

    def _proposal(self, columns: _Columns) -> KeyProposal:
        found = f"{self._rows:,} rows, 0 NULLs, {self._rows:,} distinct at version {self._version}"
        return KeyProposal(columns, Proof.PROVEN, found)


@dataclass(frozen=True)
class _Sample:
    """Rows of a table, each value as its number among those of its column; None is NULL."""

    numbers: Mapping[str, Sequence[int | None]] = field(repr=False)

    @classmethod
    def of(cls, rows: DataFrame, short: Mapping[str, str]) -> _Sample:
        """Read the rows."""
        read = rows.toArrow().combine_chunks()
        columns = {name: read[column].combine_chunks() for name, column in short.items()}
        return cls({name: pc.dictionary_encode(values).indices.to_pylist() for name, values in columns.items()})

    def may_be_key(self, columns: _Columns) -> bool:
        """Whether no two of these rows are equal in the columns, and none has a NULL in them."""
        chosen = [self.numbers[column] for column in columns]
        if any(None in numbers for numbers in chosen):
            return False
        return all(_differ([numbers[:count] for numbers in chosen]) for count in (_FIRST_LOOK, _SAMPLE))


def _differ(columns: Sequence[Sequence[int | None]]) -> bool:
    rows = list(zip(*columns, strict=True))
    return len(set(rows)) == len(rows)
