"""What a job says of a configuration that somebody typed into the launchpad. No Spark."""

from __future__ import annotations

import time
from pathlib import Path

import dagster as dg

from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.jobs import MIRROR_ALL, TABLES_OP, MirrorTables
from mirror_assets_tests.pipeline.paper import Paper


def test_a_table_that_is_not_there_is_named_without_a_stack_trace(tmp_path: Path) -> None:
    paper = Paper(tmp_path)
    paper.create(time.time())
    wrong = dg.RunConfig(ops={TABLES_OP: MirrorTables(tables=["shop.none"])})
    job = build_definitions(paper.config).resolve_job_def(MIRROR_ALL)
    result = job.execute_in_process(run_config=wrong, raise_on_error=False)
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    assert "has no table 'shop.none'. Next: use one of: shop.orders." in (told.description or "")
