"""Wide histories: features, layouts and odd logs change inside the bursts of commits that become slices.

After each run of the mirror, Delta's public reader and the landing files are compared.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_assets.errors import MirrorError
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landed_rows import Chosen, difference, landed_rows, source_rows
from mirror_assets_tests.worlds.histories.rewritten_commits import REWRITINGS
from mirror_assets_tests.worlds.histories.setup import Way
from mirror_assets_tests.worlds.histories.wide_steps import STEPS, Step
from mirror_assets_tests.worlds.histories.wide_table import Shape, WideTable

# Errors of Delta and pyarrow for a step that doesn't fit the table.
_REFUSED = (PySparkException, Py4JError, DeltaError, ValueError, NotImplementedError)
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
    ("name", "sha2(name, 256)", None),
    ("name", "left(name, 2)", None),
    ("amount", "NULL", None),
    ("ts", "NULL", None),
)
_DERIVED = (
    ("label", "concat(coalesce(name, ''), '-', coalesce(n, 0))", "string"),
    ("is_long", "length(name) > 3", "boolean"),
    ("total", "amount * 2", "decimal(30, 4)"),
)


@dataclass
class Outcome:
    """The result of a history: its numbers, its statements, and a description of the first failure."""

    seed: int
    way: Way
    statements: int = 0
    refused_by_delta: int = 0
    slices: int = 0
    comparisons: int = 0
    rebuilds: int = 0
    refusals: list[str] = field(default_factory=list)
    failure: str | None = None
    seconds: float = 0.0
    steps: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        not_possible = f"({self.refused_by_delta} not possible)"
        return (
            f"seed {self.seed:>6}  {self.way.value:<26}{self.statements:>4} steps {not_possible:<18}"
            f"{self.slices:>5} slices{self.comparisons:>4} comparisons{self.rebuilds:>3} rebuilds"
            f"{len(self.refusals):>3} refusals{1 if self.failure else 0:>3} differences{self.seconds:>7.1f} s"
        )

    def figures(self) -> dict[str, float]:
        """Its numbers, to be added up."""
        return {
            "histories": 1,
            "steps": self.statements,
            "slices": self.slices,
            "comparisons": self.comparisons,
            "rebuilds": self.rebuilds,
            "refusals": len(self.refusals),
            "differences": int(self.failure is not None),
            "seconds": self.seconds,
        }


def _shown(error: Exception) -> str:
    """The first line of a message that says more than that something failed."""
    lines = [line for line in str(error).splitlines() if not line.startswith("An error occurred")]
    return lines[0][:200] if lines else type(error).__name__


class Failure(Exception):
    """The mirror is wrong, or a rebuild doesn't help."""


@dataclass(frozen=True)
class Settings:
    """The settings of the mirror of a history."""

    where: str | None
    computed: Mapping[str, tuple[str, str | None]]
    on_break: str
    on_drop_column: str

    @classmethod
    def drawn(cls, rng: Random, way: Way) -> Settings:
        computed: dict[str, tuple[str, str | None]] = {}
        if rng.random() < 0.4:
            computed = {name: (sql, kind) for name, sql, kind in (rng.choice(_MASKS), rng.choice(_DERIVED))}
        breaks = (
            ("rebuild", "rebuild", "hold")
            if way in (Way.APPENDS, Way.KEYLESS)
            else ("rebuild", "rebuild", "repair", "hold")
        )
        return cls(rng.choice(_WHERE), computed, rng.choice(breaks), rng.choice(("keep", "keep", "rebuild")))

    @property
    def chosen(self) -> Chosen:
        """The same for the comparison."""
        expressions = {name: sql for name, (sql, _) in self.computed.items()}
        return Chosen(self.where, expressions, {name: kind for name, (_, kind) in self.computed.items() if kind})

    def lines(self) -> Iterator[str]:
        """The lines of mirror.yaml."""
        yield f"on_break: {self.on_break}"
        yield f"on_drop_column: {self.on_drop_column}"
        if self.where:
            yield f"where: {json.dumps(self.where)}"
        if self.computed:
            columns = {
                name: {"sql": sql} | ({"type": kind} if kind else {}) for name, (sql, kind) in self.computed.items()
            }
            yield f"columns: {json.dumps(columns)}"


class WideHistory:
    """One history, drawn from its seed."""

    def __init__(self, spark: SparkSession, root: Path, seed: int, way: Way) -> None:
        self._rng = Random(f"{seed} {way.value}")
        self.way, self.outcome = way, Outcome(seed, way)
        self._lab = Lab(spark, root)
        shape = Shape.drawn(self._rng, {f"delta.{way.needs}": "true"} if way.needs else {})
        self._settings = Settings.drawn(self._rng, way)
        self._table = WideTable(spark, Path(self._lab.uri), self._rng, shape)
        self._steps = [
            step for step in (*STEPS, *REWRITINGS) if way is not Way.APPENDS or step.appends or self._rng.random() < 0.1
        ]

    def run(self, bursts: int) -> Outcome:
        """Run it to its end, or to the first difference."""
        began = time.monotonic()
        self._table.path.mkdir(parents=True)
        try:
            self._configure()
            self._table.create(range(self._table.shape.rows))
            self._burst(self._rng.randint(0, 2))
            self._follow()
            for _ in range(bursts):
                self._configure()
                self._burst(self._rng.randint(1, 6))
                self._follow()
        except Exception as error:  # noqa: BLE001 a history that fails is shown with its statements
            wrong = str(error) if isinstance(error, Failure) else "".join(traceback.format_exception(error))[-3000:]
            self.outcome.failure = f"seed {self.outcome.seed}, {self.way.value}: {wrong}"
        self.outcome.steps = self._table.steps
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def _configure(self) -> None:
        commits, target = self._rng.choice((1, 4, 100, 100)), self._rng.choice((3, 50, 1000))
        lines = [
            f"changes: {self.way.changes}",
            f"compact: {str(self.way is Way.COMPACT).lower()}",
            *self._settings.lines(),
        ]
        defaults = f"slices: {{max_commits: {commits}}}\n  files: {{target_rows: {target}}}"
        keys = {Way.KEYLESS: "[]", Way.APPENDS: "[]"}.get(self.way, f"[{', '.join(self._table.shape.keys)}]")
        self._lab.configure("\n    ".join(lines), defaults, keys)
        self._table.note(f"slices of {commits} commits; {'; '.join(lines)}; keys {keys}")

    def _burst(self, steps: int) -> None:
        weights = [step.weight for step in self._steps]
        for step in self._rng.choices(self._steps, weights, k=steps):
            self._step(step)
        if self._rng.random() < 0.5:
            self._enable_what_is_needed()

    def _step(self, step: Step) -> None:
        self.outcome.statements += 1
        self._table.steps.append(step.name)
        try:
            step.do(self._table)
        except _REFUSED as error:
            self.outcome.refused_by_delta += 1
            self._table.note(f"not possible: {_shown(error)}")
            self._table.changed_by_others()

    def _enable_what_is_needed(self) -> None:
        needed = self.way.needs
        if needed and self._table.log.configuration.get(f"delta.{needed}") != "true":
            self._table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.{needed}' = 'true')")

    def _follow(self) -> None:
        """Mirror all commits, and compare. If the table stops, compare, rebuild it, and compare again."""
        self._table.steps.append(f"mirror to version {self._table.log.version}")
        try:
            self._mirror()
        except MirrorError as error:
            self._note_refusal(error)
            self._compare(of_a_stop=True)
            self._enable_what_is_needed()
            try:
                rebuild_table(self._lab.context, self._lab.replicator, lambda _: None)
                self._mirror()
            except MirrorError as again:
                raise Failure(f"stuck, also after a rebuild: {type(again).__name__}: {again}") from again
        self._compare()
        self._table.mirrored = self._table.log.version

    def _note_refusal(self, error: MirrorError) -> None:
        if not error.next_step:
            raise Failure(f"an error without a next step: {error}")
        self.outcome.refusals.append(f"{type(error).__name__}: {error.what}")
        self._table.note(f"refused: {type(error).__name__}: {error.what}")

    def _mirror(self) -> None:
        before = self._lab.context.manifest()
        try:
            self.outcome.slices += len(self._lab.mirror())
        finally:
            after = self._lab.context.manifest()
            if before and after:
                self.outcome.rebuilds += max(0, after.epoch - before.epoch)

    def _compare(self, *, of_a_stop: bool = False) -> None:
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
        wrong = difference(wanted, landed_rows(self._lab.folder, columns))
        self.outcome.comparisons += 1
        if wrong is not None:
            raise Failure(f"version {manifest.covered}: {wrong}")
