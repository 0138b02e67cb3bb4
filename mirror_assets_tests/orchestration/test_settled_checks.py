"""A check that fails while a run works on the table is looked at again: half a slice is no damage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.orchestration.settled_checks import settled
from mirror_assets.pipeline.table_lease import leased
from mirror_assets_tests.pipeline.paper import Paper

_ASSET = dg.AssetKey(["shop", "orders_landing"])


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
def test_what_moves_on_is_looked_at_again_and_what_stays_has_failed(
    tmp_path: Path, found: Sequence[str], ran: int, passed: bool
) -> None:
    paper, runs, slept = Paper(tmp_path), list[str](), list[float]()

    def run() -> dg.AssetCheckResult:
        runs.append(found[len(runs)])
        return dg.AssetCheckResult(
            asset_key=_ASSET, check_name="file_continuity", passed=not runs[-1], description=runs[-1]
        )

    with leased(paper.context, "another run"):
        result = settled(paper.context, run, slept.append)()
    assert (len(runs), result.passed) == (ran, passed)


def test_where_nobody_works_on_the_table_a_failure_is_one_at_once(tmp_path: Path) -> None:
    paper, slept = Paper(tmp_path), list[float]()
    failed = dg.AssetCheckResult(asset_key=_ASSET, check_name="file_continuity", passed=False, description="gone")
    assert settled(paper.context, lambda: failed, slept.append)() is failed
    assert not slept
