"""Figures that proofs report, printed as a table behind the test run.

A test says what it has counted:

    figures.report("every schedule", "states", 23_511, case="next slice, a crash")
"""

from __future__ import annotations

import pytest
from xdist.workermanage import WorkerController

Figures = dict[str, float]

_reported: dict[str, dict[str, Figures]] = {}


def report(proof: str, figure: str, amount: float, case: str = "") -> None:
    """Add `amount` to a figure of the proof, or of one of its cases; a proof's line is the sum of its cases."""
    figures = _reported.setdefault(proof, {}).setdefault(case, {})
    figures[figure] = figures.get(figure, 0) + amount


def table() -> list[str]:
    """The lines: a proof with its sums, and below it its cases in the order of their first report."""
    rows = [row for proof, cases in _reported.items() for row in _rows(proof, cases)]
    width = max((len(label) for label, _ in rows), default=0)
    return [f"{label:<{width}}  {'  '.join(_cells(figures))}" for label, figures in rows]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its figures to the process that started it."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["figures"] = _reported


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Add what a worker reported; one that crashed has left nothing."""
    reported: dict[str, dict[str, Figures]] = getattr(node, "workeroutput", {}).get("figures", {})
    for proof, cases in reported.items():
        for case, figures in cases.items():
            for figure, amount in figures.items():
                report(proof, figure, amount, case)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, if anything was reported."""
    if _reported:
        terminalreporter.section("figures")
        for line in table():
            terminalreporter.write_line(line)


def _rows(proof: str, cases: dict[str, Figures]) -> list[tuple[str, Figures]]:
    sums: Figures = {}
    for figures in cases.values():
        for figure, amount in figures.items():
            sums[figure] = sums.get(figure, 0) + amount
    return [(proof, sums), *((f"  {case}", figures) for case, figures in cases.items() if case)]


def _cells(figures: Figures) -> list[str]:
    return [f"{_shown(amount):>11} {figure}" for figure, amount in figures.items()]


def _shown(amount: float) -> str:
    return f"{amount:,}" if isinstance(amount, int) else f"{amount:,.1f}"
