"""The table of figures."""

from __future__ import annotations

import pytest

from mirror_assets_tests import figures
from mirror_assets_tests.figures import report, table


@pytest.fixture(autouse=True)
def _nothing_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_reported", {})


def test_a_proof_is_the_sum_of_its_cases() -> None:
    report("every schedule", "states", 1_500, case="first slice")
    report("every schedule", "seconds", 0.25, case="first slice")
    report("every schedule", "states", 3, case="a crash")
    report("every schedule", "states", 4, case="a crash")
    report("kills", "runs", 20)
    assert table() == [
        "every schedule        1,507 states          0.2 seconds",
        "  first slice         1,500 states          0.2 seconds",
        "  a crash                 7 states",
        "kills                    20 runs",
    ]


def test_nothing_reported_is_no_table() -> None:
    assert table() == []
