"""Stored ratios of a machine: what is replaced, what is compared, and what a file says."""

from __future__ import annotations

import getpass
import json
import platform
from pathlib import Path

import pytest

from benchmarks import stored
from benchmarks.curve import Curve, GrowthPoint
from benchmarks.result import Outcome, Spread
from benchmarks.stored import Machine, Stored, compared, read_stored, store
from mirror_assets_tests.benchmarks.costs import case_of

_MACHINE = Machine(cores=2, cpu="Xeon(R) CPU", python="3.11.9", java="17.0.1", spark="4.2.0", delta="4.3.0")


def _outcome(*seconds: float) -> Outcome:
    """Ratios of these seconds to one."""
    return Outcome("changes", [case_of(dump=(1.0,) * len(seconds), land=seconds)])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of results."""
    monkeypatch.setattr(stored, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def test_a_ratio_outside_the_stored_range_is_reported_with_its_row() -> None:
    store({"changes": _outcome(0.5, 0.6, 0.7)}, _MACHINE, "small")
    (worse,) = compared({"changes": _outcome(0.8, 0.6, 0.9)}, _MACHINE, "small")
    assert worse.startswith("warning: a slice: land ÷ dump: 0.80 (0.60 to 0.90) is slower than the stored 0.60")
    (better,) = compared({"changes": _outcome(0.4, 0.4, 0.6)}, _MACHINE, "small")
    assert better.startswith("note: a slice: land ÷ dump: 0.40 (0.40 to 0.60) is faster than the stored 0.60")


@pytest.mark.parametrize("seconds", [(0.5, 0.5, 0.5), (0.7, 0.7, 0.7), (0.1, 0.6, 9.0)])
def test_a_median_within_the_stored_range_is_fine(seconds: tuple[float, ...]) -> None:
    store({"changes": _outcome(0.5, 0.6, 0.7)}, _MACHINE, "small")
    assert compared({"changes": _outcome(*seconds)}, _MACHINE, "small") == [
        "All ratios are within their stored ranges."
    ]


@pytest.mark.parametrize("other", [{"cores": 4}, {"cpu": "EPYC"}, {"spark": "4.1.0"}, {"java": "21"}])
def test_another_machine_has_no_stored_ratios(other: dict[str, object]) -> None:
    store({"changes": _outcome(0.5)}, _MACHINE, "small")
    unknown = _MACHINE.model_copy(update=other)
    (line,) = compared({"changes": _outcome(0.5)}, unknown, "small")
    assert line == f"Nothing is stored for this machine ({unknown}): `make bench ARGS=--store` stores these results."


def test_another_size_or_suite_has_no_stored_ratios() -> None:
    store({"changes": _outcome(0.5)}, _MACHINE, "small")
    assert compared({"changes": _outcome(0.5)}, _MACHINE, "full")[0].startswith("Nothing is stored")
    (line,) = compared({"plan": _outcome(0.5)}, _MACHINE, "small")
    assert line == "note: no ratios of suite plan are stored for this machine"


def test_a_new_row_is_a_note() -> None:
    store({"changes": Outcome("changes")}, _MACHINE, "small")
    assert compared({"changes": _outcome(0.5)}, _MACHINE, "small") == [
        "note: a slice: land ÷ dump: 0.50 (0.50 to 0.50), not stored yet"
    ]


def test_storing_replaces_the_suites_that_ran(folder: Path) -> None:
    store({"changes": _outcome(0.5), "plan": _outcome(0.6)}, _MACHINE, "small")
    file = store({"changes": _outcome(0.9)}, _MACHINE.model_copy(update={"memory_gib": 64}), "small")
    found = read_stored(file)
    assert isinstance(found, Stored)
    assert {name: suite.ratios["a slice: land ÷ dump"].median for name, suite in found.suites.items()} == {
        "changes": 0.9,
        "plan": 0.6,
    }
    assert [path.name for path in folder.iterdir()] == [
        "2-cores-xeon-cpu-python-3.11.9-java-17.0.1-spark-4.2.0-delta-4.3.0-small.json"
    ]


def test_curves_are_stored_with_their_points() -> None:
    outcome = Outcome("growth of backlog", curves=[Curve("The plan", "commits", [GrowthPoint(1, 2.0, 3.0, 4)])])
    found = read_stored(store({"growth-backlog": outcome}, _MACHINE, "small"))
    assert found is not None
    assert found.suites["growth-backlog"].curves == {"The plan": [GrowthPoint(1, 2.0, 3.0, 4)]}


def test_this_machine_is_stored_without_a_name_or_a_path() -> None:
    file = store({"changes": _outcome(0.5)}, Machine.here(), "small")
    machine = json.loads(file.read_text(encoding="utf-8"))["machine"]
    assert machine["cores"] > 0
    assert machine["memory_gib"] > 0
    assert machine["spark"][0].isdecimal()
    text = json.dumps(machine)
    assert not [name for name in (platform.node(), getpass.getuser(), str(Path.home()), "/") if name in text]


def test_committed_results_can_be_read() -> None:
    files = list((Path(stored.__file__).parent / "results").glob("*.json"))
    for file in files:
        found = read_stored(file)
        assert found is not None
        assert found.machine.file(file.stem.rpartition("-")[2]).name == file.name
        assert all(isinstance(ratio, Spread) for suite in found.suites.values() for ratio in suite.ratios.values())
