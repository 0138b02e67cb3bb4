"""Histories: anything may happen to source, publishers and consumer, in any order, all of it drawn from one seed.

Rows, features, layouts and odd logs change inside the bursts of commits that become slices. Runs are killed, get no
response, or are overtaken; others stage and land nothing, rebuild, or meet rows that can't be mirrored. After every
write the table folder is checked. After a run that nothing disturbed, Delta's public reader, the landing files and the
stand-in's table are compared.
"""

from __future__ import annotations

import json
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from random import Random

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_assets.encode.part_assignment import group_commits
from mirror_assets.errors import MirrorError, RetryError, StopError, UnknownOutcome
from mirror_assets.landing.names import landing_number
from mirror_assets.monitoring import TableState
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.source.errors import ROWS_CHANGED
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.landed_rows import Chosen, difference, landed_rows, rows_of, source_rows
from mirror_assets_tests.landed_slices import landed_slices
from mirror_assets_tests.source.handmade import commit_file
from mirror_assets_tests.worlds.eyes import Eyes
from mirror_assets_tests.worlds.histories.faulty import Fault, FaultyStore, Killed
from mirror_assets_tests.worlds.histories.rewritten_commits import REWRITINGS
from mirror_assets_tests.worlds.histories.steps import CHURN, STEPS, Step
from mirror_assets_tests.worlds.histories.table import Shape, Table, actions_in

# Errors of Delta and pyarrow for a step that doesn't fit the table.
_REFUSED = (PySparkException, Py4JError, DeltaError, ValueError, NotImplementedError)
_PASSING = (RetryError, UnknownOutcome)
SALT = "a secret of the lake's"
_WHERE = (
    None,
    None,
    None,
    "n % 3 <> 0",
    "name > 'n3' OR amount >= 2",
    "amount IS NULL OR amount < 3",
    "d < DATE'1600-01-01' OR d IS NULL",
    "info.a > 1",
    "f >= 0",
)
_MASKS = (
    ("name", "sha2(concat(name, '${SALT}'), 256)", None),
    ("id", "sha2(concat(id, '${SALT}'), 256)", "string"),
    ("name", "left(name, 2)", None),
    ("amount", "NULL", None),
    ("ts", "NULL", None),
)
_DERIVED = (
    ("label", "concat(coalesce(name, ''), '-', coalesce(n, 0))", "string"),
    ("is_long", "length(name) > 3", "boolean"),
    ("total", "amount * 2", "decimal(30, 4)"),
)


class Way(Enum):
    """How the changes of a source are found, and whether its rows have a key."""

    FEED = "feed"
    COMPACT = "feed, net changes"
    FILES = "files"
    TRACKED = "row tracking"
    KEYLESS = "row tracking without keys"
    APPENDS = "append only"

    @property
    def changes(self) -> str:
        named = {Way.FEED: "feed", Way.COMPACT: "feed", Way.FILES: "files", Way.APPENDS: "append_only"}
        return named.get(self, "row_tracking")

    @property
    def needs(self) -> Mapping[str, str]:
        needed = {"feed": "enableChangeDataFeed", "row_tracking": "enableRowTracking"}
        return {f"delta.{needed[self.changes]}": "true"} if self.changes in needed else {}


@dataclass
class Outcome:
    """The result of a history: its numbers, its statements, and a description of the first failure."""

    figures: Counter[str] = field(default_factory=lambda: Counter({"histories": 1}))
    failure: str | None = None
    steps: list[str] = field(default_factory=list)


class Failure(Exception):
    """The mirror is wrong, or a rebuild doesn't help."""


@dataclass(frozen=True)
class Settings:
    """The settings of the mirror of a history."""

    where: str | None = None
    computed: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    on_break: str = "rebuild"
    on_drop_column: str = "keep"

    @classmethod
    def drawn(cls, rng: Random, way: Way) -> Settings:
        computed: dict[str, tuple[str, str | None]] = {}
        if rng.random() < 0.4:
            computed = {name: (sql, kind) for name, sql, kind in (rng.choice(_MASKS), rng.choice(_DERIVED))}
        breaks: tuple[str, ...] = ("rebuild", "rebuild", "hold")
        if way not in (Way.APPENDS, Way.KEYLESS):
            breaks = (*breaks, "repair")
        return cls(rng.choice(_WHERE), computed, rng.choice(breaks), rng.choice(("keep", "keep", "rebuild")))

    @property
    def chosen(self) -> Chosen:
        salt = SALT.replace("'", "\\'")
        expressions = {name: sql.replace("${SALT}", salt) for name, (sql, _) in self.computed.items()}
        return Chosen(self.where, expressions, {name: kind for name, (_, kind) in self.computed.items() if kind})

    def lines(self) -> Iterator[str]:
        yield f"on_break: {self.on_break}"
        yield f"on_drop_column: {self.on_drop_column}"
        if self.where:
            yield f"where: {json.dumps(self.where)}"
        if self.computed:
            columns = {
                name: {"sql": sql} | ({"type": kind} if kind else {}) for name, (sql, kind) in self.computed.items()
            }
            yield f"columns: {json.dumps(columns)}"


@dataclass(frozen=True)
class Choices:
    """What a history is drawn from. A plain one has a table of rows alone, and its runs are not disturbed."""

    steps: Sequence[Step] = (*STEPS, *REWRITINGS)
    commits: Sequence[int] = (1, 4, 100, 100)
    rows: Sequence[int] = (1000, 1000, 8)
    target_rows: Sequence[int] = (1, 3, 50, 1000)
    is_plain: bool = False


# Slices of many parts in which most keys change in several commits.
MANY_PARTS = Choices(CHURN, commits=(100,), rows=(1000,), target_rows=(3, 2, 1, 5), is_plain=True)


class History:
    """One history, drawn from its seed."""

    def __init__(self, spark: SparkSession, root: Path, seed: int, way: Way, choices: Choices = Choices()) -> None:
        self._rng = Random(f"{seed} {way.value}")
        self.way, self.outcome, self._choices = way, Outcome(), choices
        self._name = f"seed {seed}, {way.value}"
        self._lab = Lab(spark, root)
        shape = Shape.plain(way.needs) if choices.is_plain else Shape.drawn(self._rng, way.needs)
        self._settings = Settings() if choices.is_plain else Settings.drawn(self._rng, way)
        self._table = Table(spark, Path(self._lab.uri), self._rng, shape)
        self._eyes = Eyes()
        self._polls = self._may_break = False
        self._steps = [step for step in choices.steps if self._fits(step)]

    def run(self, bursts: int) -> Outcome:
        began = time.monotonic()
        self._table.path.mkdir(parents=True)
        try:
            self._configure(self._choices)
            self._table.create(range(self._table.shape.rows))
            self._burst(self._steps, self._rng.randint(0, 2))
            self._go_on()
            for _ in range(bursts):
                churns = self.way is not Way.APPENDS and self._rng.random() < 0.2
                self._configure(MANY_PARTS if churns else self._choices)
                least = 4 if churns or self._choices.is_plain else 1
                self._burst(CHURN if churns else self._steps, self._rng.randint(least, 6))
                self._go_on()
            self._follow()
        except Exception as error:  # noqa: BLE001 a history that fails is shown with its statements
            wrong = str(error) if isinstance(error, Failure) else "".join(traceback.format_exception(error))[-3000:]
            self.outcome.failure = f"{self._name}: {wrong}"
        self.outcome.steps = self._table.steps
        self.outcome.figures["landing files"] = self._eyes.landed
        self.outcome.figures["seconds"] = round(time.monotonic() - began)
        return self.outcome

    def _fits(self, step: Step) -> bool:
        """A step that takes rows away from a table of appends comes rarely: the mirror stops there."""
        return self.way is not Way.APPENDS or step.appends or self._rng.random() < 0.1

    def _configure(self, choices: Choices) -> None:
        choose = self._rng.choice
        commits, rows, target = choose(choices.commits), choose(choices.rows), choose(choices.target_rows)
        lines = [
            f"changes: {self.way.changes}",
            f"compact: {str(self.way is Way.COMPACT).lower()}",
            *self._settings.lines(),
        ]
        defaults = f"slices: {{max_commits: {commits}, max_rows: {rows}}}\n  files: {{target_rows: {target}}}"
        keys = {Way.KEYLESS: "[]", Way.APPENDS: "[]"}.get(self.way, f"[{', '.join(self._table.shape.keys)}]")
        self._lab.configure("\n    ".join(lines), defaults, keys)
        self._polls = self._rng.random() < 0.2
        self._table.note(f"{defaults}; {'; '.join(lines)}; keys {keys}")

    def _burst(self, steps: Sequence[Step], count: int) -> None:
        for step in self._rng.choices(steps, [step.weight for step in steps], k=count):
            self.outcome.figures["steps"] += 1
            self._may_break |= not step.follows or (self.way is Way.APPENDS and not step.appends)
            self._table.steps.append(step.name)
            try:
                step.do(self._table)
            except _REFUSED as error:
                self.outcome.figures["steps not possible"] += 1
                self._table.note(f"not possible: {_shown(error)}")
                self._table.changed_by_others()
        if self._rng.random() < 0.5:
            self._enable_what_is_needed()

    def _enable_what_is_needed(self) -> None:
        for name, value in self.way.needs.items():
            if self._table.log.configuration.get(name) != value:
                self._table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{name}' = '{value}')")

    def _go_on(self) -> None:
        """A run that is compared, or one that is disturbed, after which the next burst may come at once."""
        kind = 1.0 if self._choices.is_plain else self._rng.random()
        if kind < 0.06 and self.way not in (Way.KEYLESS, Way.APPENDS) and not self._settings.where:
            self._meet_bad_rows()
        elif kind < 0.5:
            self._disturb(self._rng.choice((self._mirror, self._mirror, self._mirror, self._rebuild, self._stage)))
        if kind >= 0.25:
            self._follow()

    # Runs that something happens to

    def _disturb(self, run: Callable[[TableContext], None]) -> None:
        fault = Fault.drawn(self._rng)
        store, ended = self._zone(fault), "undisturbed"
        self._table.steps.append(f"{run.__name__.strip('_')} to version {self._table.log.version}: {fault}")
        self._may_break |= run == self._rebuild
        try:
            run(replace(self._lab.context, store=store))
        except Killed:
            ended = "killed"
        except _PASSING:
            ended = "retried later"
        except MirrorError as error:
            ended = "held"
            self._note_refusal(error)
        if ended in ("killed", "retried later") and not store.happened:
            raise Failure("a run stopped without a reason")
        self.outcome.figures[f"runs {ended}"] += 1

    def _zone(self, fault: Fault | None = None) -> FaultyStore:
        return FaultyStore(self._lab.root / "landing", self._look, fault, self._overtake)

    def _look(self) -> None:
        store = self._lab.store
        found = (store.local_path(info.path) for folder in TABLE.file_folders for info in store.list(folder))
        self._eyes.see((number, path.read_bytes()) for path in found if (number := landing_number(path.name)))
        if self._eyes.wrong:
            raise Failure("; ".join(self._eyes.wrong))

    def _overtake(self) -> None:
        with suppress(MirrorError):
            list(landed_slices(replace(self._lab.context, store=self._zone()), self._lab.replicator))

    def _mirror(self, context: TableContext) -> None:
        before = context.manifest()
        for landed in landed_slices(context, self._lab.replicator):
            self.outcome.figures["slices"] += 1
            runs = [run for run in group_commits(landed.planned.assignments) if not run.unpaired]
            self.outcome.figures["paired runs of many parts"] += sum(
                len(run.assignments) > 1 and run.parts > 2 for run in runs if self.way is Way.FEED
            )
            if self._polls:
                self._compare(of_a_stop=True)
        after = context.manifest()
        rebuilds = max(0, after.epoch - before.epoch) if before and after else 0
        self.outcome.figures["rebuilds"] += rebuilds
        if rebuilds and not self._may_break:
            raise Failure("a rebuild without a reason")

    def _rebuild(self, context: TableContext) -> None:
        rebuild_table(context, self._lab.replicator, lambda _: None)

    def _stage(self, context: TableContext) -> None:
        """Stage and check what is pending first, as a run that dies then."""
        plan = plan_table(context)
        for planned in plan.slices[:1]:
            run_checks(context, stage_slice(context, planned, plan.position))

    def _meet_bad_rows(self) -> None:
        """Nothing of their slice is published. When they were deleted, a rebuild leaves out their commit."""
        self._table.steps.append("rows that can't be mirrored")
        before = self._table.log.version
        statement = self._table.rows([9999, 9999], "bad")
        if self._rng.random() < 0.5:
            statement = statement.replace("SELECT id AS id", "SELECT CAST(NULL AS INT) AS id")
        self._table.sql(f"INSERT INTO {{t}} {statement}")
        self._table.unfit.add(self._table.log.version)
        try:
            self._mirror(replace(self._lab.context, store=self._zone()))
        except MirrorError as error:
            self._note_refusal(error)
        else:
            raise Failure("rows that can't be mirrored have landed")
        manifest = self._lab.context.manifest()
        table_id = self._table.log.metadata["id"]
        if manifest and not manifest.loading and manifest.covered > before and manifest.source_table_id == table_id:
            raise Failure(f"a slice with rows that can't be mirrored has landed: {manifest.covered} is covered")
        self._table.sql("DELETE FROM {t} WHERE id = 9999 OR id IS NULL")
        self._enable_what_is_needed()
        self._rebuild(self._lab.context)
        self._follow()

    # Runs that are compared

    def _follow(self) -> None:
        """Mirror all commits, and compare. If the table stops, compare, rebuild it, and compare again."""
        self._table.steps.append(f"mirror to version {self._table.log.version}")
        context = replace(self._lab.context, store=self._zone())
        try:
            self._mirror(context)
        except MirrorError as error:
            self._note_refusal(error)
            self._compare(of_a_stop=True)
            self._enable_what_is_needed()
            self._may_break = True
            try:
                self._rebuild(context)
                self._mirror(context)
            except MirrorError as again:
                raise Failure(f"stuck, also after a rebuild: {type(again).__name__}: {again}") from again
        self._compare()
        self._may_break = False
        self._table.mirrored = self._table.log.version

    def _note_refusal(self, error: MirrorError) -> None:
        if not error.next_step:
            raise Failure(f"an error without a next step: {error}")
        self.outcome.figures["refusals"] += 1
        self._table.note(f"refused: {type(error).__name__}: {error.what}")
        manifest = self._lab.context.manifest()
        if error.row is ROWS_CHANGED and manifest and not manifest.loading:
            # A table of appends stops right before a commit that removes files.
            file = commit_file(self._table.path, manifest.covered + 1)
            if not any(action.get("remove") for action in actions_in(file)):
                raise Failure(f"stopped at version {manifest.covered + 1}, which removes nothing")
        elif not self._may_break and not isinstance(error, StopError):
            raise Failure(f"refused without a reason: {error}")

    def _compare(self, *, of_a_stop: bool = False) -> None:
        self._look()
        manifest, log = self._lab.context.manifest(), self._table.log
        if manifest is None or manifest.loading is not None:
            if of_a_stop:
                return
            raise Failure("nothing is covered after a run")
        if of_a_stop and (manifest.source_table_id != log.metadata["id"] or manifest.covered > log.version):
            return
        if not of_a_stop and manifest.covered != log.version:
            raise Failure(f"version {manifest.covered} is covered after a run, and the newest is {log.version}")
        ids = "_row_id" if self.way is Way.KEYLESS else None
        at = None if manifest.covered == log.version else manifest.covered
        try:
            wanted = source_rows(self._lab.spark, self._table.path, at, self._settings.chosen, ids=ids)
        except PySparkException:
            if of_a_stop:
                return  # a column of a condition may be missing at this version
            raise
        columns = (
            {name for values in wanted for name, _ in values}
            if of_a_stop
            else {*log.names, *self._settings.computed, *([ids] if ids else [])}
        )
        self.outcome.figures["comparisons"] += 1
        self._lab.replicator.poll()
        status = self._lab.replicator.table(TABLE)
        if status is None or status.state is TableState.FAILED:
            raise Failure(f"the stand-in: {status}")
        mirror = DeltaTable(status.location).to_pyarrow_table()
        for found, name in ((landed_rows(self._lab.folder, columns), ""), (rows_of(mirror, columns), "the stand-in: ")):
            if wrong := difference(wanted, found):
                raise Failure(f"{name}version {manifest.covered}: {wrong}")


def _shown(error: Exception) -> str:
    """The first line of a message that says more than that something failed."""
    lines = [line for line in str(error).splitlines() if not line.startswith("An error occurred")]
    return lines[0][:200] if lines else type(error).__name__
