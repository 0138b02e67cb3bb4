"""The notebook on Direct Lake runs from its first cell to its last, as a reader would run it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

_NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "direct_lake.ipynb"
_PICTURES = 6


@pytest.mark.timeout(300)
def test_it_comes_to_pictures_and_a_decision(tmp_path: Path) -> None:
    notebook = nbformat.read(_NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == _PICTURES
    printed = "\n".join(output["text"] for output in outputs if output.get("name") == "stdout")
    assert "days until F2 is full" in printed
    assert "today: safe" in printed
    assert "frame v60 needs month=" in printed
    assert "OPTIMIZE delta.`…/sales`;" in printed
    assert "100% of the rows to load" in printed


def test_it_is_committed_without_outputs() -> None:
    notebook = nbformat.read(_NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
