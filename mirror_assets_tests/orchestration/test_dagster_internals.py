"""Only one module depends on Dagster's internals, so that a new Dagster version is one file to check."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg

from mirror_assets.orchestration import dagster_internals

_PACKAGE = Path(dagster_internals.__file__).parents[1]
_INTERNAL = re.compile(r"^\s*(?:from|import) dagster(?:\.|_\w+\.)_", re.MULTILINE)


def test_no_other_module_imports_internals() -> None:
    users = {file for file in _PACKAGE.rglob("*.py") if _INTERNAL.search(file.read_text())}
    assert users == {Path(dagster_internals.__file__)}


def test_the_module_has_nothing_that_dagster_exports() -> None:
    assert [name for name in dagster_internals.__all__ if hasattr(dg, name)] == []


def test_threads_record_in_an_instance_in_memory_at_once() -> None:
    with dagster_internals.ephemeral_instance() as instance:

        def record(number: int) -> None:
            run = instance.add_run(dg.DagsterRun(job_name="job", run_id=dagster_internals.make_new_run_id()))
            instance.add_run_tags(run.run_id, {"number": str(number)})

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(record, range(200)))
        assert sorted(int(run.tags["number"]) for run in instance.get_runs()) == list(range(200))
