"""Compare a mirror with its source at the covered version, by order-independent hashes of rows and columns.

Spark reads both sides: it is the only reader that supports every feature that either side may use.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, VariantType

from mirror_assets.encode.columns import json_text, quoted
from mirror_assets.encode.spark_errors import spark_facts
from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.markers import ROW_ID
from mirror_assets.redaction import redacted_error
from mirror_assets.standin.errors import MirrorUnreadable
from mirror_assets.verify.reconciliation import DifferenceSample, ReconcileRequest, ReconcileState, Reconciliation, Side

_NESTED = (StructType, ArrayType, MapType, VariantType)
# Delta's errors for a version whose log entries or data files have been deleted (reference `delta` §2).
_GONE = frozenset(
    {
        "DELTA_VERSION_NOT_FOUND",
        "DELTA_TRUNCATED_TRANSACTION_LOG",
        "DELTA_LOG_FILE_NOT_FOUND",
        "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
        "FAILED_READ_FILE.FILE_NOT_EXIST",
    }
)
_LIMBS = (0, 22, 44)
_LIMB_MASK = (1 << 22) - 1
# Keeps 40 bits of a hash: a bigint sums up to 8 million rows of one key without overflow.
_SAMPLE_SHIFT = 24
# Columns per aggregation: for thousands of sums, Spark generates no code and is slow.
_COLUMNS_AT_ONCE = 100
_SAMPLES = 10
_Total = tuple[int, ...]


def reconcile(spark: SparkSession, request: ReconcileRequest) -> Reconciliation:
    """Compare the mirror's rows with the source's as of the covered version.

    Raises RetryError (`covered_version_gone`), StopError (`source_unreadable`) and MirrorUnreadable.
    """
    started = time.monotonic()
    with _mirror_errors(request):
        if not DeltaTable.isDeltaTable(spark, request.mirror):
            return Reconciliation(request.table, ReconcileState.MISSING, request.version)
    sides = _sides(spark, request)
    with _source_errors(request):
        source = _fingerprint(sides.source)
    with _mirror_errors(request):
        mirror = _fingerprint(sides.mirror)
    same = source == mirror
    return Reconciliation(
        table=request.table,
        state=ReconcileState.EQUAL if same and not sides.unfit else ReconcileState.DIFFERENT,
        version=request.version,
        source_rows=source.rows,
        mirror_rows=mirror.rows,
        columns=sides.unfit if same else sides.unfit + _differing_columns(request, sides),
        samples=() if same else _samples(request, sides),
        ignored_columns=sides.ignored,
        seconds=round(time.monotonic() - started, 3),
        since=request.since,
    )


@dataclass(frozen=True)
class _Fingerprint:
    """Row count and the sum of all rows' hashes: equal for equal tables, whatever the order of their rows."""

    rows: int
    whole: _Total


@dataclass(frozen=True)
class _Sides:
    """Both tables with only the compared columns, named c0, c1, …; `names` are their real names.

    `identity` are those that identify a row. `unfit` are landed columns that can't be compared: the mirror has another
    type, or lacks them although the source has values. `ignored` are columns that only the mirror has.
    """

    source: DataFrame
    mirror: DataFrame
    names: tuple[str, ...]
    identity: tuple[str, ...]
    unfit: tuple[str, ...]
    ignored: tuple[str, ...]


def _differing_columns(request: ReconcileRequest, sides: _Sides) -> tuple[str, ...]:
    """Return the columns whose hashes differ between the sides."""
    with _source_errors(request):
        source = _column_totals(sides.source, sides.identity)
    with _mirror_errors(request):
        mirror = _column_totals(sides.mirror, sides.identity)
    totals = zip(sides.names, source, mirror, strict=True)
    return tuple(name for name, left, right in totals if left != right)


def _sides(spark: SparkSession, request: ReconcileRequest) -> _Sides:
    with _source_errors(request):
        source = _source(spark, request)
    with _mirror_errors(request):
        mirror = spark.read.format("delta").load(request.mirror)
    have = {field.name: field for field in source.schema.fields}
    mirrored = {field.name: field.dataType.simpleString() for field in mirror.schema.fields}
    wanted = [(name, kind) for name, kind in request.columns if name in have]
    fit = [(name, kind) for name, kind in wanted if mirrored.get(name) == kind]
    names = tuple(name for name, _ in fit)
    identity = _identity(request.keys, names)
    ours = source.select(*[_landed(have[name], kind).alias(f"c{at}") for at, (name, kind) in enumerate(fit)])
    theirs = mirror.select(*[F.col(quoted(name)).alias(f"c{at}") for at, name in enumerate(names)])
    return _Sides(
        source=ours if request.since is None else _of_same_keys(ours, theirs, identity),
        mirror=theirs,
        names=names,
        identity=identity,
        unfit=_incomparable(source, [name for name, _ in wanted if name not in names], mirrored),
        ignored=tuple(name for name in mirrored if name not in dict(wanted)),
    )


def _source(spark: SparkSession, request: ReconcileRequest) -> DataFrame:
    """Read the source, with its row ids as a column where they are the mirror's key."""
    source = spark.read.format("delta").option("versionAsOf", request.version).load(request.source)
    keyless = request.keys == (ROW_ID,) and ROW_ID not in source.columns
    return source.withColumn(ROW_ID, source.metadataColumn("_metadata").getField("row_id")) if keyless else source


def _of_same_keys(rows: DataFrame, others: DataFrame, identity: Sequence[str]) -> DataFrame:
    """Return the rows whose identity is among the others'; NULL equals NULL."""
    keys = others.select(*[F.col(name).alias(f"their_{name}") for name in identity])
    same = [F.col(name).eqNullSafe(F.col(f"their_{name}")) for name in identity]
    return rows.join(keys, same, "left_semi")


def _incomparable(source: DataFrame, unlike: Sequence[str], mirrored: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that differ in type or presence; a column without values may be missing from the mirror."""
    absent = [name for name in unlike if name not in mirrored]
    counts = [F.count(F.col(quoted(name))).alias(f"c{at}") for at, name in enumerate(absent)]
    row = source.agg(*counts).first() if absent else None
    empty = {name for at, name in enumerate(absent) if row is not None and not row[f"c{at}"]}
    return tuple(name for name in unlike if name not in empty)


def _identity(keys: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that identify a row: the keys, or all columns."""
    known = [names.index(key) for key in keys if key in names]
    return tuple(f"c{at}" for at in (known if keys and len(known) == len(keys) else range(len(names))))


def _landed(field: StructField, kind: str) -> Column:
    """Convert the source's column as landing does: nested values to JSON text, others to the landing type."""
    value = F.col(quoted(field.name))
    if isinstance(field.dataType, _NESTED):
        return json_text(value, field.dataType)
    return value if field.dataType.simpleString() == kind else value.try_cast(kind)


def _samples(request: ReconcileRequest, sides: _Sides) -> tuple[DifferenceSample, ...]:
    """Return the first keys whose rows differ, with the columns that differ."""
    with _source_errors(request):
        rows = _differing_keys(sides.source, sides.mirror, sides.identity, _SAMPLES)
    others = [(f"c{at}", name) for at, name in enumerate(sides.names) if f"c{at}" not in sides.identity]
    samples = []
    for row in rows:
        counts = row["source_rows"], row["mirror_rows"]
        side = Side.ONLY_IN_SOURCE if not counts[1] else Side.ONLY_IN_MIRROR if not counts[0] else Side.DIFFERS
        columns = tuple(name for alias, name in others if row[alias]) if side is Side.DIFFERS else ()
        key = tuple(_text(row[alias]) for alias in sides.identity)
        samples.append(DifferenceSample(key, side, columns, *counts))
    return tuple(samples)


def _fingerprint(side: DataFrame) -> _Fingerprint:
    rows = F.count(F.lit(1)).alias("rows")
    row, (whole,) = _totals(side, [_row_hash(side.columns)], rows)
    return _Fingerprint(row["rows"], whole)


def _column_totals(side: DataFrame, identity: Sequence[str]) -> list[_Total]:
    """Return a hash for each column. Values are hashed with their row's identity, so that swapped values show."""
    hashes = _column_hashes(side.columns, identity)
    groups = (hashes[at : at + _COLUMNS_AT_ONCE] for at in range(0, len(hashes), _COLUMNS_AT_ONCE))
    return [total for group in groups for total in _totals(side, group)[1]]


def _totals(side: DataFrame, hashes: Sequence[Column], *more: Column) -> tuple[Row, list[_Total]]:
    """Sum each hash over all rows; return the row of all aggregates, `more` included, and the sums."""
    sums = [limb.alias(f"h{at}_{part}") for at, value in enumerate(hashes) for part, limb in enumerate(_limbs(value))]
    row = side.agg(*more, *sums).collect()[0]
    limbs = range(len(_LIMBS))
    return row, [tuple(row[f"h{at}_{part}"] or 0 for part in limbs) for at in range(len(hashes))]


def _differing_keys(source: DataFrame, mirror: DataFrame, identity: Sequence[str], limit: int) -> list[Row]:
    """Return the first keys whose rows differ: `source_rows`, `mirror_rows`, and a number per column, 0 if equal.

    It groups the union of both sides, and doesn't join them: NULL keys meet, and duplicate keys don't multiply.
    """
    names = source.columns
    both = source.withColumn("_side", F.lit(1)).unionByName(mirror.withColumn("_side", F.lit(-1)))
    others = [name for name in names if name not in identity]
    hashes = zip(others, _column_hashes(others, identity), strict=True)
    grouped = both.groupBy(*identity).agg(
        F.count_if(F.col("_side") == 1).alias("source_rows"),
        F.count_if(F.col("_side") == -1).alias("mirror_rows"),
        *[F.sum(F.col("_side") * F.shiftright(value, _SAMPLE_SHIFT)).alias(name) for name, value in hashes],
    )
    unequal = F.col("source_rows") != F.col("mirror_rows")
    for name in others:
        unequal = unequal | (F.col(name) != 0)
    return list(grouped.filter(unequal).orderBy(*identity).limit(limit).collect())


def _row_hash(names: Sequence[str]) -> Column:
    # xxhash64 skips NULLs: without the flags, a value that moved into a NULL neighbour column would not show.
    return F.xxhash64(*[part for name in names for part in (F.col(name), F.col(name).isNull())])


def _column_hashes(names: Sequence[str], identity: Sequence[str]) -> list[Column]:
    row = _row_hash(identity)
    return [F.xxhash64(row, F.col(name), F.col(name).isNull()) for name in names]


def _limbs(value: Column) -> list[Column]:
    """Sum the hash's bits in three limbs: a bigint holds each for up to 2^41 rows, faster than one decimal."""
    return [F.sum(F.shiftrightunsigned(value, shift).bitwiseAND(F.lit(_LIMB_MASK))) for shift in _LIMBS]


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


@contextmanager
def _source_errors(request: ReconcileRequest) -> Iterator[None]:
    """Raise `covered_version_gone` or `source_unreadable` for a Spark error while the source is read."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        safe = redacted_error(error)
        facts, version = spark_facts(safe), f"{request.table}: version {request.version} of {request.source}"
        gone = min(facts.conditions & _GONE, default=None)
        if gone is not None:
            raise _covered_version_gone(version, gone) from safe
        raise _source_unreadable(version, facts.why) from safe


def _covered_version_gone(version: str, why: str) -> RetryError:
    return RetryError(
        f"{version} can't be read any more ({why}).",
        "mirror the later commits, poll the replicator, then reconcile the newer version.",
        code=ErrorCode.COVERED_VERSION_GONE,
    )


def _source_unreadable(version: str, why: str) -> StopError:
    return StopError(
        f"{version} can't be read: {why}.",
        "check that the source is a readable Delta table, then reconcile again.",
        code=ErrorCode.SOURCE_UNREADABLE,
    )


@contextmanager
def _mirror_errors(request: ReconcileRequest) -> Iterator[None]:
    """Raise MirrorUnreadable for a Spark error while the mirror is read."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        safe = redacted_error(error)
        raise MirrorUnreadable(request.mirror, spark_facts(safe).why) from safe
