"""The notebook runs from its first cell to its last, as a reader would run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets_tests.notebooks.run import executed, outputs, texts
from mirror_assets_tests.quick_jvm import ENVIRONMENT


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
