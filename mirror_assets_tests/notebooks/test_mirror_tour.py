"""The notebook runs from its first cell to its last, as a reader would run it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from mirror_assets_tests.quick_jvm import ENVIRONMENT

_NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "mirror_tour.ipynb"


@pytest.mark.timeout(600)
@pytest.mark.long(60)
def test_the_tour_runs_and_ends_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(_NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = "\n".join(_texts(notebook))
    assert "again: already covered" in shown
    assert shown.count("equal") == 2
    assert "is missing" in shown
    assert "image/png" in shown


def test_it_is_committed_without_outputs() -> None:
    notebook = nbformat.read(_NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)


def _texts(notebook: nbformat.NotebookNode) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = [output["text"] for output in outputs if output.get("name") == "stdout"]
    shown = [output["data"] for output in outputs if "data" in output]
    return [*printed, *(data.get("text/plain", "") for data in shown), *(kind for data in shown for kind in data)]
