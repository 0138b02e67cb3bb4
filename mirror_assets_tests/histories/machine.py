"""Long histories: anything may happen to source, publishers and consumer, in any order."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyspark.sql import SparkSession

from mirror_assets.errors import RetryError, UnknownOutcome
from mirror_assets.mirroring.judge import judge_slice
from mirror_assets.mirroring.planning import plan_table
from mirror_assets.mirroring.rebuild import rebuild_table
from mirror_assets.mirroring.run import mirror_table
from mirror_assets.mirroring.stage import stage_slice
from mirror_assets.mirroring.work import TableWork
from mirror_assets.monitoring import TableState
from mirror_assets_tests import figures
from mirror_assets_tests.histories.faulty import Fault, FaultyStore, Happening, Killed
from mirror_assets_tests.histories.source import Change, Source, bag
from mirror_assets_tests.histories.watch import Watch
from mirror_assets_tests.lab import TABLE, Lab

PROOF = "histories"
_PASSING = (RetryError, UnknownOutcome)

IDS = st.sets(st.integers(0, 30), min_size=1, max_size=6)
# A slice takes about 50 requests, 6 of them writes, and a rebuild some more.
FAULTS = st.builds(Fault, st.sampled_from(Happening), st.integers(0, 55), st.just(False)) | st.builds(
    Fault, st.sampled_from(Happening), st.integers(0, 12), st.just(True)
)


class Histories(RuleBasedStateMachine):
    """A source, its landing folder and its mirror; each run may be killed, unanswered or overtaken at one request."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        super().__init__()
        self._lab = Lab(spark, root)
        self._source = Source(root / "lake" / "orders", spark)
        root.mkdir()
        self._lab.configure(defaults="slices: {max_commits: 3}")
        self._watch = Watch(self._lab.store, TABLE)

    @initialize(ids=IDS)
    def begin(self, ids: set[int]) -> None:
        self._source.create(ids)

    @rule(change=st.sampled_from(Change), ids=IDS, nth=st.integers(0, 9))
    def commit(self, change: Change, ids: set[int], nth: int) -> None:
        self._source.commit(change, ids, nth)

    @precondition(lambda self: len(self._source.columns) < 5)
    @rule()
    def add_column(self) -> None:
        self._source.add_column(f"added{len(self._source.columns)}")

    @rule()
    def optimize(self) -> None:
        self._source.optimize()

    @rule(ids=IDS)
    def replace_source(self, ids: set[int]) -> None:
        self._source.create(ids)

    @rule()
    def publish(self) -> None:
        self._undisturbed(self._mirror)

    @rule(ids=IDS, fault=FAULTS)
    def publish_with(self, ids: set[int], fault: Fault) -> None:
        """With something to publish at least."""
        self._source.commit(Change.MERGE, ids)
        self._disturbed(self._mirror, fault)

    @rule()
    def stage_without_landing(self) -> None:
        self._undisturbed(self._stage)

    @rule(fault=FAULTS)
    def rebuild_with(self, fault: Fault) -> None:
        self._disturbed(self._rebuild, fault)

    @rule()
    def consume(self) -> None:
        self._lab.replicator.poll()

    @invariant()
    def landed_as_it_should(self) -> None:
        self._watch.look()
        status = self._lab.replicator.table(TABLE)
        assert status is None or status.state is not TableState.FAILED, status

    def teardown(self) -> None:
        """Run to the end: the mirror equals the source at the covered version, which is its tip."""
        self._undisturbed(self._mirror)
        self._lab.replicator.poll()
        self.landed_as_it_should()
        manifest, status = self._lab.work.manifest(), self._lab.replicator.table(TABLE)
        assert manifest is not None
        assert status is not None
        assert manifest.covered == self._source.table.version()
        assert bag(DeltaTable(str(status.mirror_path))) == self._source.rows(manifest.covered)
        figures.report(PROOF, "histories", 1)
        figures.report(PROOF, "landing files", self._watch.landed)
        shutil.rmtree(self._lab.root)

    def _undisturbed(self, run: Callable[[TableWork], None]) -> None:
        run(self._work(self._zone()))

    def _disturbed(self, run: Callable[[TableWork], None], fault: Fault) -> None:
        store, ended = self._zone(fault), "undisturbed"
        try:
            run(self._work(store))
        except Killed:
            ended = "killed"
        except _PASSING:
            ended = "told to try again"
        assert ended == "undisturbed" or store.happened, "stopped without a reason"
        figures.report(PROOF, f"runs {ended}", 1)

    def _zone(self, fault: Fault | None = None) -> FaultyStore:
        return FaultyStore(self._lab.root / "landing", self._watch.look, fault, self._overtake)

    def _work(self, store: FaultyStore) -> TableWork:
        return replace(self._lab.work, store=store)

    def _overtake(self) -> None:
        try:
            self._undisturbed(self._mirror)
        except _PASSING:
            return

    def _mirror(self, work: TableWork) -> None:
        for _ in mirror_table(work, self._lab.wait, lambda _: None):
            figures.report(PROOF, "slices", 1)

    def _rebuild(self, work: TableWork) -> None:
        rebuild_table(work, self._lab.wait, lambda _: None)
        figures.report(PROOF, "rebuilds", 1)

    def _stage(self, work: TableWork) -> None:
        """Stage and check what is pending first, as a run that dies then."""
        plan = plan_table(work)
        for planned in plan.slices[:1]:
            judge_slice(work, stage_slice(work, planned, plan.footing))
