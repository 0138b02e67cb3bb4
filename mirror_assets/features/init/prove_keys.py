"""Proves keys with Spark: no NULLs, and as many distinct values as rows, at one version."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.features.init.propose_keys import KeyCandidate, KeyProposal, Proof, column_sets
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_version
from mirror_assets.source.source_state import SourceState

_MOST_COLUMNS = 40
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
    likely = likely[:_MOST_COLUMNS]
    if not likely:
        return None
    with spark_errors(f"keys of {log.uri}"):
        # Columns are renamed, because names may have any character.
        short = {one.column: f"c{index}" for index, one in enumerate(likely)}
        named = (F.col(f"`{name.replace('`', '``')}`").alias(alias) for name, alias in short.items())
        table = read_scan(spark, scan_version(log, state.version)).select(*named)
        rows = table.count() if state.rows is None else state.rows
        if not rows:
            return None
        tried = (likely[0].column,)
        if likely[0].alone and likely[0].is_named and _is_key(table, [short[likely[0].column]]):
            return _proposal(tried, rows, state.version)
        most = {one.column: one.distinct_at_most for one in likely}
        numbers = _numbered(table.limit(_SAMPLE).toArrow())
        waiting = [
            columns
            for columns in column_sets(likely)
            if not _has_too_few([most[column] for column in columns], rows)
            and _may_be_key([numbers[short[column]] for column in columns])
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
    counted = table.groupBy(*columns).agg(F.count(F.lit(1)).alias("rows"))
    broken = " OR ".join(["rows > 1", *(f"{column} IS NULL" for column in columns)])
    return bool(counted.where(broken).isEmpty())


def _proposal(columns: _Columns, rows: int, version: int) -> KeyProposal:
    return KeyProposal(columns, Proof.PROVEN, f"{rows:,} rows, 0 NULLs, {rows:,} distinct at version {version}")


def _numbered(sample: pa.Table) -> dict[str, list[int | None]]:
    """Return each value of the sample as its number among those of its column; None is NULL."""
    read = sample.combine_chunks()
    return {name: pc.dictionary_encode(read[name].combine_chunks()).indices.to_pylist() for name in read.column_names}


def _may_be_key(columns: Sequence[Sequence[int | None]]) -> bool:
    """Return whether these columns have no NULL and no duplicate in the sample."""
    if any(None in numbers for numbers in columns):
        return False
    rows = list(zip(*columns, strict=True))
    return all(len(set(rows[:count])) == len(rows[:count]) for count in (_FIRST_ROWS, _SAMPLE))
