"""The wheel: what it holds and says of itself, and that a clean install of it mirrors the README's first table.

So does one in a new Dagster project of the newest `create-dagster`, with and without Dagster's own integrations.

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

from mirror_assets_tests.pages import DOCS, README, ROOT, blocks

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("wheel")]
YOUR_PROJECT = DOCS / "your-project.md"
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


_REPORT = """import dagster as dg
import pyarrow as pa


@dg.asset(ins={"orders": dg.AssetIn(["sales", "orders_source"])})
def report(orders: pa.Table) -> None:
    print(f"{len(orders)} orders")
"""


class FreshProject:
    """A project that `create-dagster` makes, in an environment of its own, with the README's table in it."""

    def __init__(self, folder: Path, *beside: str) -> None:
        """Make it with the newest version that pip installs beside these packages."""
        self._folder, self.root, self.python = folder, folder / "shop", folder / "environment/bin/python"
        _run(sys.executable, "-m", "venv", folder / "environment", folder=folder)
        self.pip("create-dagster", *beside)
        _run(self.python.with_name("create-dagster"), "project", self.root, "--no-uv-sync", folder=folder)

    def pip(self, *requirements: str | Path) -> None:
        """Install packages, as pip resolves them."""
        _run(self.python, "-m", "pip", "install", "--quiet", *requirements, folder=self._folder)

    def packages(self) -> dict[str, str]:
        """Return the installed packages with their versions."""
        listed = _run(self.python, "-m", "pip", "list", "--format", "freeze", folder=self._folder)
        return dict(line.split("==") for line in listed.splitlines() if "==" in line)

    def add_mirror(self) -> None:
        """Create the table, and add the component and an asset that reads the table."""
        (self.root / "make_orders.py").write_text(blocks(README, "python")[0], encoding="utf-8")
        _run(self.python, "make_orders.py", folder=self.root)
        place = self.root / "src/shop/defs/fabric"
        place.mkdir()
        (place / "defs.yaml").write_text(blocks(YOUR_PROJECT, "yaml")[0], encoding="utf-8")
        config = blocks(README, "yaml")[0].replace("./", "../../../../")
        (place / "mirror.yaml").write_text(config, encoding="utf-8")
        (place.parent / "report.py").write_text(_REPORT, encoding="utf-8")

    def ended(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in the project."""
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        variables = f"DAGSTER_HOME={home}"
        return _ended("env", variables, self.python.with_name(program), *arguments, folder=self.root)

    def succeeds(self, program: str, *arguments: str) -> None:
        """Run a program that has to succeed."""
        ended = self.ended(program, *arguments)
        assert ended.returncode == 0, f"{arguments}\n{ended.stdout}\n{ended.stderr}"

    @property
    def landed(self) -> list[str]:
        """The landing files of the table."""
        return sorted(path.name for path in (self.root / "landing/sales.schema/orders").glob("*.parquet"))


def test_a_project_of_the_newest_dagster_mirrors_a_table(wheel: Path, tmp_path: Path) -> None:
    project = FreshProject(tmp_path)
    project.pip("-e", project.root, f"{wheel}[spark]")
    packages = project.packages()
    assert packages["dagster"] == packages["create-dagster"]  # the newest, which the project requires exactly
    assert not {"dagster-pyspark", "dagster-deltalake"} & packages.keys()
    project.add_mirror()
    module = ("-m", "shop.definitions")
    project.succeeds("dagster", "definitions", "validate", *module)
    project.succeeds("dagster", "job", "execute", *module, "-j", "fabric_all")
    assert project.landed == ["00000000000000000001.parquet"]
    selected = ("--select", "key:sales/orders_changes or key:sales/orders_landing", "--partition", "1.0-0")
    project.succeeds("dagster", "asset", "materialize", *module, *selected)
    refused = project.ended("dagster", "asset", "materialize", *module, "--select", "report")
    assert refused.returncode == 1
    assert "pip install 'mirror-assets[io]'" in refused.stderr


def test_a_project_with_the_integrations_of_dagster_mirrors_a_table(wheel: Path, tmp_path: Path) -> None:
    project = FreshProject(tmp_path, f"{wheel}[spark,io]", "dagster-dg-cli", "dagster-webserver")
    project.pip("-e", project.root)
    packages = project.packages()
    assert packages["dagster"] == packages["create-dagster"] == packages["dagster-dg-cli"]
    assert packages["dagster-pyspark"] == packages["dagster-deltalake"]
    project.add_mirror()
    project.succeeds("dg", "check", "defs")
    project.succeeds("dg", "launch", "--job", "fabric_all")
    assert project.landed == ["00000000000000000001.parquet"]
    project.succeeds("dg", "launch", "--assets", "report")
