"""The counts of checks on the pages of a table's assets: who materializes an asset records its checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping

import dagster as dg
import pytest
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.check_jobs import CHECKS, RECONCILE
from mirror_assets.orchestration.checks import RECONCILED
from mirror_assets.orchestration.jobs import REBUILD, REBUILD_OP, REPAIR, REPLICATE
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, partitions_name
from mirror_assets.orchestration.runs import COMMAND_TAG
from mirror_assets.orchestration.translator import ASSET_KINDS, AssetKind, asset_key
from mirror_assets.pipeline.scheduler import Scheduler
from mirror_assets_tests.lab import TABLE, Lab

_MIRRORED = (AssetKind.SOURCE, AssetKind.CHANGES, AssetKind.LANDING)


class Pages:
    """What Dagster shows of the checks of one table."""

    def __init__(self, lab: Lab, instance: dg.DagsterInstance) -> None:
        self.lab, self.instance = lab, instance
        lab.configure()
        self.definitions = build_definitions(lab.config)

    def run(self, job: str, partition: str | None = None, config: Mapping[str, object] | None = None) -> None:
        self.wait_for_next_second()
        found = self.definitions.resolve_job_def(job)
        assert found.execute_in_process(instance=self.instance, partition_key=partition, run_config=config).success

    @staticmethod
    def wait_for_next_second() -> None:
        """Wait until no event is of this second.

        SQLite keeps whole seconds: Dagster hides a result that another run records in the second of its asset's event.
        """
        time.sleep(1.0 - time.time() % 1.0)

    def hidden(self, *kinds: AssetKind) -> list[str]:
        """Return the checks of these assets that Dagster shows as not evaluated, or as failed."""
        graph = self.definitions.resolve_asset_graph()
        keys = [key for key in graph.asset_check_keys if key.asset_key in {asset_key(kind, TABLE) for kind in kinds}]
        assert len(keys) >= len(kinds)
        storage = self.instance.event_log_storage
        records = storage.get_latest_asset_check_execution_by_key(keys)

        def is_shown(record: AssetCheckExecutionRecord | None) -> bool:
            if record is None or record.evaluation is None or not record.evaluation.passed:
                return False
            return asyncio.run(record.targets_latest_materialization(LoadingContextForTest(self.instance)))

        return sorted(key.to_user_string() for key in keys if not is_shown(records.get(key)))


@pytest.fixture
def pages(lab: Lab) -> Iterator[Pages]:
    with dg.instance_for_test() as instance:
        yield Pages(lab, instance)


@pytest.mark.long(60)
def test_each_check_has_a_result_of_the_newest_event(pages: Pages) -> None:
    for number in range(2):
        pages.lab.sql(f"INSERT INTO {{t}} VALUES ({100 + number}, 'new', 1), ({200 + number}, 'new', 1)")
        pages.run(MIRROR_ALL)
        assert pages.hidden(*_MIRRORED) == []
        pages.run(REPLICATE)
        not_compared = [f"{asset_key(AssetKind.MIRROR, TABLE).to_user_string()}:{RECONCILED}"]
        assert pages.hidden(AssetKind.MIRROR) == ([] if number else not_compared)
        pages.run(RECONCILE)
        assert pages.hidden(*ASSET_KINDS) == []
    pages.run(CHECKS)
    assert pages.hidden(*ASSET_KINDS) == []


@pytest.mark.long(60)
def test_a_backfill_a_repair_and_a_rebuild_record_the_checks(pages: Pages) -> None:
    pages.run(MIRROR_ALL)
    pages.lab.sql("INSERT INTO {t} VALUES (100, 'new', 1)")
    slices = partitions_name(asset_key(AssetKind.LANDING, TABLE))
    pages.instance.add_dynamic_partitions(slices, ["1.1-1"])
    chosen = [asset_key(kind, TABLE) for kind in (AssetKind.CHANGES, AssetKind.LANDING)]
    job = pages.definitions.resolve_implicit_global_asset_job_def()
    pages.wait_for_next_second()
    done = job.execute_in_process(instance=pages.instance, asset_selection=chosen, partition_key="1.1-1")
    assert done.success
    assert pages.hidden(*_MIRRORED) == []
    pages.run(REPLICATE)
    pages.lab.sql("INSERT INTO {t} VALUES (101, 'new', 1)")
    pages.run(REPAIR, str(TABLE))
    assert pages.hidden(*_MIRRORED) == []
    pages.run(REBUILD, str(TABLE), {"ops": {REBUILD_OP: {"config": {"confirm": str(TABLE)}}}})
    assert pages.hidden(*_MIRRORED) == []


@pytest.mark.long(30)
def test_a_table_that_is_rebuilt_automatically_has_the_results_of_its_rebuild(waiting: Lab) -> None:
    waiting.lose_changes()
    with dg.instance_for_test() as instance:
        pages = Pages(waiting, instance)
        pages.run(MIRROR_ALL)
        assert waiting.manifest().epoch == 2
        assert pages.hidden(*_MIRRORED) == []


@pytest.mark.long(30)
def test_a_run_that_is_canceled_after_a_slice_has_landed_records_its_checks(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_turn(scheduler: Scheduler) -> None:
        scheduler._start_turns()
        ((future, turn),) = scheduler._running.items()
        assert future.result(), "the table would have another turn"
        scheduler._running.clear()
        scheduler._queue.append((turn.table, turn.work))
        raise KeyboardInterrupt

    monkeypatch.setattr(Scheduler, "finish", one_turn)
    job = pages.definitions.resolve_job_def(MIRROR_ALL)
    ended = job.execute_in_process(instance=pages.instance, tags={COMMAND_TAG: "run"}, raise_on_error=False)
    assert not ended.success
    assert pages.hidden(*_MIRRORED) == []
