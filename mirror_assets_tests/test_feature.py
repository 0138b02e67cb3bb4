"""Each feature has one entry point, and the core runs without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mirror_assets import feature
from mirror_assets.feature import Feature, features
from mirror_assets_tests.pages import ROOT

_FOLDERS = sorted(file.parent.name for file in (ROOT / "mirror_assets/features").glob("*/__init__.py"))
# Enough of the core to plan, stage, check and publish, and to load the definitions and the command line.
_CORE = (
    "config",
    "cli/test_help.py",
    "pipeline/test_run.py",
    "orchestration/test_table_events.py",
    "test_definitions.py",
)


def test_the_list_has_every_folder() -> None:
    assert sorted(feature._NAMES) == _FOLDERS
    assert all(isinstance(one, Feature) for one in features())
    assert {one.name for one in (ROOT / "mirror_assets_tests/features").iterdir() if one.is_dir()} >= set(_FOLDERS)


def test_the_tests_of_the_core_exist() -> None:
    assert [place for place in _CORE if not (ROOT / "mirror_assets_tests" / place).exists()] == []


def test_the_core_names_no_feature() -> None:
    core = [file for file in (ROOT / "mirror_assets").rglob("*.py") if "features" not in file.relative_to(ROOT).parts]
    named = re.compile(r"mirror_assets\.features\.\w+")
    assert [file for file in core if named.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "file", sorted((ROOT / "mirror_assets/features").rglob("*_check*.py")), ids=lambda file: file.stem
)
def test_its_checks_can_be_imported_first(file: Path) -> None:
    """The list of all checks imports them, so they can't import it."""
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


@pytest.mark.soak
@pytest.mark.parametrize("name", _FOLDERS)
def test_the_core_runs_without_the_feature(tmp_path: Path, name: str) -> None:
    """Delete the feature's folder, its tests and its line; check the project and run tests of the core."""
    project = tmp_path / "project"
    shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(".*", "__pycache__", "site"))
    for package in ("mirror_assets", "mirror_assets_tests"):
        shutil.rmtree(project / package / "features" / name)
    listing = project / "mirror_assets/feature.py"
    listing.write_text(re.sub(rf'"{name}",? ?', "", listing.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    programs = Path(sys.executable).parent
    for command in (
        (programs / "ruff", "check", "--select", "E,F", "."),
        (programs / "mypy", "mirror_assets"),
        (programs / "lint-imports", "--no-cache"),
        (sys.executable, "-m", "pytest", "-q", "-n0", *(f"mirror_assets_tests/{one}" for one in _CORE)),
    ):
        done = subprocess.run(
            command,
            cwd=project,
            env=os.environ | {"PYTHONPATH": str(project)},
            capture_output=True,
            text=True,
            check=False,
        )
        wrong = [
            line for line in done.stdout.splitlines() if line.startswith(("E  ", "FAILED", "ERROR", "mirror_assets"))
        ]
        assert done.returncode == 0, "\n".join([str(command), *wrong, done.stderr[-1000:]])
