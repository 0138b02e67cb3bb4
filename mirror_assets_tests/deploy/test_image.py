"""The commands of the Dockerfile that need no Docker, run in a folder: what they build mirrors a table offline."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets_tests.deploy.services import DEPLOY, filled
from mirror_assets_tests.pages import ROOT

_CONFIG = """landing_zone: {{path: ./landing}}
spark: {{jars_folder: {jars}}}
tables: {{shop.orders: {{source: ./lake/orders, keys: [id]}}}}
"""
# No program listens there: each download fails.
_OFFLINE = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}


@pytest.mark.soak
def test_the_build_makes_an_environment_that_mirrors_offline(tmp_path: Path) -> None:
    _build(tmp_path)
    jars, work = tmp_path / "opt" / "jars", tmp_path / "work"
    assert any(jars.glob("*hadoop-azure-*.jar"))
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(work / "lake" / "orders"), pa.table({"id": [1, 2]}), configuration=feed)
    (work / "mirror.yaml").write_text(_CONFIG.format(jars=jars), encoding="utf-8")
    # A user without any cached file.
    environment = {**os.environ, **_OFFLINE, "HOME": str(work / "home"), "PYTHONPATH": ""}
    for command in ("run", "replicate", "reconcile"):
        program = str(tmp_path / "opt" / "venv" / "bin" / "mirror-assets")
        ended = subprocess.run(
            [program, command], cwd=work, env=environment, capture_output=True, check=False, text=True
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


def _build(root: Path) -> None:
    """Run the stage `build` in a folder that stands for `/`; the context is what .dockerignore lets through."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    stage = text.partition("AS build\n")[2].partition("\nFROM ")[0]
    variables = {name: value.strip('"') for name, value in re.findall(r"^ARG (\w+)=(.*)$", stage, re.MULTILINE)}
    source = root / "src"
    for line in re.findall(r"^COPY (.*)$", stage, re.MULTILINE):
        *paths, _ = line.split()
        for path in paths:
            target = source / Path(path).name
            if (ROOT / path).is_dir():
                shutil.copytree(ROOT / path, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                source.mkdir(exist_ok=True)
                shutil.copy(ROOT / path, target)
    # `python` is that of the base image.
    programs = os.pathsep.join([f"{root}/opt/venv/bin", str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **variables, "PATH": programs, "HOME": str(root / "home"), "PYTHONPATH": ""}
    for command in re.findall(r"^RUN (.*)$", stage, re.MULTILINE):
        here = filled(command, variables).replace("/opt/", f"{root}/opt/")
        subprocess.run(["/bin/sh", "-e", "-c", here], cwd=source, env=environment, check=True)
