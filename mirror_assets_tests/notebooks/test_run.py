"""The notebooks run from first to last cell, are committed with their outputs, and show nothing private."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from mypy import api

from mirror_assets_tests.notebooks.run import FOLDER, executed, outputs, private, texts
from mirror_assets_tests.pages import ROOT
from mirror_assets_tests.quick_jvm import ENVIRONMENT

_NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_its_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run once, from top to bottom"
    assert {output.output_type for output in outputs(notebook)} <= {"stream", "execute_result", "display_data"}
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
    assert private(notebook) == []


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_use_what_the_package_has(path: Path, tmp_path: Path) -> None:
    """Types find this in seconds; `make soak` runs the cells."""
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    (tmp_path / "cells.py").write_text("\n".join(cells))
    found, failure, _ = api.run(["--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "cells.py")])
    assert failure == ""
    codes = ("[attr-defined]", "[call-arg]", "[name-defined]", "[import-not-found]")
    assert [line for line in found.splitlines() if line.endswith(codes)] == []


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


@pytest.mark.timeout(300)
def test_the_notebook_on_direct_lake_comes_to_pictures_and_a_decision(tmp_path: Path) -> None:
    notebook = executed("direct_lake.ipynb", tmp_path)
    assert sum("image/png" in output.get("data", {}) for output in outputs(notebook)) == 2
    printed = "\n".join(texts(notebook))
    assert "days until F2 is full" in printed
    assert "today: safe" in printed
    assert "frame v60 needs month=" in printed
    assert "OPTIMIZE delta.`…/sales`;" in printed
    assert "100% of the rows to load" in printed


@pytest.mark.timeout(600)
@pytest.mark.soak
def test_the_tour_runs_and_ends_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    notebook = executed("mirror_tour.ipynb", tmp_path)
    shown = "\n".join(texts(notebook))
    assert "again: already covered" in shown
    assert shown.count("equal") == 2
    assert "is missing" in shown
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
