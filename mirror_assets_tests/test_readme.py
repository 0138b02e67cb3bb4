"""The commands of README.md and the tutorial run, and the names on the first pages exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster_dg_cli.cli.launch import launch_command
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets.config.load import CONFIG_VARIABLE, load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.docs_links import DOCS_VARIABLE
from mirror_assets.landing.format import Manifest
from mirror_assets.orchestration.schedules import SENSORS_VARIABLE
from mirror_assets_tests.pages import DOCS, PAGES, README, ROOT, blocks, codes, table, without_blocks

_COMMAND_LINE, _DAGSTER, _DEVELOPMENT = DOCS / "command-line.md", DOCS / "dagster.md", DOCS / "development.md"
_TUTORIAL = DOCS / "tutorial.md"
_SCRIPT = re.compile(r"`(\w+\.py)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT_CODE, _QUOTED = re.compile(r"exit code (\d)"), re.compile(r'"([^"]+)"')
# Not run here: targets of make and arguments of dg are compared with the Makefile and the definitions.
_NOT_RUN = ("make", "dg", "export", "pip")


def _commands(*pages: Path) -> Iterator[tuple[list[str], str]]:
    """Yield every command line of the pages as words, and the comment after it."""
    for page in pages:
        for line in "".join(blocks(page, "bash")).splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words, line.partition("#")[2]


def _arguments(program: str) -> list[list[str]]:
    found = [words[1:] for words, _ in _commands(README, _DAGSTER) if words[0] == program]
    assert found, f"no page runs {program}"
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the README's mirror.yaml."""
    monkeypatch.chdir(tmp_path)
    for variable in (CONFIG_VARIABLE, "DAGSTER_HOME"):
        monkeypatch.delenv(variable, raising=False)
    _write_config(README, tmp_path)
    return tmp_path


def _write_config(page: Path, folder: Path) -> None:
    (text,) = blocks(page, "yaml")
    (folder / "mirror.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def definitions(folder: Path) -> dg.Definitions:
    """The definitions for the README's mirror.yaml."""
    return build_definitions(load_config(folder / "mirror.yaml"))


def test_it_is_read_in_one_sitting() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.usefixtures("spark")
def test_the_commands_of_the_readme_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run_commands(README, capsys) == {"plan", "run", "replicate", "reconcile", "check", "status"}
    _change_orders()
    for command in ("run", "replicate", "reconcile", "check", "status"):
        assert main([command]) == 0, command
    history = sorted((folder / "landing/sales.schema/orders/_mirror").glob("0001-*.json"))
    landed = [Manifest.model_validate_json(path.read_bytes()).slice for path in history]
    assert _partition_range() == [str(landed[0]), str(landed[-1])]
    assert len(landed) == 2
    # It would begin a second epoch before the slices of the first are shown.
    assert main(["rebuild", "sales.orders", "--yes"]) == 0


@pytest.mark.usefixtures("spark")
def test_the_commands_of_the_tutorial_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_config(_TUTORIAL, folder)
    assert _run_commands(_TUTORIAL, capsys) == {"doctor", "plan", "run", "replicate", "reconcile", "feed", "status"}


def _run_commands(page: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Run the page's commands in order, compare exit codes and quoted output, and return the commands that ran."""
    scripts = dict(_SCRIPT.findall(page.read_text(encoding="utf-8")))
    done = set()
    for (program, *arguments), comment in _commands(page):
        code, quoted = _EXIT_CODE.search(comment), _QUOTED.search(comment)
        if program == "python":
            exec(compile(scripts.pop(arguments[0]), arguments[0], "exec"), {})  # noqa: S102 the page's own
        elif program == "mirror-assets":
            assert main(arguments) == int(code[1] if code else 0), shlex.join(arguments)
            done.add(arguments[0])
        else:
            assert program in _NOT_RUN, program
        assert (quoted[1] if quoted else "") in capsys.readouterr().out, shlex.join(arguments)
    assert not scripts, "scripts that no command runs"
    return done


def _change_orders() -> None:
    """Change the README's table in two commits, like the tutorial."""
    orders = DeltaTable("lake/orders")
    orders.update(updates={"amount": "25.0"}, predicate="order_id = 2")
    orders.delete("order_id = 3")


def test_the_statement_for_a_table_that_is_there_switches_its_feed_on(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/customers` (id INT) USING delta")
    (statement,) = blocks(README, "sql")
    spark.sql(statement.replace("/lake/customers", f"{tmp_path}/customers"))
    properties = spark.sql(f"SHOW TBLPROPERTIES delta.`{tmp_path}/customers`").collect()
    assert ("delta.enableChangeDataFeed", "true") in [tuple(row) for row in properties]


def test_every_make_target_exists_and_is_documented() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert {arguments[0] for arguments in _arguments("make")} <= targets
    named = {target for page in PAGES for target in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))}
    assert named <= targets
    assert {codes(target)[0] for target, _ in table(_DEVELOPMENT, "Targets")} == {f"make {name}" for name in targets}


def test_dg_accepts_every_command_of_the_pages(definitions: dg.Definitions) -> None:
    assets: set[dg.AssetKey] = set()
    for command, *arguments in _arguments("dg"):
        assert command == "launch"
        options = launch_command.make_context("launch", list(arguments)).params
        if options["job"]:
            assert definitions.resolve_job_def(options["job"])
        else:
            selection = dg.AssetSelection.from_coercible(options["assets"].split(","))
            assets |= selection.resolve(definitions.resolve_asset_graph())
    assert {key.to_user_string() for key in assets} == {"sales/orders_changes", "sales/orders_landing"}


def _partition_range() -> list[str]:
    contexts = [launch_command.make_context("launch", list(arguments[1:])) for arguments in _arguments("dg")]
    (found,) = [context.params["partition_range"] for context in contexts if context.params["partition_range"]]
    return [str(key) for key in found.split("...")]


def test_assets_sensors_jobs_and_variables_are_those_that_exist(definitions: dg.Definitions) -> None:
    told = set(codes(without_blocks(_DAGSTER)))
    graph = definitions.resolve_asset_graph()
    assets = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert assets <= told
    jobs = {job.name for job in definitions.resolve_all_job_defs() if not job.name.startswith("__")}
    sensors = {sensor.name for sensor in definitions.sensors or []}
    assert jobs | sensors <= told
    assert {name for name in told if re.fullmatch(r"(slices|mirror)_\w+", name)} <= jobs | sensors | assets
    exported = {word.partition("=")[0] for words in _arguments("export") for word in words}
    assert exported == {"DAGSTER_HOME", CONFIG_VARIABLE, DOCS_VARIABLE}
    assert f"{SENSORS_VARIABLE}=on" in told


def test_every_command_is_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = set(re.findall(r"^ {2}([a-z][a-z-]*) {2,}", capsys.readouterr().out, re.MULTILINE))
    assert {codes(command)[0] for command, _, _ in table(_COMMAND_LINE, "Command line")} == listed
