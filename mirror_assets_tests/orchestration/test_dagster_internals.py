"""Only one module depends on Dagster's internals, so that a new Dagster version is one file to check."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg

from mirror_assets.orchestration import dagster_internals

_PACKAGE = Path(dagster_internals.__file__).parents[1]
_INTERNAL = re.compile(r"^\s*(?:from|import) dagster(?:\.|_\w+\.)_", re.MULTILINE)


def test_no_other_module_imports_internals() -> None:
    users = {file for file in _PACKAGE.rglob("*.py") if _INTERNAL.search(file.read_text())}
    assert users == {Path(dagster_internals.__file__)}


def test_the_module_has_nothing_that_dagster_exports() -> None:
    assert [name for name in dagster_internals.__all__ if hasattr(dg, name)] == []
