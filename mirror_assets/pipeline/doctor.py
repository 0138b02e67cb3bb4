"""Asks all questions of all tables, several tables at once; a failure on one table doesn't stop those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from mirror_assets.encode.columns import projected
from mirror_assets.encode.counted import observed
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import SCRATCH
from mirror_assets.pipeline.context import TableContext, reading
from mirror_assets.pipeline.doctor_questions import (
    FIRST,
    THEN,
    Asked,
    DoctorAnswer,
    DoctorVerdict,
    failure,
    no,
    not_asked,
    ok,
    warn,
)
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.many_tables import DaemonPool
from mirror_assets.pipeline.source_check import checked_projection
from mirror_assets.redaction import shown_key
from mirror_assets.source.commits import SourceState
from mirror_assets.source.errors import FILE_UNFOUND, SparkInterrupted, source_not_delta
from mirror_assets.source.losses import SourceRead
from mirror_assets.source.scan_builder import scan_version
from mirror_assets.source.schema import ALL_ROWS, Projection
from mirror_assets.spark_messages import readable
from mirror_assets.spark_names import quoted
from mirror_assets.zones import Store
from mirror_assets.zones.probe import examine

_TABLES_AT_ONCE = 8
SPARK_READS = "does Spark read it?"
KEYS_UNIQUE = "are its keys there, and unique?"


def examine_zone(store: Store, heard: Callable[[], str] = lambda: "") -> Iterator[DoctorAnswer]:
    """Yield the landing zone's answers; `heard` returns what the store answered since its last call."""
    for one in examine(store, SCRATCH, heard):
        yield DoctorAnswer(store.root, one.question, DoctorVerdict.OK if one.passed else DoctorVerdict.NO, one.saw)


def examine_sources(
    contexts: Sequence[TableContext], *, with_spark: bool = True, thorough: bool = False
) -> Iterator[DoctorAnswer]:
    """Yield the answers of all tables, in their order: first from their logs, in seconds, then from Spark, in minutes.

    If `thorough`, Spark checks the keys of all rows. No error of a table is raised: it is an answer.
    """
    pool, asked = DaemonPool("doctor", _TABLES_AT_ONCE), [Asked(context) for context in contexts]
    states = list[SourceState | None]()
    for one, of_log in zip(asked, [pool.submit(partial(_ask_log, one)) for one in asked], strict=True):
        answers = of_log.result()
        is_readable = answers[len(FIRST) - 1].verdict is DoctorVerdict.OK
        states.append(one.state if is_readable else None)
        yield from answers
    if not with_spark:
        for context in contexts:
            for text in (SPARK_READS, KEYS_UNIQUE):
                yield not_asked("Spark was left out").about(str(context.name), text)
        return
    each = zip(contexts, states, strict=True)
    for of_spark in [pool.submit(partial(_ask_spark, context, state, thorough=thorough)) for context, state in each]:
        yield from of_spark.result()


def _ask_log(asked: Asked) -> list[DoctorAnswer]:
    answers = list[DoctorAnswer]()
    name, is_readable = str(asked.context.name), True
    for text, ask in (*FIRST, *THEN):
        finding = _safely(name, partial(ask, asked)) if is_readable else not_asked("the log can't be read")
        is_readable = is_readable and not ((text, ask) in FIRST and finding.verdict is DoctorVerdict.NO)
        answers.append(finding.about(name, text))
    return answers


def _ask_spark(context: TableContext, state: SourceState | None, *, thorough: bool) -> list[DoctorAnswer]:
    """Return Spark's answers; it is asked for the newest version where the log could not be read."""
    name = str(context.name)

    reads = _safely(name, partial(spark_reads, context, state))
    if not context.table.keys:
        finding = not_asked("it has no keys" + (": its rows have ids" if context.table.is_keyless else ""))
    elif reads.verdict is DoctorVerdict.NO:
        finding = not_asked("Spark can't read it")
    else:
        finding = _safely(name, partial(keys_are_unique, context, state, thorough=thorough))
    return [reads.about(name, SPARK_READS), finding.about(name, KEYS_UNIQUE)]


def _safely(table: str, ask: Callable[[], DoctorAnswer]) -> DoctorAnswer:
    """Return the answer; an error is also an answer."""
    try:
        return ask()
    except MirrorError as error:
        return failure(error)
    except Exception as error:  # noqa: BLE001 whatever it is, the next question is asked
        return failure(unexpected(table, error))


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
        except SparkInterrupted as error:
            if error.row is FILE_UNFOUND and _NO_PATH in error.why:
                raise source_not_delta(uri) from error
            raise
        return
    version = state.version
    place = f"{context.name}, reading version {version} of {uri}"
    with reading(context, SourceRead(version, version, versions=(version,))), spark_errors(place):
        yield projected(read_scan(spark, scan_version(context.log, version)), projection)
