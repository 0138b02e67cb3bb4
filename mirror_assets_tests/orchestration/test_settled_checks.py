"""A check that fails while a run works on the table is repeated: half a slice is not damage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mirror_assets.orchestration.settled_checks import settled
from mirror_assets.pipeline.table_lease import leased
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.pipeline.paper import Paper


@pytest.mark.parametrize(
    ("found", "ran", "passed"),
    [
        (["file 3 is missing", "file 4 is missing", ""], 3, True),
        (["file 3 is missing", "file 3 is missing", ""], 2, False),
        (["file 3 is missing", ""], 2, True),
        ([""], 1, True),
        (["a", "b", "c", ""], 3, False),
    ],
)
def test_a_failure_counts_when_it_is_the_same_twice(
    tmp_path: Path, found: Sequence[str], ran: int, passed: bool
) -> None:
    paper, runs, slept = Paper(tmp_path), list[str](), list[float]()

    def run() -> CheckResult:
        runs.append(found[len(runs)])
        return CheckResult("file_continuity", (runs[-1],) if runs[-1] else ())

    with leased(paper.context, "another run"):
        result = settled(paper.context, run, slept.append)
    assert (len(runs), result.passed) == (ran, passed)


def test_a_failure_counts_at_once_if_no_run_works_on_the_table(tmp_path: Path) -> None:
    paper, slept = Paper(tmp_path), list[float]()
    failed = CheckResult("file_continuity", ("a file is missing",))
    assert settled(paper.context, lambda: failed, slept.append) is failed
    assert not slept
