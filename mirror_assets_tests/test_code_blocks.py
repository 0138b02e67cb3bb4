"""Every code block of README and docs runs, or its program is listed here with the reason why it doesn't.

Scripts run in the order of a page, settings are read, and definitions load. Commands run once each on the README's
table, with one Spark for all. A new page needs no line here.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import dagster as dg
import pytest
import sqlglot
import yaml
from dagster.components.testing import create_defs_folder_sandbox
from packaging.requirements import Requirement

from mirror_assets import MirrorComponent
from mirror_assets.cli import main
from mirror_assets.config.load import parse_config
from mirror_assets.config.table_settings import TableConfig
from mirror_assets_tests.pages import PAGES, README, ROOT, blocks

# Why a block, or a line of one, does not run: by its language, its program, or its command.
NOT_RUN = {
    "text": "a diagram, or what a command prints",
    "dax": "needs Power BI",
    "promtool": "needs Prometheus",
    "tar": "test_restore.py runs it",
    "make": "test_readme.py compares its targets with the Makefile",
    "pip": "test_wheel.py runs it",
    "dg": "test_wheel.py and test_project.py run it, and test_readme.py parses its options",
    "export": "sets a variable of the shell",
    "unset": "removes a variable of the shell",
    "df": "shows the disks of a machine",
    "stat": "shows the disks of a machine",
    "python -m benchmarks": "takes minutes",
    "mirror-assets fabric": "needs Fabric; the tests of the feature run it on a local one",
    "mirror-assets init s3:": "needs AWS; the tests of the feature run it on a local store",
    "mirror-assets init abfss:": "needs OneLake; the tests of the feature run it on a local one",
    "mirror-assets init https:": "needs Unity Catalog; the tests of the feature run it on a local one",
    "mirror-assets init spark": "needs a Hive metastore; the tests of the feature run it on a local one",
    "mirror-assets direct-lake report abfss:": "needs OneLake",
    "mirror-assets alerts test": "needs receivers; the tests of the feature run it on local ones",
    "mirror-assets history": "needs a history; the tests of the feature run it on one",
}
# Exit codes of commands that end otherwise than well on the README's table.
_EXIT_CODES = {
    "init ./lake": 2,  # the folder has a mirror.yaml
    "discover": 2,  # mirror.yaml has no rule
    "plan --config path/to/mirror.yaml": 2,
    "validate --config path/to/mirror.yaml": 2,
    "drop sales.orders": 2,  # it asks, and nobody answers
    "rebuild sales.orders": 2,
    "run --table sales.order": 2,
    "direct-lake vacuum-plan sales.orders --frame 117 --frame '2026-01-31 18:30:00'": 2,  # no such version
}
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GUID = "00000000-0000-4000-8000-000000000000"
_ENVIRONMENT = {
    "LANDING_ZONE_URL": f"https://onelake.dfs.fabric.microsoft.com/{_GUID}/{_GUID}/Files/LandingZone",
    "SALT": "a secret salt",
    "SPARK_TOKEN": "a secret token",
}
_REST = yaml.safe_load(blocks(README, "yaml")[0])


class Block(NamedTuple):
    """A code block of a page; `number` counts the page's blocks from 1."""

    page: Path
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.number}"

    @property
    def lines(self) -> list[list[str]]:
        """The commands of a block for a shell, as words."""
        joined = self.text.replace("\\\n", " ").splitlines()
        return [words for line in joined if (words := shlex.split(line, comments=True))]


def _blocks(*languages: str) -> list[Block]:
    """Return the blocks of these languages; every language without one."""
    found = [
        Block(page, number, match[1], match[2])
        for page in PAGES
        for number, match in enumerate(_BLOCK.finditer(page.read_text(encoding="utf-8")), 1)
    ]
    return [block for block in found if not languages or block.language in languages]


def _program(words: list[str]) -> str:
    return " ".join((Path(words[0]).name, *words[1:])) + " "


def reason(words: list[str]) -> str | None:
    """Return why a command is not run, or None."""
    return next((why for program, why in NOT_RUN.items() if _program(words).startswith(program)), None)


def _commands() -> list[str]:
    """Return each distinct command of the package that runs, with the README's table in the place of any other."""
    found = dict[str, None]()
    for block in _blocks("bash"):
        for words in block.lines:
            if words[0] == "mirror-assets" and reason(words) is None:
                named = [
                    "sales.orders" if word in ("TABLE", "shop.orders", "hr.people") else word for word in words[1:]
                ]
                found[shlex.join(named)] = None
    return sorted(found, key=lambda command: command != "run")  # the others show what it has landed


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the README's mirror.yaml and its table."""
    folder = tmp_path_factory.mktemp("blocks")
    with pytest.MonkeyPatch.context() as place:
        place.chdir(folder)
        Path("mirror.yaml").write_text(blocks(README, "yaml")[0], encoding="utf-8")
        exec(blocks(README, "python")[0], {})  # noqa: S102 the page's own code
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_the_scripts_of_a_page_run_in_its_order(
    page: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(table, tmp_path / "own")
    shutil.copytree(table / "lake/orders", tmp_path / "own/mirror/sales/orders")  # as the stand-in writes it
    monkeypatch.chdir(tmp_path / "own")
    if any("write_deltalake(" in block for block in blocks(page, "python")):
        shutil.rmtree("lake")  # the page creates it
    names: dict[str, object] = {"__name__": "page"}
    monkeypatch.setitem(sys.modules, "page", ModuleType("page"))
    for block in _blocks("python"):
        if block.page == page:
            exec(compile(block.text, str(block), "exec"), names)  # noqa: S102 the page's own code


@pytest.mark.parametrize("block", _blocks("yaml"), ids=str)
def test_settings_are_read(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    written = yaml.safe_load(textwrap.dedent(block.text))
    for name in written.get("features", ()):  # of the page's own scripts
        module = ModuleType(name.partition(":")[0])
        monkeypatch.setitem(sys.modules, module.__name__.partition(".")[0], ModuleType("package"))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        for code in blocks(block.page, "python"):
            exec(code, module.__dict__)  # noqa: S102 the page's own code
    if {"type", "attributes"} & written.keys():
        _load_component(written)
        return
    if written.keys() <= TableConfig.model_fields.keys():  # settings of one table
        ((name, settings),) = _REST["tables"].items()
        written = {"tables": {name: {**settings, **written}}}
    parse_config(yaml.safe_dump({**_REST, **written}).encode(), Path("mirror.yaml"), _ENVIRONMENT)


def _load_component(written: Mapping[str, object]) -> None:
    """Load a defs.yaml, or its attributes, beside the README's mirror.yaml."""
    contents = {"type": "mirror_assets.MirrorComponent", **written}
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(MirrorComponent, defs_yaml_contents=contents)
        (path / "mirror.yaml").write_text(yaml.safe_dump(_REST), encoding="utf-8")
        with sandbox.load_component_and_build_defs(path) as (_, defs):
            own = dg.Definitions(resources={"pyspark": None})
            assert dg.Definitions.merge(defs, own).get_repository_def().get_all_jobs()


@pytest.mark.parametrize("block", _blocks("sql"), ids=str)
def test_statements_are_those_of_spark(block: Block) -> None:
    statements = (text for text in re.split(r";|\n\n", block.text) if re.sub(r"--.*", "", text).strip())
    parsed = [sqlglot.parse_one(statement, dialect="spark") for statement in statements]
    assert parsed
    assert not any(isinstance(one, sqlglot.exp.Command) for one in parsed)


@pytest.mark.parametrize("block", _blocks("json"), ids=str)
def test_json_is_read(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.xdist_group("code blocks")
@pytest.mark.long(60)
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("command", _commands())
def test_commands_run(command: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table)
    assert main(shlex.split(command)) == _EXIT_CODES.get(command, 0)


def test_every_line_for_a_shell_runs_or_is_listed() -> None:
    wrong = [
        (str(block), words)
        for block in _blocks("bash")
        for words in block.lines
        if reason(words) is None and words[0] not in ("mirror-assets", "python")
    ]
    assert wrong == []


def test_every_language_runs_or_is_listed() -> None:
    assert {block.language for block in _blocks()} <= {"python", "yaml", "sql", "json", "bash"} | NOT_RUN.keys()


def test_no_reason_is_left_over() -> None:
    used = {block.language for block in _blocks()} | {
        reason(words) for block in _blocks("bash") for words in block.lines
    }
    assert {name for name, why in NOT_RUN.items() if not {name, why} & used} == set()


def test_extras_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for block in _blocks("bash"):
        for program, *arguments in block.lines:
            if program == "pip":
                (required,) = [Requirement(word) for word in arguments if word.startswith("mirror-assets")]
                assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in required.extras)


def counted() -> Iterator[str]:
    """Yield how many blocks run, and how many don't for which reason."""
    runs, listed = Counter[str](), Counter[str]()
    for block in _blocks():
        reasons = (
            {reason(words) for words in block.lines} if block.language == "bash" else {NOT_RUN.get(block.language)}
        )
        (runs if None in reasons else listed)[block.language if None in reasons else str(min(map(str, reasons)))] += 1
    yield f"{runs.total()} blocks run: {', '.join(f'{number} {name}' for name, number in runs.most_common())}"
    yield f"{listed.total()} don't:"
    yield from (f"{number:4} {why}" for why, number in listed.most_common())


if __name__ == "__main__":
    print("\n".join(counted()))  # noqa: T201 asked for
