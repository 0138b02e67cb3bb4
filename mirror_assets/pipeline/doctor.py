"""Asks all questions of all tables, several tables at once; a failure on one table doesn't stop those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import SCRATCH
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.doctor_questions import (
    FIRST,
    THEN,
    Asked,
    DoctorAnswer,
    DoctorVerdict,
    failure,
    not_asked,
)
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.many_tables import DaemonPool
from mirror_assets.source.commits import SourceState
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
    from mirror_assets.pipeline.doctor_in_spark import keys_are_unique, spark_reads

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
