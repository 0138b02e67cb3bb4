"""A source, its landing folder and its mirror: what may happen to them, and what must hold then."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_assets.encode.part_assignment import group_commits
from mirror_assets.errors import MirrorError, RebuildError, RetryError, StopError, UnknownOutcome
from mirror_assets.monitoring import TableState
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.source.errors import ROWS_CHANGED
from mirror_assets_tests import figures
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.landed_slices import landed_slices
from mirror_assets_tests.worlds.histories.equal import require_equal
from mirror_assets_tests.worlds.histories.faulty import Fault, FaultyStore, Killed
from mirror_assets_tests.worlds.histories.setup import Limits, Setup, Way
from mirror_assets_tests.worlds.histories.statement import Pick, Statement
from mirror_assets_tests.worlds.histories.traits import traits_of
from mirror_assets_tests.worlds.histories.watch import Watch
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, values

PROOF = "histories"
_PASSING = (RetryError, UnknownOutcome)

Burst = Sequence[tuple[Statement, Pick]]


class Run(Enum):
    """What may come behind some statements."""

    PUBLISH = "a run that is compared"
    MIRROR = "a run that is disturbed"
    REBUILD = "a rebuild that is disturbed"
    STAGE = "a run that stages and lands nothing"
    OF_BAD_ROWS = "a run that meets rows that can't be mirrored"


class World:
    """One history's; whatever has happened, the mirror is its source's as of the covered version."""

    def __init__(self, spark: SparkSession, root: Path, way: Way, setup: Setup) -> None:
        self.way, self._setup = way, setup
        self._lab = Lab(spark, root)
        self.source = Source(spark, self._lab.uri)
        root.mkdir()
        self._watch = Watch(self._lab.store, TABLE)
        self._polls = False
        self._may_break = False

    def begin(self, pick: Pick, limits: Limits) -> None:
        """Make the source, with some rows."""
        self._setup.features_for(self.way).create(self.source)
        self.source.sql(f"INSERT INTO {{t}} ({COLUMNS}) {values({*pick.ids, *pick.others})}")
        self._restore_properties()
        self.cut_by(limits)

    def cut_by(self, limits: Limits) -> None:
        """Write mirror.yaml."""
        self._polls = limits.polls
        limits.configure(self._lab, self.way, self._setup)

    def commit(self, burst: Burst) -> None:
        """Run the statements that the table can have; then what the mirror rests on is on."""
        for statement, pick in burst:
            if self._fits(statement, pick):
                self._execute(statement, pick)
        self._restore_properties()

    def run(self, run: Run, fault: Fault) -> None:
        """Run it; what is not disturbed is compared."""
        if run is Run.PUBLISH:
            self.publish()
        elif run is Run.OF_BAD_ROWS and self.way not in (Way.KEYLESS, Way.APPENDS) and not self._setup.choice.where:
            self._meet_bad_rows(null=fault.writes)
        else:
            self._may_break |= run is Run.REBUILD
            self._disturbed({Run.REBUILD: self._rebuild, Run.STAGE: self._stage}.get(run, self._mirror), fault)

    def publish(self) -> None:
        """Mirror what is there, with a rebuild where one must be asked for, and compare."""
        context, before = self._context(self._zone()), self._epoch
        try:
            self._mirror(context)
        except self._explained as error:
            self._require_reason(error)
            self._rebuild(context)
        assert self._may_break or before in (0, self._epoch), "a rebuild without a reason"
        self._may_break = False
        self.compare()

    def compare(self) -> None:
        """Let the mirror apply what has landed: its rows are the source's as of the covered version."""
        self._lab.replicator.poll()
        covered, status = self._covered, self._lab.replicator.table(TABLE)
        assert covered is not None
        assert status is not None
        require_equal(self.source, covered, status.mirror_path, self._setup.choice, keyless=self.way is Way.KEYLESS)
        self._count("comparisons")

    def look(self) -> None:
        """Look at what has landed, and how the mirror is."""
        self._watch.look()
        status = self._lab.replicator.table(TABLE)
        assert status is None or status.state is not TableState.FAILED, status

    def end(self) -> None:
        """Run to the end: the mirror equals the source at the covered version, which is its tip."""
        self.publish()
        self.look()
        assert self._covered == self.source.version
        self._count("rebuilds", self._epoch - 1)
        self._count("histories")
        self._count("landing files", self._watch.landed)
        shutil.rmtree(self._lab.root)

    def _count(self, what: str, amount: int = 1) -> None:
        figures.report(PROOF, what, amount, case=self.way.value)

    def _fits(self, statement: Statement, pick: Pick) -> bool:
        """Whether the statement can be run; one that takes rows away from a table of appends rarely is."""
        wanted = statement.appends or self.way is not Way.APPENDS or pick.n == 9
        return wanted and statement.fits(traits_of(self.source))

    def _execute(self, statement: Statement, pick: Pick) -> None:
        """Run the statement; Delta and delta-rs refuse some in tables that earlier statements have made."""
        self._may_break |= statement.breaks
        try:
            statement.run(self.source, pick)
        except PySparkException as error:
            if not (error.getCondition() or "").startswith("DELTA_"):
                raise
            figures.report("statements of histories", "refused by Delta", 1, case=statement.kind)
        except DeltaError as error:
            if "is outside table root" not in str(error):  # of a shallow clone
                raise
            figures.report("statements of histories", "refused by delta-rs", 1, case=statement.kind)
        else:
            figures.report("statements of histories", "run", 1, case=statement.kind)

    def _restore_properties(self) -> None:
        """Switch on again what the mirror rests on, where a statement has switched it off."""
        if (needed := self.way.needs) and self.source.configuration.get(f"delta.{needed}") != "true":
            self.source.properties(**{needed: "true"})

    @property
    def _covered(self) -> int | None:
        manifest = self._lab.context.manifest()
        return None if manifest is None or manifest.loading else manifest.covered

    @property
    def _epoch(self) -> int:
        manifest = self._lab.context.manifest()
        return manifest.epoch if manifest else 0

    @property
    def _explained(self) -> tuple[type[MirrorError], ...]:
        """What a run may end with beside what passes."""
        held = (RebuildError,) if self._setup.hold else ()
        return (*held, StopError) if self.way is Way.APPENDS else held

    def _meet_bad_rows(self, *, null: bool) -> None:
        """Nothing of their slice is published. When they are gone, only a rebuild leaves out their commit."""
        before = self.source.version
        key = "CAST(NULL AS INT)" if null else "77"
        self.source.sql(f"INSERT INTO {{t}} ({COLUMNS}) SELECT {key}, 1, 'bad', 1 FROM range(2)")
        self.source.unfit.add(self.source.version)
        with pytest.raises((StopError, *self._explained)):
            self._mirror(self._context(self._zone()))
        manifest, table = self._lab.context.manifest(), str(self.source.table.metadata().id)
        assert manifest is None or manifest.covered <= before or manifest.source_table_id != table
        self.source.sql("DELETE FROM {t} WHERE id = 77 OR id IS NULL")
        self._rebuild(self._context(self._zone()))
        self._may_break = False
        self.compare()

    def _require_reason(self, error: MirrorError) -> None:
        """A table of appends stops right behind what is covered, before a commit that removes files."""
        if error.row is ROWS_CHANGED:
            commit = Path(self._lab.uri, "_delta_log", f"{(self._covered or 0) + 1:020d}.json")
            self._may_break = True
            actions = [json.loads(line) for line in commit.read_text().splitlines()]
            assert any(action.get("remove", {}).get("dataChange") for action in actions), error

    def _disturbed(self, run: Callable[[TableContext], None], fault: Fault) -> None:
        store, ended = self._zone(fault), "undisturbed"
        try:
            run(self._context(store))
        except Killed:
            ended = "killed"
        except _PASSING:
            ended = "told to try again"
        except self._explained as error:
            ended = "held"
            self._require_reason(error)
        assert ended in ("undisturbed", "held") or store.happened, "stopped without a reason"
        self._count(f"runs {ended}")

    def _zone(self, fault: Fault | None = None) -> FaultyStore:
        return FaultyStore(self._lab.root / "landing", self._watch.look, fault, self._overtake)

    def _context(self, store: FaultyStore) -> TableContext:
        return replace(self._lab.context, store=store)

    def _overtake(self) -> None:
        with suppress(*_PASSING, *self._explained):
            for _ in landed_slices(self._context(self._zone()), self._lab.replicator):
                self._count("slices")

    def _mirror(self, context: TableContext) -> None:
        for mirrored in landed_slices(context, self._lab.replicator):
            self._count("slices")
            runs = (
                run for run in group_commits(mirrored.planned.assignments) if not run.unpaired and self.way is Way.FEED
            )
            self._count("paired runs of many parts", sum(len(run.assignments) > 1 and run.parts > 2 for run in runs))
            if self._polls and self._covered is not None:
                self.compare()

    def _rebuild(self, context: TableContext) -> None:
        rebuild_table(context, self._lab.replicator, lambda _: None)

    def _stage(self, context: TableContext) -> None:
        """Stage and check what is pending first, as a run that dies then."""
        plan = plan_table(context)
        for planned in plan.slices[:1]:
            run_checks(context, stage_slice(context, planned, plan.position))
