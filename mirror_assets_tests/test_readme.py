"""README.md and docs/ say what is so: what they tell to run is run, what they name exists, and nothing is left out."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import shlex
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType, UnionType
from typing import TypeGuard, Union, get_args, get_origin

import dagster as dg
import pytest
import yaml
from dagster_dg_cli.cli.launch import launch_command
from pydantic import BaseModel
from pyspark.sql import SparkSession

import mirror_assets
from mirror_assets.cli import main
from mirror_assets.config import CONFIG_VARIABLE, Config, ConfigInvalid, TableConfig, load_config
from mirror_assets.config.load import parse_config
from mirror_assets.config.setting_values import parse_size
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode, MirrorError
from mirror_assets.landing.format import Manifest, Receipt
from mirror_assets.orchestration.schedules import SENSORS_VARIABLE
from mirror_assets.source.breaks import BreakKind
from mirror_assets.source.errors import ColumnUnfit
from mirror_assets.source.schema import Field, landing_type

_ROOT = Path(__file__).parents[1]
_README, _DOCS = _ROOT / "README.md", _ROOT / "docs"
_PAGES = (_README, _ROOT / "CHANGELOG.md", *sorted(_DOCS.rglob("*.md")))
_TEXT = _README.read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SCRIPT = re.compile(r"`(\w+\.py)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT_CODE, _QUOTED = re.compile(r"exit code (\d)"), re.compile(r'"([^"]+)"')
_CODE, _LINK = re.compile(r"`([^`]+)`"), re.compile(r"\]\(([^)\s]+)\)")
# Not run here: targets of make and arguments of dg are looked up in what both read.
_NOT_RUN = ("make", "dg", "export")

_Settings = dict[str, object]


def _blocks(language: str) -> list[str]:
    return [text for found, text in _BLOCK.findall(_TEXT) if found == language]


def _commands() -> Iterator[tuple[list[str], str]]:
    """Every command line of the README as words, and the comment behind it."""
    for block in [*_blocks("bash"), *_blocks("console")]:
        for line in block.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                yield words, line.partition("#")[2]


def _arguments(program: str) -> list[list[str]]:
    found = [words[1:] for words, _ in _commands() if words[0] == program]
    assert found, f"README.md runs no {program}"
    return found


def _table(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    below = page.read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    section = re.split(r"^#+ ", below, maxsplit=1, flags=re.MULTILINE)[0]
    first = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert first, f"{page.name} has no table below {heading!r}"
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in first[0].splitlines()[2:]]


def _codes(cell: str) -> list[str]:
    return [str(code) for code in _CODE.findall(cell)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the README's mirror.yaml."""
    monkeypatch.chdir(tmp_path)
    for variable in (CONFIG_VARIABLE, "DAGSTER_HOME"):
        monkeypatch.delenv(variable, raising=False)
    (text,) = _blocks("yaml")
    (tmp_path / "mirror.yaml").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def definitions(folder: Path) -> dg.Definitions:
    """What Dagster gets for the README's mirror.yaml."""
    return build_definitions(load_config(folder / "mirror.yaml"))


@pytest.mark.usefixtures("spark")
def test_the_commands_do_what_they_say(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scripts = dict(_SCRIPT.findall(_TEXT))
    done = []
    for (program, *arguments), comment in _commands():
        if program == "python":
            exec(compile(scripts.pop(arguments[0]), arguments[0], "exec"), {})  # noqa: S102 the README's own
        elif program == "mirror-assets":
            told, quoted = _EXIT_CODE.search(comment), _QUOTED.search(comment)
            assert main(arguments) == int(told[1] if told else 0), shlex.join(arguments)
            assert (quoted[1] if quoted else "") in capsys.readouterr().out, shlex.join(arguments)
            done.append(arguments[0])
        else:
            assert program in _NOT_RUN, program
    assert not scripts, "scripts that no command runs"
    assert set(done) == {"plan", "run", "replicate", "reconcile", "check", "status"}
    history = sorted((folder / "landing/sales.schema/orders/_mirror").glob("0001-*.json"))
    landed = [Manifest.model_validate_json(path.read_bytes()).slice for path in history]
    assert _partition_range() == [landed[0], landed[-1]]
    assert len(landed) == 2
    # The one command that the README only names; it would begin a second epoch before the slices of the first are shown.
    assert main(["rebuild", "sales.orders"]) == 0


def test_the_statement_for_a_table_that_is_there_switches_its_feed_on(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/customers` (id INT) USING delta")
    (statement,) = _blocks("sql")
    spark.sql(statement.replace("/lake/customers", f"{tmp_path}/customers"))
    properties = spark.sql(f"SHOW TBLPROPERTIES delta.`{tmp_path}/customers`").collect()
    assert ("delta.enableChangeDataFeed", "true") in [tuple(row) for row in properties]


def test_every_make_target_exists_and_is_told() -> None:
    makefile = (_ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert {arguments[0] for arguments in _arguments("make")} <= targets
    named = {target for page in _PAGES for target in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))}
    assert named <= targets
    assert {_codes(target)[0] for target, _ in _table(_README, "Development")} == {f"make {name}" for name in targets}


def test_dg_is_told_what_it_takes(definitions: dg.Definitions) -> None:
    assets: set[dg.AssetKey] = set()
    for command, *arguments in _arguments("dg"):
        assert command == "launch"
        options = launch_command.make_context("launch", list(arguments)).params
        if options["job"]:
            assert definitions.resolve_job_def(options["job"])
        else:
            selection = dg.AssetSelection.from_coercible(options["assets"].split(","))
            assets |= selection.resolve(definitions.resolve_asset_graph())
    assert {key.to_user_string() for key in assets} == {"change_feed/sales/orders", "landing_zone/sales/orders"}


def _partition_range() -> list[str]:
    contexts = [launch_command.make_context("launch", list(arguments[1:])) for arguments in _arguments("dg")]
    (found,) = [context.params["partition_range"] for context in contexts if context.params["partition_range"]]
    return [str(key) for key in found.split("...")]


def test_assets_sensors_jobs_and_variables_are_those_that_exist(definitions: dg.Definitions) -> None:
    section = _TEXT.partition("## Use from Dagster\n")[2].partition("\n## ")[0]
    told = set(_codes(re.sub(_BLOCK, "", section)))
    graph = definitions.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} <= told
    jobs = {job.name for job in definitions.resolve_all_job_defs() if not job.name.startswith("__")}
    sensors = {sensor.name for sensor in definitions.sensors or []}
    assert jobs | sensors <= told
    assert {name for name in told if name.startswith(("slices_", "mirror_"))} <= jobs | sensors
    exported = {word.partition("=")[0] for words in _arguments("export") for word in words}
    assert exported == {"DAGSTER_HOME", CONFIG_VARIABLE}
    assert f"{SENSORS_VARIABLE}=on" in told


def test_every_check_is_in_the_table_with_its_asset_and_whether_it_blocks(definitions: dg.Definitions) -> None:
    specs = [spec for checks in definitions.asset_checks or [] for spec in checks.check_specs]
    told = [
        (_codes(name)[0], _codes(asset)[0], blocks) for name, asset, blocks, _ in _table(_README, "Use from Dagster")
    ]
    assert sorted(told) == sorted((s.name, s.asset_key.path[0], "yes" if s.blocking else "no") for s in specs)


def test_every_command_is_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = set(re.findall(r"^  ([a-z][a-z-]*) ", capsys.readouterr().out, re.MULTILINE))
    assert {_codes(command)[0] for command, _, _ in _table(_README, "Commands")} == listed


def test_every_error_code_stands_in_the_row_of_its_family() -> None:
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(mirror_assets.__path__, "mirror_assets.")
    ]
    rows = _table(_README, "What stops a mirror, and what to do")
    told = {(_codes(family)[0], code) for family, codes, _ in rows for code in _codes(codes)}
    families = MirrorError.__subclasses__()
    classes = {(family.__name__, error.code.value) for family in families for error in _below(family)}
    assert told == classes | {found for module in modules for found in _made_by_functions(module)}


def _made_by_functions(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Family and code of the errors that the module's functions make: each names its code once."""
    families = {family.__name__ for family in MirrorError.__subclasses__()}
    for name, function in inspect.getmembers(module, inspect.isfunction):
        family = function.__annotations__.get("return")
        if function.__module__ == module.__name__ and family in families:
            codes = [code for code in function.__code__.co_names if code in ErrorCode.__members__]
            assert len(codes) <= 1, name
            yield from ((str(family), ErrorCode[code].value) for code in codes)


def _below(error: type[MirrorError]) -> Iterator[type[MirrorError]]:
    for child in error.__subclasses__():
        yield child
        yield from _below(child)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.is_file(), link
        assert not anchor or anchor in _anchors(target), link


def _anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _defaults(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every setting of the model by its dotted path, with its default."""
    for name, field in model.model_fields.items():
        kind: object = field.annotation
        if get_origin(kind) in (UnionType, Union):
            kind = next(filter(_is_model, get_args(kind)), kind)
        if name == "defaults":
            yield name, None if field.is_required() else ()
        elif _is_model(kind):
            yield from _defaults(kind, f"{prefix}{name}.")
        else:
            yield prefix + name, ... if field.is_required() else field.get_default(call_default_factory=True)


def _shown(default: object) -> str:
    """A default as the page writes it."""
    if default is ...:
        return "needed"
    if default is None:
        return "`null`"
    if default == "":
        return "empty"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, Path):
        return f"`./{default}`"
    return f"`{default.value if isinstance(default, Enum) else default}`" if default else "none"


@pytest.mark.parametrize(("heading", "model"), [("The whole file", Config), ("A table", TableConfig)])
def test_every_setting_is_told_with_its_default(heading: str, model: type[BaseModel]) -> None:
    known = dict(_defaults(model))
    told = {_codes(name)[0]: default for name, default, _ in _table(_DOCS / "configuration.md", heading)}
    assert set(told) == set(known)
    for name, default in known.items():
        if isinstance(default, int | float) and not isinstance(default, bool):
            assert parse_size(_codes(told[name])[0]) == default, name
        else:
            # The model lets keys be left out: that `changes: feed` needs them is a rule over two settings.
            assert told[name] == ("needed" if name == "keys" else _shown(default)), name


_MINIMAL = "landing_zone: {path: ./landing}\ntables: {orders: {source: ./orders, keys: [order_id]}}"


def _over(below: _Settings, above: _Settings) -> _Settings:
    merged = below | above
    for name, value in above.items():
        known = below.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[name] = _over(known, value)
    return merged


@pytest.mark.parametrize(
    "written", [_codes(row[0])[0] for row in _table(_DOCS / "configuration.md", "Refused in this version")]
)
def test_what_is_said_to_be_refused_is_refused(written: str) -> None:
    assert parse_config(_MINIMAL.encode(), Path("mirror.yaml"), {}).names
    settings = _over(yaml.safe_load(_MINIMAL), yaml.safe_load(written))
    with pytest.raises(ConfigInvalid) as caught:
        parse_config(yaml.safe_dump(settings).encode(), Path("mirror.yaml"), {})
    top, second = next((top, next(iter(below))) for top, below in yaml.safe_load(written).items())
    assert [problem.path.startswith(f"{top}.{second}") for problem in caught.value.problems] == [True]


def test_the_manifest_and_the_receipt_are_told_field_by_field() -> None:
    page = _DOCS / "landing-folder.md"
    rows = _table(page, "Manifest: `_mirror.json`")
    assert {name for names, _ in rows for name in _codes(names)} == set(Manifest.model_fields)
    receipt = page.read_text(encoding="utf-8").partition("**receipt**")[2].partition(". It is JSON")[0]
    assert set(_codes(receipt)) == set(Receipt.model_fields)


def test_every_type_lands_as_the_table_says() -> None:
    samples = {"char(n)": "char(3)", "varchar(n)": "varchar(3)", "decimal(p,s)": "decimal(9,2)"}
    nested = {"struct": "struct<a:int>", "array": "array<int>", "map": "map<string,int>"}
    for sources, landed, *_ in _table(_DOCS / "encoding.md", "Types"):
        for source in _codes(sources):
            field = Field("c", samples.get(source, nested.get(source, source)))
            if landed == "refused":
                with pytest.raises(ColumnUnfit):
                    landing_type(field)
            else:
                assert landing_type(field) == samples.get(_codes(landed)[0], _codes(landed)[0])


def test_every_failure_point_is_told_and_names_tests_that_exist() -> None:
    rows = _table(_DOCS / "exactly-once.md", "What fails, and what happens")
    assert [number for number, *_ in rows] == [str(number) for number in range(1, 42)]
    for number, _, _, shown_by in rows:
        named = _codes(shown_by)
        assert any("::" in name for name in named), number
        for path, _, test in (name.partition("::") for name in named if "/" in name):
            text = (_ROOT / "mirror_assets_tests" / path).read_text(encoding="utf-8")
            assert f"def {test}(" in text, f"{number}: {path} has no {test}"


@pytest.mark.parametrize("heading", ["What lands", "What can't be followed", "What is refused"])
def test_every_operation_names_tests_that_exist(heading: str) -> None:
    for told, *_, shown_by in _table(_DOCS / "operations.md", heading):
        named = _codes(shown_by)
        assert named, told
        for path, _, test in (name.partition("::") for name in named):
            text = (_ROOT / "mirror_assets_tests" / path).read_text(encoding="utf-8")
            assert f"def {test}(" in text, f"{told}: {path} has no {test}"


def test_every_break_is_told() -> None:
    kinds = {code for _, kind, _ in _table(_DOCS / "operations.md", "What can't be followed") for code in _codes(kind)}
    assert {kind.value for kind in BreakKind} - kinds == set()


def test_the_proofs_name_files_that_exist() -> None:
    section = (_DOCS / "exactly-once.md").read_text(encoding="utf-8").partition("## The proofs\n")[2]
    paths = [code for code in _codes(section.partition("\n## ")[0]) if code.endswith(".py")]
    assert paths
    assert [path for path in paths if not (_ROOT / "mirror_assets_tests" / path).is_file()] == []
