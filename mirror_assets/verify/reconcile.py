"""Compare a mirror with its source at the covered version, by order-independent hashes of rows in buckets of keys.

Spark reads both sides: it is the only reader that supports every feature that either side may use. One scan of each
side sums the hashes of its rows, by bucket; only rows of buckets that differ are compared with each other. If both
sides were equal at earlier versions, only the files that changed since are read: their sums must have changed equally.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, VariantType

from mirror_assets.encode.columns import json_text, row_id
from mirror_assets.encode.differing_rows import (
    BUCKETS,
    BucketTotals,
    Sides,
    bucket_totals,
    differing_rows,
    totals_change,
)
from mirror_assets.encode.observed import observed
from mirror_assets.encode.private.table_version import TableVersion, has_own_reader, read_version
from mirror_assets.encode.readable import readable
from mirror_assets.encode.spark_errors import spark_facts
from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.landing.generations import EqualVersions
from mirror_assets.markers import ROW_ID
from mirror_assets.redaction import redacted_error
from mirror_assets.source.sql_names import quoted
from mirror_assets.standin.errors import MirrorUnreadable
from mirror_assets.verify.reconciliation import (
    DifferenceSample,
    ReconcileRequest,
    ReconcileState,
    Reconciliation,
    Side,
)

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
_SAMPLES = 10
# Share of both tables' bytes from which reading all files is faster than reading those that changed, because some of
# these are read twice, as they were and as they are.
_MOST_CHANGED = 0.5
Report = Callable[[str], None]


def reconcile(spark: SparkSession, request: ReconcileRequest, report: Report = lambda _: None) -> Reconciliation:
    """Compare the mirror's rows with the source's as of the covered version; `report` gets a line for each phase.

    Raises RetryError (`covered_version_gone`), StopError (`source_unreadable`) and MirrorUnreadable.
    """
    started = time.monotonic()
    with mirror_errors(request):
        if not DeltaTable.isDeltaTable(spark, request.mirror):
            return Reconciliation(request.table, ReconcileState.MISSING, request.version)
    read = opened(spark, request)
    totals = _changed_totals(spark, request, read, report) or all_totals(request, read, report)
    buckets = totals.differing
    if buckets:
        report(f"{len(buckets):,} of {BUCKETS:,} buckets of keys differ; comparing their rows")
    with source_errors(request):
        columns, samples = _differences(read, buckets) if buckets else ((), ())
    is_equal = not (buckets or read.unfit)
    return Reconciliation(
        table=request.table,
        state=ReconcileState.EQUAL if is_equal else ReconcileState.DIFFERENT,
        version=request.version,
        source_rows=totals.source_rows,
        mirror_rows=totals.mirror_rows,
        columns=read.unfit + columns,
        samples=samples,
        ignored_columns=read.ignored,
        seconds=round(time.monotonic() - started, 3),
        since=request.since,
        equal_versions=_equal_versions(spark, request, read, totals) if is_equal else None,
        is_full=totals.is_full,
    )


def _equal_versions(
    spark: SparkSession, request: ReconcileRequest, read: OpenedTables, totals: Totals
) -> EqualVersions | None:
    """Return the versions that were found equal, for the next comparison; None if that must read all rows anyway."""
    if request.since is not None or not has_own_reader(spark):
        return None
    try:
        source = TableVersion.opened(spark, request.source, request.version)
        mirror = TableVersion.opened(spark, request.mirror, read.mirror_version)
    except (PySparkException, Py4JJavaError):  # it only saves work
        return None
    return EqualVersions(
        version=request.version,
        source_ms=source.commit_ms,
        mirror_id=mirror.table_id,
        mirror_version=read.mirror_version,
        mirror_ms=mirror.commit_ms,
        rows=totals.source_rows,
    )


@dataclass(frozen=True)
class OpenedTables:
    """Both tables, with only the compared columns (see Sides).

    `landed` are these columns, each with its landing type. `unfit` are landed columns of another type in the mirror,
    which can't be compared. A column that the mirror lacks is NULL in all its rows. `ignored` are columns that only the
    mirror has. `mirror_version` is that of the mirror's Delta table.
    """

    sides: Sides
    landed: tuple[tuple[str, str], ...]
    unfit: tuple[str, ...]
    ignored: tuple[str, ...]
    mirror_version: int

    @property
    def names(self) -> tuple[str, ...]:
        """The compared columns."""
        return tuple(name for name, _ in self.landed)


@dataclass(frozen=True)
class Totals:
    """Row counts of both sides, and the buckets of keys in which they differ."""

    source_rows: int
    mirror_rows: int
    differing: frozenset[int]
    is_full: bool


def opened(spark: SparkSession, request: ReconcileRequest) -> OpenedTables:
    """Open both sides: the source at the request's version, the mirror at its newest. Raises as `reconcile` does."""
    with source_errors(request):
        source = read_version(spark, request.source, request.version, request.projection)
        have = set(source.columns) | ({ROW_ID} if request.keys == (ROW_ID,) else set())
    with mirror_errors(request):
        table = DeltaTable.forPath(spark, request.mirror)
        version = table.history(1).collect()[0]["version"]
        mirror = read_version(spark, request.mirror, version)
    mirrored = {field.name: field.dataType.simpleString() for field in mirror.schema.fields}
    wanted = [(name, kind) for name, kind in request.columns if name in have]
    landed = tuple((name, kind) for name, kind in wanted if mirrored.get(name, kind) == kind)
    names = [name for name, _ in landed]
    identity = _identity(request.keys, names)
    theirs = _landed_mirror(mirror, landed)
    with source_errors(request):
        ours = _landed_source(source, landed)
    return OpenedTables(
        sides=Sides(ours if request.since is None else _of_same_keys(ours, theirs, identity), theirs, identity),
        landed=landed,
        unfit=tuple(name for name, _ in wanted if name not in names),
        ignored=tuple(name for name in mirrored if name not in dict(wanted)),
        mirror_version=version,
    )


def all_totals(request: ReconcileRequest, read: OpenedTables, report: Report) -> Totals:
    """Read both sides whole."""
    report(f"reading version {request.version} of the source")
    with source_errors(request):
        source = bucket_totals(read.sides.source, read.sides.identity)
    report(f"{_rows(source):,} rows in the source; reading the mirror")
    with mirror_errors(request):
        mirror = bucket_totals(read.sides.mirror, read.sides.identity)
    return Totals(_rows(source), _rows(mirror), _unequal(source, mirror), is_full=True)


def _changed_totals(
    spark: SparkSession, request: ReconcileRequest, read: OpenedTables, report: Report
) -> Totals | None:
    """Read only files that changed since both sides were equal; None if that isn't possible or proves nothing."""
    base = request.equal_at
    if base is None or request.since is not None or read.unfit:
        return None
    if not has_own_reader(spark):
        return None
    report(f"reading the files that changed since version {base.version} of the source")
    identity, landed = read.sides.identity, read.landed
    try:
        old, new = (TableVersion.opened(spark, request.source, at) for at in (base.version, request.version))
        was, now = (TableVersion.opened(spark, request.mirror, at) for at in (base.mirror_version, read.mirror_version))
        known = (base.source_ms, base.mirror_ms, base.mirror_id)
        # Dropping a column of the mirror changes no file.
        if (old.commit_ms, was.commit_ms, now.table_id) != known or was.schema_json != now.schema_json:
            return None
        sides = new.differences(old, request.projection), now.differences(was)
        if sum(rows.opened_bytes for side in sides for rows in side) > _MOST_CHANGED * (new.bytes + now.bytes):
            report("most files have changed; reading all files")
            return None
        source, mirror = (
            totals_change(*(bucket_totals(landed_rows(rows.frame, landed), identity) for rows in side))
            for side, landed_rows in zip(sides, (_landed_source, _landed_mirror), strict=True)
        )
    except (PySparkException, Py4JJavaError) as error:  # most often, VACUUM took a file of the older version
        report(f"these files can't be read ({spark_facts(redacted_error(error)).why}); reading all files")
        return None
    rows = base.rows + _rows(source), base.rows + _rows(mirror)
    return Totals(*rows, _unequal(source, mirror), is_full=False)


def _rows(totals: BucketTotals) -> int:
    return sum(total[0] for total in totals.values())


def _unequal(source: BucketTotals, mirror: BucketTotals) -> frozenset[int]:
    return frozenset(bucket for bucket in source.keys() | mirror.keys() if source.get(bucket) != mirror.get(bucket))


def _landed_source(rows: DataFrame, landed: Sequence[tuple[str, str]]) -> DataFrame:
    """Return the source's rows as they land, with the row tracking id where it is the mirror's key."""
    fields = {field.name: field for field in rows.schema.fields}
    values = (_landed(fields[name], kind) if name in fields else row_id(rows) for name, kind in landed)
    return rows.select(*[value.alias(f"c{at}") for at, value in enumerate(values)])


def _landed_mirror(rows: DataFrame, landed: Sequence[tuple[str, str]]) -> DataFrame:
    there = set(rows.columns)
    values = (F.col(quoted(name)) if name in there else F.lit(None).cast(kind) for name, kind in landed)
    return rows.select(*[value.alias(f"c{at}") for at, value in enumerate(values)])


def _of_same_keys(rows: DataFrame, others: DataFrame, identity: Sequence[str]) -> DataFrame:
    """Return the rows whose identity is among the others'; NULL equals NULL."""
    keys = others.select(*[F.col(name).alias(f"their_{name}") for name in identity])
    same = [F.col(name).eqNullSafe(F.col(f"their_{name}")) for name in identity]
    return rows.join(keys, same, "left_semi")


def _identity(keys: tuple[str, ...], names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that identify a row: the keys, or all columns."""
    known = [names.index(key) for key in keys if key in names]
    return tuple(f"c{at}" for at in (known if keys and len(known) == len(keys) else range(len(names))))


def _landed(field: StructField, kind: str) -> Column:
    """Convert the source's column as landing does: nested values to JSON text, others to the landing type."""
    value = F.col(quoted(field.name))
    if isinstance(field.dataType, _NESTED):
        return json_text(value, field.dataType)
    return value if field.dataType.simpleString() == kind else value.try_cast(kind)


def _differences(read: OpenedTables, buckets: frozenset[int]) -> tuple[tuple[str, ...], tuple[DifferenceSample, ...]]:
    """Return the columns that differ in some row, and the first keys whose rows differ, each with its columns."""
    identity, counted = read.sides.identity, Observation()
    others = [(f"c{at}", name) for at, name in enumerate(read.names) if f"c{at}" not in identity]
    differing = [F.count_if(F.col(alias)).alias(alias) for alias, _ in others]
    rows = differing_rows(read.sides, buckets).observe(counted, F.count(F.lit(1)).alias("rows"), *differing)
    samples = []
    for row in readable(rows.orderBy(*identity).limit(_SAMPLES)).collect():
        counts = row["source_rows"], row["mirror_rows"]
        side = Side.ONLY_IN_SOURCE if not counts[1] else Side.ONLY_IN_MIRROR if not counts[0] else Side.DIFFERS
        columns = tuple(name for alias, name in others if row[alias]) if side is Side.DIFFERS else ()
        samples.append(DifferenceSample(tuple(_text(row[alias]) for alias in identity), side, columns, *counts))
    by_column = observed(counted)
    return tuple(name for alias, name in others if by_column[alias]), tuple(samples)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


@contextmanager
def source_errors(request: ReconcileRequest) -> Iterator[None]:
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
def mirror_errors(request: ReconcileRequest) -> Iterator[None]:
    """Raise MirrorUnreadable for a Spark error while the mirror is read."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        safe = redacted_error(error)
        raise MirrorUnreadable(request.mirror, spark_facts(safe).why) from safe
