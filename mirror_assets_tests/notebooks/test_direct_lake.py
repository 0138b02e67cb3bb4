"""The notebook on Direct Lake runs from its first cell to its last, as a reader would run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets_tests.notebooks.run import executed, outputs, texts

_PICTURES = 2


@pytest.mark.timeout(300)
def test_it_comes_to_pictures_and_a_decision(tmp_path: Path) -> None:
    notebook = executed("direct_lake.ipynb", tmp_path)
    assert sum("image/png" in output.get("data", {}) for output in outputs(notebook)) == _PICTURES
    printed = "\n".join(texts(notebook))
    assert "days until F2 is full" in printed
    assert "today: safe" in printed
    assert "frame v60 needs month=" in printed
    assert "OPTIMIZE delta.`…/sales`;" in printed
    assert "100% of the rows to load" in printed
