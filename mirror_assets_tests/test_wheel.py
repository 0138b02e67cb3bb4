"""The wheel: what it holds and says of itself, and that a clean install of it mirrors the README's first table.

It needs the package index that pip is set up with, and takes minutes: all of it runs in `make soak`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from mirror_assets_tests.pages import README, ROOT, blocks

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("wheel")]
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _ended(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder, with nothing of this environment on its path."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(command, cwd=folder, env=variables, check=False, capture_output=True, text=True)


def _run(*command: str | Path, folder: Path) -> str:
    """Run a command that has to succeed; return what it prints."""
    ended = _ended(*command, folder=folder)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


def test_it_holds_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"mirror_assets/py.typed", "mirror_assets/features/demo/mirror.yaml"} <= set(names)
    assert {name.partition("/")[0] for name in names} == {"mirror_assets", "mirror_assets-0.1.0.dist-info"}
    sources = {file.relative_to(ROOT).as_posix() for file in (ROOT / "mirror_assets").rglob("*.py")}
    assert sources == {name for name in names if name.endswith(".py")}


def test_links_of_its_page_are_absolute(wheel: Path) -> None:
    metadata = _metadata(wheel)
    page = str(metadata.get_payload())
    links = _LINK.findall(page)
    assert len(links) == len(_LINK.findall(README.read_text(encoding="utf-8"))) > 30
    assert [link for link in links if not link.startswith("https://")] == []
    repository = dict(str(url).split(", ") for url in metadata.get_all("Project-URL", []))["Repository"]
    own = [link for link in links if "mirror-assets" in link]
    assert all(link.startswith(f"{repository}/blob/main/") for link in own)
    paths = [link.removeprefix(f"{repository}/blob/main/").partition("#")[0] for link in own]
    assert all((ROOT / path).exists() for path in paths)


def _installed(requirement: str, folder: Path) -> Path:
    """Write the README's files, and install the requirement into a new environment; return its `mirror-assets`."""
    for name, language in (("mirror.yaml", "yaml"), ("make_orders.py", "python")):
        (folder / name).write_text(blocks(README, language)[0], encoding="utf-8")
    _run(sys.executable, "-m", "venv", folder / "environment", folder=folder)
    python = folder / "environment/bin/python"
    constraints = ROOT / "constraints.txt"
    _run(python, "-m", "pip", "install", "--quiet", "-c", constraints, requirement, folder=folder)
    _run(python, "make_orders.py", folder=folder)
    return python.with_name("mirror-assets")


def test_a_clean_install_mirrors_the_first_table(wheel: Path, tmp_path: Path) -> None:
    program = _installed(f"{wheel}[spark]", tmp_path)
    assert _run(program, "--version", folder=tmp_path) == f"mirror-assets {_metadata(wheel)['Version']}\n"
    for command in ("plan", "run", "replicate"):
        _run(program, command, folder=tmp_path)
    assert "equal to source" in _run(program, "reconcile", folder=tmp_path)
    _run(program, "check", folder=tmp_path)


def test_without_spark_it_plans_and_names_the_extra(wheel: Path, tmp_path: Path) -> None:
    program = _installed(str(wheel), tmp_path)
    assert "spark" not in _run(program.with_name("python"), "-m", "pip", "list", folder=tmp_path).lower()
    assert "orders" in _run(program, "plan", folder=tmp_path)
    refused = _ended(program, "run", folder=tmp_path)
    assert refused.returncode == 2
    assert "pip install 'mirror-assets[spark]'" in refused.stderr
