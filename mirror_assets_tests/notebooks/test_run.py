"""The notebooks are committed with what they show, and show nothing private."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from mirror_assets_tests.notebooks.run import FOLDER, outputs, private

_NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_its_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run once, from top to bottom"
    assert {output.output_type for output in outputs(notebook)} <= {"stream", "execute_result", "display_data"}
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
    assert private(notebook) == []


@pytest.mark.parametrize(
    "text",
    [
        "/scratch/mirror-tour-x/lake",
        "file:/home/me/lake",
        "'/data/lake'",
        "http://10.0.0.7:4040",
        "AccountKey; sig=abc",
        "the client secret is x",
    ],
)
def test_a_private_output_is_found(text: str) -> None:
    shown = nbformat.v4.new_output("stream", name="stdout", text=f"fine\n{text}\n")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[shown])])
    assert private(notebook) == [text]
