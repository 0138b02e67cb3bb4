"""The questions that a source's log answers, without a JVM."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property

from mirror_assets.config.setting_values import Changes, OnBreak
from mirror_assets.errors import ErrorCode, RebuildError, SettingError
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.doctor.answers import DoctorAnswer, failure, no, not_asked, ok, warn
from mirror_assets.pipeline.errors import stop_error
from mirror_assets.pipeline.pending import AT_BREAK, feed_deadline, pending_commits
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.source_check import check_source, table_columns
from mirror_assets.source.source_state import SourceState
from mirror_assets.source.table_properties import Retention
from mirror_assets.verify.ledger import CommitBalance
from mirror_assets.verify.ledger_log import audit
from mirror_assets.verify.timeliness import MOST_APART_SECONDS, check_retention

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
    return ok(f"version {state.version} of {_time(state.timestamp_ms)}: {state.files:,} files, {rows}")


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
        then = AT_BREAK[on_break].value
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


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


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
