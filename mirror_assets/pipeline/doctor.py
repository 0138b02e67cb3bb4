"""Asks questions about all tables, several tables at once; a failure on one table doesn't stop those of others.

`doctor_in_spark.py` asks Spark; all other questions are answered without a JVM.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from functools import cached_property, partial

from mirror_assets.config.discovered import RuleOutcome
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import Changes, OnBreak
from mirror_assets.errors import ErrorCode, MirrorError, RebuildError, SettingError
from mirror_assets.landing.cost import daily_bytes
from mirror_assets.landing.names import SCRATCH
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import stop_error, unexpected
from mirror_assets.pipeline.lag import AT_BREAK, feed_deadline, pending_commits
from mirror_assets.pipeline.many_tables import DaemonPool
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.source_check import check_source, table_columns
from mirror_assets.source.commits import SourceState
from mirror_assets.source.table_properties import Retention
from mirror_assets.verify.ledger import CommitBalance
from mirror_assets.verify.ledger_log import audit
from mirror_assets.verify.timeliness import MOST_APART_SECONDS, check_retention
from mirror_assets.zones import Store
from mirror_assets.zones.probe import examine


class DoctorVerdict(str, Enum):
    """The result of a question. `warn`: it works, with a remark. `not asked`: the answer is unknown."""

    OK = "ok"
    WARN = "warn"
    NO = "no"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class DoctorAnswer:
    """The answer to a question about a subject, a table or the landing zone.

    `next_step` is empty if nothing has to be done. Functions that answer one question leave subject and question empty.
    """

    subject: str
    question: str
    verdict: DoctorVerdict
    words: str
    next_step: str = ""

    def about(self, subject: str, question: str) -> DoctorAnswer:
        """Return the answer with its subject and question."""
        return replace(self, subject=subject, question=question)

    @property
    def text(self) -> str:
        """The words, followed by the next step."""
        return f"{self.words.rstrip('.')}. Next: {self.next_step}" if self.next_step else self.words


def ok(words: str) -> DoctorAnswer:
    """Return an answer without a problem."""
    return DoctorAnswer("", "", DoctorVerdict.OK, words)


def warn(words: str, next_step: str) -> DoctorAnswer:
    """Return a warning."""
    return DoctorAnswer("", "", DoctorVerdict.WARN, words, next_step)


def not_asked(why: str) -> DoctorAnswer:
    """Return that the answer is unknown, and why."""
    return DoctorAnswer("", "", DoctorVerdict.NOT_ASKED, why)


def no(words: str, next_step: str) -> DoctorAnswer:
    """Return a failure."""
    return DoctorAnswer("", "", DoctorVerdict.NO, words, next_step)


def failure(error: MirrorError) -> DoctorAnswer:
    """Return a failure, with the message of the error that a run would end with."""
    return no(error.what, error.next_step)


def is_well(answers: Iterable[DoctorAnswer]) -> bool:
    """Return whether no answer is `no`."""
    return all(answer.verdict is not DoctorVerdict.NO for answer in answers)


_DAY = 86_400.0
# A commit that has to be read within less time is lost when mirroring stands still for a night.
_SPARE = _DAY
_SAMPLES = 5


@dataclass(frozen=True)
class Asked:
    """The table that is asked; its newest version is read once."""

    context: TableContext
    now: float = field(default_factory=time.time)

    @cached_property
    def state(self) -> SourceState:
        """The source at its newest version. Raises what the log raises."""
        return self.context.log.state()


def _reached(asked: Asked) -> DoctorAnswer:
    log = asked.context.log
    return ok(f"{log.uri} has version {log.newest()} as its newest")


def _read(asked: Asked) -> DoctorAnswer:
    state = asked.state
    rows = "a number of rows that the log does not know" if state.rows is None else f"{state.rows:,} rows"
    made = datetime.fromtimestamp(state.timestamp_ms / 1000, timezone.utc)
    return ok(f"version {state.version} of {made:%Y-%m-%d %H:%M:%S} UTC: {state.files:,} files, {rows}")


def _records_changes(asked: Asked) -> DoctorAnswer:
    context = asked.context
    try:
        check_source(context.config, context.table, asked.state)
    except SettingError as error:
        if error.code is not ErrorCode.FEED_DISABLED or context.manifest() is None:
            raise
        return warn("the change data feed is off, so commits are read by files", error.next_step)
    table_columns(context.table, asked.state.schema)
    return ok(_RECORDED[context.table.changes])


_RECORDED = {
    Changes.FEED: "the change data feed is on, the keys and columns are there",
    Changes.ROW_TRACKING: "row tracking is on, the columns are there",
    Changes.FILES: "the files that differ are read, which needs no property; the keys and columns are there",
    Changes.APPEND_ONLY: "appended files are read, which needs no feed; the columns are there",
}


def _waits(asked: Asked) -> DoctorAnswer:
    plan = plan_table(asked.context)
    waiting = f"{len(plan.partitions)} slices are pending" if plan.partitions else "nothing is pending"
    if plan.stop is None:
        return ok(waiting)
    error = stop_error(asked.context.name, plan.stop)
    on_break = asked.context.table.on_break
    if isinstance(error, RebuildError) and on_break is not OnBreak.HOLD:
        then = AT_BREAK[on_break]
        return warn(f"{waiting}, then {then}: {plan.stop.message}", "nothing, unless it was a mistake.")
    return failure(error)


def _retained(asked: Asked) -> DoctorAnswer:
    context = asked.context
    deadline = feed_deadline(context, pending_commits(context), asked.now)
    result = check_retention(deadline, _SPARE)
    if result.problems:
        return (no if deadline.is_gone else warn)(result.problems[0], _extend(deadline.retention))
    is_daily = any(feature.reads_daily(context.table) for feature in context.config.all_features)
    every = _DAY if is_daily else context.config.automation.every
    if deadline.clock.seconds < every + _SPARE:
        kept = f"{deadline.clock.name} keeps a commit for {deadline.clock.seconds / 3600:,.1f} hours"
        return warn(f"{kept}, and mirroring polls every {every:,.0f} s", _extend(deadline.retention))
    return ok(result.note)


def _extend(retention: Retention) -> str:
    return f"run now; to keep commits for longer: {retention.keeping(7 * _DAY)}"


def _clocks(asked: Asked) -> DoctorAnswer:
    version, files = asked.state.version, asked.context.log.files
    if files.is_local:
        return ok("the source is on this machine, whose clock is the only one")
    stored = files.modified_ms(version) / 1000
    return compare_clocks(f"version {version}", stored, asked.state.timestamp_ms / 1000, asked.now)


def compare_clocks(version: str, stored: float, committed: float, now: float) -> DoctorAnswer:
    """Compare the store's clock, which gave the newest commit's file its time, the writer's, and that of this machine.

    All are seconds since 1970. A slow clock of the store looks like an older commit.
    """
    if stored - now > MOST_APART_SECONDS:
        ahead = f"the store's clock is {stored - now:,.0f} s or more ahead of this machine's"
        return warn(f"{ahead}: it wrote {version} later than now", "correct this machine's clock.")
    if committed - stored > MOST_APART_SECONDS:
        ahead = f"the writer's clock was {committed - stored:,.0f} s or more ahead of the store's"
        return warn(f"{ahead} at {version}: `start` and `--from` by time are as wrong", "correct the writer's clock.")
    if stored - committed > MOST_APART_SECONDS:
        delay = f"the store wrote the file of {version} {stored - committed:,.0f} s after the time of its commit"
        return not_asked(f"{delay}: it was copied, or its writer's clock is slow")
    agreement = f"store and writer agreed within {abs(stored - committed):,.1f} s at {version}"
    return ok(f"{agreement}, {now - stored:,.0f} s ago by this machine's clock, which the log can't verify")


def _adds_up(asked: Asked) -> DoctorAnswer:
    """Count the rows of every commit in the log by its actions; read no footer."""
    odd, unproved, first = list[CommitBalance](), list[int](), -1
    for commit in audit(asked.context.log):
        first = commit.version if first < 0 else first
        odd += [commit] if commit.contradictions else []
        unproved += [commit.version] if commit.rows is None else []
    if not odd and not unproved:
        return ok(f"the rows of every commit from version {first} on follow from its actions")
    proved_from = unproved[-1] + 1 if unproved else first
    texts = [f"version {one.version} {one.contradictions[0]}" for one in odd[:_SAMPLES]]
    texts += [f"{len(odd) - _SAMPLES:,} more commits contradict themselves"] if len(odd) > _SAMPLES else []
    if unproved:
        named = ", ".join(map(str, unproved[:_SAMPLES])) + (", …" if len(unproved) > _SAMPLES else "")
        texts.append(f"commits that remove or add files without statistics: {named}")
    words = f"{'; '.join(texts)}. The log proves the mirror's rows from version {proved_from} on"
    return warn(words, "nothing for a mirror that starts with a snapshot; `row_conservation` checks each commit again.")


def _direct_lake(asked: Asked) -> DoctorAnswer:
    found = [f"{one.name} {one.kind.direct_lake}" for one in asked.state.schema.fields if one.kind.direct_lake]
    if not found:
        return ok("no column has a type that Direct Lake can't load")
    return warn("; ".join(found), "nothing, if no semantic model reads the mirror by Direct Lake.")


# A MirrorError of a function is the answer `no`. Each of the first questions needs the one before it; all others need
# both.
_Question = tuple[str, Callable[[Asked], DoctorAnswer]]
FIRST: tuple[_Question, ...] = (("is the log reached?", _reached), ("is the log readable?", _read))
THEN: tuple[_Question, ...] = (
    ("does it record changes as `changes` needs?", _records_changes),
    ("can what waits be mirrored?", _waits),
    ("are commits kept for longer than mirroring needs?", _retained),
    ("do the commits in the log add up?", _adds_up),
    ("do the clocks agree?", _clocks),
    ("can Direct Lake load its types?", _direct_lake),
)
SPARK_READS = "does Spark read it?"
KEYS_UNIQUE = "are its keys there, and unique?"
FOUND = "does `discover` find its tables?"
LIMITS = "is the mirror within Fabric's limits?"
# Of a mirrored database, and Microsoft's advice about keys (reference `landing-zone` §4.20, §4.37).
_MOST_TABLES, _MOST_DAILY_BYTES, _MANY_KEYS = 1_000, 1e12, 5
# It warns from this share of a limit on, while there is time to divide the tables.
_NEAR = 0.8
_TABLES_AT_ONCE = 8


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


def examine_mirror(config: Config, store: Store, contexts: Sequence[TableContext]) -> Iterator[DoctorAnswer]:
    """Yield an answer for each rule of `discover`, and one about Fabric's limits, with what lands of these tables."""
    for rule in config.discovered.rules:
        yield _discovered(rule).about(rule.place, FOUND)
    pool = DaemonPool("doctor", _TABLES_AT_ONCE)
    landing = [pool.submit(partial(_daily_bytes, context)) for context in contexts]
    yield within_limits(config, sum(one.result() for one in landing)).about(store.root, LIMITS)


def _discovered(rule: RuleOutcome) -> DoctorAnswer:
    if rule.trouble:
        words, _, next_step = rule.trouble.partition(" Next: ")
        return no(words, next_step)
    if not rule.is_well:
        return no("no table is there", "correct `from`, or write the tables first.")
    return ok(f"{rule.tables:,} tables are there, and {rule.mirrored:,} of them are mirrored")


def within_limits(config: Config, day_bytes: float) -> DoctorAnswer:
    """Return a warning for each limit that the mirror comes near to, if `day_bytes` land in a day."""
    tables, day = config.all_tables(), f"about {day_bytes / 1e9:,.1f} GB of changes a day"
    many_keys = [str(table.name) for table in tables if len(table.keys) >= _MANY_KEYS]
    problems = list[str]()
    if len(tables) > _NEAR * _MOST_TABLES:
        problems.append(f"{len(tables):,} tables, and Fabric mirrors at most {_MOST_TABLES:,}")
    if day_bytes > _NEAR * _MOST_DAILY_BYTES:
        problems.append(f"{day}, and Fabric slows down after 1 TB")
    next_step = (
        "divide the tables between several mirrored databases, each with its own mirror.yaml." if problems else ""
    )
    if many_keys:
        named = ", ".join(many_keys[:3]) + (", …" if len(many_keys) > 3 else "")
        problems.append(f"Fabric advises fewer than {_MANY_KEYS} key columns, and {named} has as many or more")
        next_step = f"{next_step} Mirror a shorter key if the source has one.".strip()
    if problems:
        return warn("; ".join(problems), next_step)
    return ok(f"{len(tables):,} of {_MOST_TABLES:,} tables, {day} of 1 TB, fewer than {_MANY_KEYS} key columns")


def _daily_bytes(context: TableContext) -> float:
    """Return the bytes that land in a day; 0 if unknown."""
    try:
        manifest = context.manifest()
        found = daily_bytes(context.store, context.name, manifest, time.time()) if manifest else None
    except MirrorError:
        return 0.0  # the questions to the table say so
    return found or 0.0
