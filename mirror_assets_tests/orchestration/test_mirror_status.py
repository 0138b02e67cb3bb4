"""The first page: the status of all tables, as the newest materialization of one asset. No Spark."""

from __future__ import annotations

import re
import time
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import NEXT, ErrorCode
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.run_records import record_failure
from mirror_assets.orchestration import mirror_status
from mirror_assets.orchestration.check_jobs import CHECK_OP, CHECKS, CheckTables
from mirror_assets_tests.pipeline.paper import TABLE, Paper

_KEY = dg.AssetKey("mirror_status")


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """A table whose newest commit landed an hour ago."""
    made = Paper(tmp_path)
    made.create(time.time() - 7200)
    made.commit(1, time.time() - 3600)
    made.cover(1)
    made.context.store.create(TABLE.metadata, metadata_bytes(("id",)))
    return made


def _check(config: Config, instance: dg.DagsterInstance, checks: CheckTables | None = None) -> None:
    run_config = dg.RunConfig(ops={CHECK_OP: checks}) if checks else None
    job = build_definitions(config).resolve_job_def(CHECKS)
    job.execute_in_process(instance=instance, run_config=run_config, raise_on_error=False)


def _written(instance: dg.DagsterInstance, key: dg.AssetKey = _KEY, name: str = "status") -> list[str]:
    """The Markdown, or another text, of each materialization, the newest first."""
    events = [record.asset_materialization for record in instance.fetch_materializations(key, limit=99).records]
    return [str(event.metadata[name].value) for event in events if event]


def _fail(paper: Paper, message: str) -> None:
    """Fail to land a commit; without one, a plan finds nothing to do and the failure is void."""
    now = int(time.time() * 1000)
    if not (paper.lake / "_delta_log" / f"{2:020d}.json").exists():
        paper.commit(2, time.time())
    record_failure(paper.context.store, TABLE, ErrorCode.CHECKS_FAILED, message, now)


def test_a_run_of_checks_writes_the_table_of_status(paper: Paper, instance: dg.DagsterInstance) -> None:
    _check(paper.config, instance)
    (table,) = _written(instance)
    head, rule, row = table.splitlines()
    assert head == "| table | health | why |"
    assert rule.count("---") == head.count("|") - 1
    assert row == "| shop.orders | up to date |  |"
    assert _written(instance, name="summary") == ["1 up to date"]


def test_nothing_is_written_while_nothing_changes(
    paper: Paper, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        _check(paper.config, instance)
    assert len(_written(instance)) == 1
    monkeypatch.setattr(mirror_status, "_AGAIN_SECONDS", 0.0)
    _check(paper.config, instance)
    assert len(_written(instance)) == 2, "once a day"


def test_a_change_of_health_is_written_at_once(paper: Paper, instance: dg.DagsterInstance) -> None:
    _check(paper.config, instance)
    for _ in range(2):
        _fail(paper, "slice 1.2-2 was not published: a key is NULL")
    _check(paper.config, instance)
    newest, _ = _written(instance)
    assert "| shop.orders | failing | 2 runs of shop.orders failed: slice 1.2-2 was not published" in newest
    assert _written(instance, name="summary")[0] == "1 failing. Act on shop.orders (failing)"
    _fail(paper, "slice 1.2-2 was not published: a key is NULL")
    _check(paper.config, instance)
    assert len(_written(instance)) == 2, "another number alone"


def test_a_check_that_fails_is_on_the_page_of_a_table_that_is_up_to_date(
    paper: Paper, instance: dg.DagsterInstance
) -> None:
    (paper.zone / TABLE.metadata).unlink()
    _check(paper.config, instance)
    assert "| shop.orders | check fails | metadata\\_unchanged: " in _written(instance)[0]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"{'word ' * 200}.{NEXT}fix the source.", r"word … Next: .*fix the source\. \|$"),
        (
            "a | b\n[click](http://x) `c` <img src=x>",
            re.escape("a \\| b \\[click\\](http://x) \\`c\\` \\<img src=x\\>"),
        ),
    ],
    ids=["long", "markdown"],
)
def test_a_reason_is_one_row_without_markdown_and_leaves_the_next_step(
    paper: Paper, instance: dg.DagsterInstance, message: str, shown: str
) -> None:
    _fail(paper, message)
    _check(paper.config, instance)
    _, _, row = _written(instance)[0].splitlines()
    assert re.search(shown, row)


def test_a_run_for_some_tables_or_checks_does_not_write_it(paper: Paper, instance: dg.DagsterInstance) -> None:
    _check(paper.config, instance, CheckTables(tables=[str(TABLE)], spark=False, is_scheduled=True))
    _check(paper.config, instance, CheckTables(checks=["lag"], spark=False, is_scheduled=True))
    assert _written(instance) == []


def test_two_configurations_in_one_instance_have_a_page_each(paper: Paper, instance: dg.DagsterInstance) -> None:
    other = paper.config.file.with_name("sales.yaml")
    other.write_text(f"landing_zone: {{path: ./landing}}\ntables:\n  {TABLE}: {{source: ./lake, keys: [id]}}\n")
    _check(load_config(other), instance)
    assert len(_written(instance, dg.AssetKey("sales_status"))) == 1
    assert _written(instance) == []
