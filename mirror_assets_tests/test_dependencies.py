"""What the package imports is declared: a clean install has all that its commands need."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement

_PROJECT = Path(__file__).parents[1]
# Imported only where the extra that brings it is wanted.
_EXTRAS = ("demo", "fabric", "io", "metrics", "s3", "spark")


def _imported() -> Iterator[str]:
    """Yield the top-level module of each import in the package."""
    for file in (_PROJECT / "mirror_assets").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (name.name.partition(".")[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield (node.module or "").partition(".")[0]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_each_imported_package_is_declared() -> None:
    declared = {
        _normal(one.name)
        for one in map(Requirement, requires("mirror-assets") or ())
        if not one.marker or any(one.marker.evaluate({"extra": extra}) for extra in ("", *_EXTRAS))
    }
    others = set(_imported()) - sys.stdlib_module_names - {"mirror_assets", "_typeshed"}
    owners = packages_distributions()
    missing = {name for name in others if not declared & {_normal(owner) for owner in owners.get(name, ())}}
    assert not missing
