"""What doctor asks Spark about a table. Only this module of it imports Spark: `doctor --no-spark` starts without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from mirror_assets.encode.columns import projected
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.pipeline.context import TableContext, reading
from mirror_assets.pipeline.doctor import DoctorAnswer, no, ok, warn
from mirror_assets.pipeline.source_check import checked_projection
from mirror_assets.redaction import shown_key
from mirror_assets.source.commits import SourceState
from mirror_assets.source.errors import FILE_UNFOUND, source_not_delta
from mirror_assets.source.losses import SourceRead
from mirror_assets.source.scan_builder import scan_version
from mirror_assets.source.schema import ALL_ROWS, Projection
from mirror_assets.spark_api import observed
from mirror_assets.spark_messages import readable
from mirror_assets.spark_names import quoted

# The keys of this many rows are checked unless all are requested: some seconds of Spark.
SAMPLE_ROWS = 1_000_000
_NO_PATH = "PATH_NOT_FOUND"


def spark_reads(context: TableContext, state: SourceState | None) -> DoctorAnswer:
    """Read the schema and one row of the version, or of the newest, and check the expressions of `where` and `columns`.

    Raises what `reading` and `spark_errors` raise, and MISTAKES.
    """
    if state is not None:
        checked_projection(context, state.schema_string)
    with _spark_reading(context, state, ALL_ROWS) as frame:
        counted = Observation()
        # Read, but not brought to Python, whose dates end with the year 9999.
        frame.limit(1).observe(counted, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
        found = observed(counted)["rows"]
    row = "and a row" if found else "and no row, for it has none"
    read = f"Spark {context.spark().version} has read {len(frame.columns)} columns {row}"
    if state is None:
        return warn(f"{read} of the newest version, though the log can't be read", "follow the next step for the log.")
    others = sorted(set(frame.columns).symmetric_difference(field.name for field in state.schema.fields))
    if others:
        differ = f"Spark and the log differ in the columns {', '.join(others)}"
        return warn(differ, "run again; report it if it persists.")
    return ok(f"{read} of version {state.version}")


def keys_are_unique(
    context: TableContext, state: SourceState | None, *, thorough: bool, sample: int = SAMPLE_ROWS
) -> DoctorAnswer:
    """Count NULL and repeated keys of all rows, or of the first `sample` ones, in one aggregation.

    Raises what `reading` and `spark_errors` raise.
    """
    keys, problems = context.table.keys, list[str]()
    projection = checked_projection(context, state.schema_string) if state else ALL_ROWS
    with _spark_reading(context, state, projection) as frame:
        rows, repeated, with_null, example = _count_keys(frame if thorough else frame.limit(sample), keys)
    is_whole = thorough or rows < sample
    which = f"all {rows:,} rows" if is_whole else f"{rows:,} rows, a part; --thorough checks all"
    if repeated:
        problems.append(f"{repeated:,} keys are repeated, such as {shown_key(dict(zip(keys, example, strict=True)))}")
    if with_null:
        problems.append(f"{with_null:,} rows have NULL in a key")
    if problems:
        return no(f"{', and '.join(problems)} in {which}", _REMOVE_ROWS)
    return ok(f"{', '.join(keys)}: no NULL, and none repeated, in {which}")


_REMOVE_ROWS = (
    "remove the rows from the source, or choose `keys` that are unique and never NULL; such a table can't be mirrored, "
    "and its commits stay in the feed: a table that has landed must be rebuilt afterwards."
)


def _count_keys(frame: DataFrame, keys: Sequence[str]) -> tuple[int, int, int, tuple[object, ...]]:
    """Return the number of rows, of repeated keys, of rows with a NULL in their key, and a repeated key."""
    columns = [F.col(quoted(key)).alias(f"key{index}") for index, key in enumerate(keys)]
    names = [f"key{index}" for index in range(len(keys))]
    counted = frame.select(*columns).groupBy(*names).agg(F.count(F.lit(1)).alias("rows"))
    is_null = F.lit(False)  # noqa: FBT003 Spark's literal
    for name in names:
        is_null = is_null | F.col(name).isNull()
    repeats = (F.col("rows") > 1) & ~is_null
    found = (
        readable(counted)
        .agg(
            F.coalesce(F.sum("rows"), F.lit(0)),
            F.count_if(repeats),
            F.coalesce(F.sum(F.when(is_null, F.col("rows"))), F.lit(0)),
            F.max_by(F.struct(*names), F.when(repeats, F.col("rows"))),
        )
        .collect()[0]
    )
    return found[0], found[1], found[2], tuple(found[3] or ())


@contextmanager
def _spark_reading(context: TableContext, state: SourceState | None, projection: Projection) -> Iterator[DataFrame]:
    """Yield the version's landing rows; translate Spark's errors in the block."""
    spark, uri = context.spark(), context.log.uri
    if state is None:
        try:
            with spark_errors(f"{context.name}, reading the newest version of {uri}"):
                yield projected(spark.read.format("delta").load(context.source), projection)
        except FILE_UNFOUND.error as error:
            if _NO_PATH in error.why:
                raise source_not_delta(uri) from error
            raise
        return
    version = state.version
    place = f"{context.name}, reading version {version} of {uri}"
    with reading(context, SourceRead(version, version, versions=(version,))), spark_errors(place):
        yield projected(read_scan(spark, scan_version(context.log, version)), projection)
