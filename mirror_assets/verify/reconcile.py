"""Compare a mirror with its source at the covered version, by order-independent hashes of rows in buckets of keys.

Delta's public reader reads both sides: it is the only one that supports every feature that either side may use, and it
shares nothing with what wrote the mirror. One scan of each side sums the hashes of its rows, by bucket; only rows of
buckets that differ are compared with each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F

from mirror_assets.errors import ErrorCode, ErrorRow, RetryError, StopError
from mirror_assets.landing.generations import EqualVersions
from mirror_assets.markers import ROW_ID
from mirror_assets.redaction import redacted_error
from mirror_assets.source.errors import DELTA_MISSING
from mirror_assets.source.schema import Projection
from mirror_assets.spark_api import SPARK_ERRORS, is_classic, observed
from mirror_assets.spark_messages import SparkFacts, readable, spark_facts
from mirror_assets.spark_names import quoted, spark_path, table_at
from mirror_assets.standin.errors import MIRROR_UNREADABLE
from mirror_assets.telemetry.progress import expect, working
from mirror_assets.verify.differing_rows import BUCKETS, COUNTS, BucketTotals, Sides, bucket_totals, differing_rows
from mirror_assets.verify.landed_values import is_shown, landed_types, landed_value, with_absent_columns
from mirror_assets.verify.log_copy import LogCopy, copy_log
from mirror_assets.verify.reconciliation import (
    DifferenceSample,
    ReconcileRequest,
    ReconcileState,
    Reconciliation,
    Share,
    Side,
)

if TYPE_CHECKING:
    from delta.tables import DeltaTable  # its Python package may be missing where its JARs are there

# Delta's errors for a version whose log entries or data files have been deleted (reference `delta` §2).
_GONE = frozenset(
    {
        "DELTA_VERSION_NOT_FOUND",
        "DELTA_TRUNCATED_TRANSACTION_LOG",
        "DELTA_LOG_FILE_NOT_FOUND",
        "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
        "FAILED_READ_FILE.FILE_NOT_EXIST",
        # Classes of Spark 3.5 and Delta 3, which have no conditions for these two.
        "SparkFileNotFoundException",
        "VersionNotFoundException",
    }
)
# Delta's conditions for a path without a table.
_NO_TABLE = frozenset({"PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND"})
_SAMPLES = 10
# From this size of the source, a comparison that has a share reads only that.
_LARGE_BYTES = 4 << 30
Report = Callable[[str], None]
# Delta caches a table's newest state in the JVM, and takes it for current while version and time of the newest commit
# are the same. Its key is the path with the options that begin with `fs.`, so another value opens the table afresh.
_CACHE_KEY = "fs.mirror_assets.opened_for"


def reconcile(spark: SparkSession, request: ReconcileRequest, report: Report = lambda _: None) -> Reconciliation:
    """Compare the mirror's rows with the source's as of the covered version; `report` gets a line for each phase.

    Raises RetryError (`covered_version_gone`), StopError (`source_unreadable`), MirrorUnreadable and DELTA_MISSING.
    """
    started = time.monotonic()
    with mirror_errors(request):
        if not is_delta_table(spark, request.mirror):
            return Reconciliation(request.table, ReconcileState.MISSING, request.version)
    read = opened(spark, request)
    if request.equal_at is not None and read.is_at(request.equal_at):
        return Reconciliation(
            table=request.table,
            state=ReconcileState.EQUAL,
            version=request.version,
            source_rows=request.equal_at.rows,
            mirror_rows=request.equal_at.rows,
            seconds=round(time.monotonic() - started, 3),
            since=request.since,
            is_unchanged=True,
        )
    totals = all_totals(request, read, report)
    buckets = totals.differing
    if buckets:
        report(f"{len(buckets):,} of {BUCKETS:,} buckets of keys differ; comparing their rows")
    with source_errors(request):
        columns, samples = _differences(read, buckets) if buckets else ((), ())
    is_other = read.source_id != request.source_id
    if totals.differing or read.unfit:
        state = ReconcileState.DIFFERENT
    else:
        state = ReconcileState.OUTDATED if is_other else ReconcileState.EQUAL
    return Reconciliation(
        table=request.table,
        state=state,
        version=request.version,
        source_rows=totals.source_rows,
        mirror_rows=totals.mirror_rows,
        columns=read.unfit + columns,
        samples=samples,
        ignored_columns=read.ignored,
        seconds=round(time.monotonic() - started, 3),
        reason="the source was made again: it has another table id than the mirrored table" if is_other else "",
        since=request.since,
        equal_versions=read.versions(totals.source_rows) if state is ReconcileState.EQUAL else None,
        share=read.share,
    )


@dataclass(frozen=True)
class OpenedTables:
    """Both tables, with only the compared columns (see Sides).

    `names` are these columns. `unfit` are landed columns that can't be compared: they have another type in the mirror
    than in the source, or another one has landed. A column that the mirror lacks is NULL in all its rows. `ignored` are
    columns that only the mirror has. `share` is the one that is compared; None for all columns. `copy` is the log by
    which Delta reads the source while this object exists.
    """

    sides: Sides
    names: tuple[str, ...]
    unfit: tuple[str, ...]
    ignored: tuple[str, ...]
    source_id: str
    source_version: int
    mirror_id: str
    mirror_version: int
    share: Share | None
    copy: LogCopy | None = None

    def versions(self, rows: int) -> EqualVersions:
        """Return the versions of both, which have this many rows."""
        return EqualVersions(
            source_id=self.source_id,
            version=self.source_version,
            mirror_id=self.mirror_id,
            mirror_version=self.mirror_version,
            rows=rows,
        )

    def is_at(self, equal: EqualVersions) -> bool:
        """Return whether both tables are the ones that were equal, at the same versions."""
        return not self.unfit and equal == self.versions(equal.rows)


@dataclass(frozen=True)
class Totals:
    """Row counts of both sides, and the buckets of keys in which they differ."""

    source_rows: int
    mirror_rows: int
    differing: frozenset[int]


def opened(spark: SparkSession, request: ReconcileRequest) -> OpenedTables:
    """Open both sides: the source at the request's version, the mirror at its newest. Raises as `reconcile` does."""
    with source_errors(request):
        copy = copy_log(request.managed, request.version) if request.managed else None
        source = DeltaReader(spark, spark_path(str(copy.folder)) if copy else request.source, request.opened_for)
        source_id, bytes_ = source.id, source.bytes
        version = request.version - (copy.first if copy else 0)
        rows = with_absent_columns(source.rows(version), request.projection)
        types = landed_types(rows, request.projection)
        if request.keys == (ROW_ID,):
            types = {ROW_ID: "bigint", **types}
    mirror = DeltaReader(spark, request.mirror, request.opened_for)
    with mirror_errors(request):
        mirror_id, mirrored = mirror.id, mirror.rows(mirror.newest)
    there = {field.name: field.dataType.simpleString() for field in mirrored.schema.fields}
    wanted = [(name, kind) for name, kind in request.columns if name in types]
    fit = tuple(name for name, kind in wanted if types[name] == kind and there.get(name, kind) == kind)
    share = None if bytes_ < _LARGE_BYTES or request.share is None or request.share.is_all else request.share
    names = share.columns(fit, request.keys) if share else fit
    identity = _identity(request.keys, names)
    theirs = _landed_mirror(mirrored, [(name, types[name]) for name in names])
    with source_errors(request):
        ours = _landed_source(rows, names, request.projection)
    return OpenedTables(
        sides=Sides(ours if request.since is None else _of_same_keys(ours, theirs, identity), theirs, identity),
        names=names,
        unfit=tuple(name for name, _ in wanted if name not in fit),
        ignored=tuple(name for name in there if name not in dict(wanted)),
        source_id=source_id,
        source_version=request.version,
        mirror_id=mirror_id,
        mirror_version=mirror.newest,
        share=share,
        copy=copy,
    )


def all_totals(request: ReconcileRequest, read: OpenedTables, report: Report) -> Totals:
    """Read both sides whole."""
    expect(request.table, [1, 1])
    report(f"reading version {request.version} of the source")
    with source_errors(request), working(request.table):
        source = bucket_totals(read.sides.source, read.sides.identity)
    report(f"{_rows(source):,} rows in the source; reading the mirror")
    with mirror_errors(request), working(request.table):
        mirror = bucket_totals(read.sides.mirror, read.sides.identity)
    unequal = (bucket for bucket in source.keys() | mirror.keys() if source.get(bucket) != mirror.get(bucket))
    return Totals(_rows(source), _rows(mirror), frozenset(unequal))


def _rows(totals: BucketTotals) -> int:
    return sum(total[0] for total in totals.values())


def _landed_source(rows: DataFrame, names: Sequence[str], projection: Projection) -> DataFrame:
    """Return all of the source's rows as they land, each with whether it does."""
    values = (landed_value(rows, name, projection).alias(f"c{at}") for at, name in enumerate(names))
    return rows.select(is_shown(projection).alias(COUNTS), *values)


def _landed_mirror(rows: DataFrame, landed: Sequence[tuple[str, str]]) -> DataFrame:
    there = set(rows.columns)
    values = (F.col(quoted(name)) if name in there else F.lit(None).cast(kind) for name, kind in landed)
    return rows.select(F.lit(col=True).alias(COUNTS), *(value.alias(f"c{at}") for at, value in enumerate(values)))


def _of_same_keys(rows: DataFrame, others: DataFrame, identity: Sequence[str]) -> DataFrame:
    """Return the rows whose identity is among the others'; NULL equals NULL."""
    keys = others.select(*[F.col(name).alias(f"their_{name}") for name in identity])
    same = [F.col(name).eqNullSafe(F.col(f"their_{name}")) for name in identity]
    return rows.join(keys, same, "left_semi")


def _identity(keys: tuple[str, ...], names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that identify a row: the keys, or all columns."""
    known = [names.index(key) for key in keys if key in names]
    return tuple(f"c{at}" for at in (known if keys and len(known) == len(keys) else range(len(names))))


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
    differs = observed(counted)
    return tuple(name for alias, name in others if differs[alias]), tuple(samples)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


@contextmanager
def source_errors(request: ReconcileRequest) -> Iterator[None]:
    """Raise `covered_version_gone` or `source_unreadable` for a Spark error while the source is read."""
    try:
        yield
    except FileNotFoundError as error:
        version = f"{request.table}: version {request.version} of {request.source}"
        raise _COVERED_VERSION_GONE(version=version, why=f"its log lacks {error}") from error
    except SPARK_ERRORS as error:
        safe = redacted_error(error)
        _require_delta(request, facts := spark_facts(safe))
        version = f"{request.table}: version {request.version} of {request.source}"
        gone = min((facts.conditions | facts.names) & _GONE, default=None)
        if gone is not None:
            raise _COVERED_VERSION_GONE(version=version, why=gone) from safe
        raise _SOURCE_UNREADABLE(version=version, why=facts.why) from safe


_COVERED_VERSION_GONE = ErrorRow(
    ErrorCode.COVERED_VERSION_GONE,
    RetryError,
    "The source is no longer readable at the version that the mirror covers.",
    "{version} can't be read any more ({why}).",
    "mirror the later commits, poll the replicator, then reconcile the newer version.",
    "mirror-assets run --table TABLE\nmirror-assets replicate\nmirror-assets reconcile --table TABLE",
)
_SOURCE_UNREADABLE = ErrorRow(
    ErrorCode.SOURCE_UNREADABLE,
    StopError,
    "The source can't be read for a comparison.",
    "{version} can't be read: {why}.",
    "check that the source is a readable Delta table, then reconcile again.",
    "mirror-assets doctor --table TABLE",
)


@contextmanager
def mirror_errors(request: ReconcileRequest) -> Iterator[None]:
    """Raise MirrorUnreadable for a Spark error while the mirror is read."""
    try:
        yield
    except SPARK_ERRORS as error:
        safe = redacted_error(error)
        _require_delta(request, facts := spark_facts(safe))
        raise MIRROR_UNREADABLE(path=request.mirror, why=facts.why) from safe


def _require_delta(request: ReconcileRequest, facts: SparkFacts) -> None:
    if facts.lacks_delta:
        raise DELTA_MISSING(what=f"{request.table}: reconcile")


def is_delta_table(spark: SparkSession, uri: str) -> bool:
    """Return whether there is a Delta table at the path."""
    try:
        _ = spark.read.format("delta").load(uri).schema  # Spark Connect asks its server for a schema, not for a reader
    except SPARK_ERRORS as error:
        if spark_facts(error).conditions & _NO_TABLE:
            return False
        raise
    return True


@dataclass(frozen=True)
class DeltaReader:
    """The table at a path. Delta's cached state is used only by readers with the same `opened_for`."""

    spark: SparkSession
    uri: str
    opened_for: str

    @property
    def id(self) -> str:
        """The table's id in its newest version: a table that is made again at the path has another one."""
        return str(self._detail["id"])

    @property
    def bytes(self) -> int:
        """The size of the files of its newest version."""
        return int(self._detail["sizeInBytes"] or 0)

    @cached_property
    def newest(self) -> int:
        """Its newest version."""
        return int(self._asked("DESCRIBE HISTORY {} LIMIT 1", lambda table: table.history(1))["version"])

    def rows(self, version: int) -> DataFrame:
        """Return all rows as of a version."""
        reader = self.spark.read.format("delta").options(**self._options)
        return reader.option("versionAsOf", version).load(self.uri)

    @cached_property
    def _detail(self) -> Row:
        return self._asked("DESCRIBE DETAIL {}", lambda table: table.detail())

    def _asked(self, statement: str, method: Callable[[DeltaTable], DataFrame]) -> Row:
        """Return the only row of the statement about the table. Statements take no options: Delta's class does."""
        if is_classic(self.spark) and find_spec("delta"):
            from delta.tables import DeltaTable

            return method(DeltaTable.forPath(self.spark, self.uri, self._options)).collect()[0]
        return self.spark.sql(statement.format(table_at(spark_path(self.uri)))).collect()[0]

    @property
    def _options(self) -> dict[str, str]:
        return {_CACHE_KEY: self.opened_for}
