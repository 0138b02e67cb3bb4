"""Runs the notebooks; `python -m mirror_assets_tests.notebooks.run` writes their outputs into them, to be committed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
_LONGEST_CELL_SECONDS = 300
# Absolute paths, addresses of machines, and credentials.
_PRIVATE = re.compile(r"(?:^|[\s'\"`=(:])/\w+/|\b\d{1,3}(?:\.\d{1,3}){3}\b|password|secret|token|sig=", re.IGNORECASE)


def executed(name: str, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook after a run in the folder, with what its cells show, without warnings of Spark or Python."""
    notebook = nbformat.read(FOLDER / name, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=_LONGEST_CELL_SECONDS, resources=resources, record_timing=False).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the outputs of all cells."""
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what the cells print and show, as text."""
    found = outputs(notebook)
    printed = [str(output["text"]) for output in found if "text" in output]
    return [*printed, *(str(output["data"].get("text/plain", "")) for output in found if "data" in output)]


def private(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the lines of outputs that name a place on the machine, a host or a credential."""
    shown = [str(output["data"].get("text/html", "")) for output in outputs(notebook) if "data" in output]
    return [line for text in (*texts(notebook), *shown) for line in text.splitlines() if _PRIVATE.search(line)]


def main() -> int:
    """Run all notebooks and write their outputs; refuse private ones."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        with TemporaryDirectory() as folder:
            notebook = executed(path.name, Path(folder))
        found = private(notebook)
        if found:
            sys.stderr.write(f"{path.name}: private outputs: {found}\n")
            return 1
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)
        sys.stdout.write(f"{path.name}: {len(outputs(notebook))} outputs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
