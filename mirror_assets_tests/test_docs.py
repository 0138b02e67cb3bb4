"""The tables in docs/ equal the code, and every link, file and test on a page exists."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from string import Formatter
from types import UnionType
from typing import TypeGuard, Union, get_args, get_origin

import click
import pytest
from pydantic import BaseModel

from mirror_assets.cli.commands import app
from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableConfig, TableDefaults
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorRow, MirrorError
from mirror_assets.features.alerts.alert_settings import ReceiverConfig
from mirror_assets.features.init.discover_rule import DiscoverRule
from mirror_assets.lakes.catalogs import CatalogConfig
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.landing.format import Manifest, Receipt
from mirror_assets.orchestration.checks import CHECK_NAMES
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.settings import parse_size
from mirror_assets.source.breaks import BreakKind
from mirror_assets_tests.asset_kinds import kind_of
from mirror_assets_tests.errors_page import PAGE, error_codes, error_rows, modules, page
from mirror_assets_tests.pages import DOCS, PAGES, ROOT, anchors, blocks, codes, sections, table

_PACKAGE, _TESTS = ROOT / "mirror_assets", ROOT / "mirror_assets_tests"
_MAP = DOCS / "architecture.md"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CLASS = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")
_REFERENCE = re.compile(r"[\w/-]+\.py(?:::\w+)?")

_MINIMAL = "landing_zone: {path: ./landing}\ntables: {orders: {source: ./orders, keys: [order_id]}}"
_GUID = "11111111-2222-4333-8444-555555555555"
_ONELAKE = f"https://onelake.dfs.fabric.microsoft.com/{_GUID}/{_GUID}/Files/LandingZone"


# Checks and errors.


def test_every_check_is_in_the_table_with_its_asset_and_whether_it_blocks() -> None:
    text = _MINIMAL.replace("keys: [order_id]", "keys: [order_id], history: slices, direct_lake: {sku: F64}")
    text = text.replace("path: ./landing", f"onelake: {{url: '{_ONELAKE}'}}")
    checks = build_definitions(parse_config(text.encode(), Path("mirror.yaml"), {})).asset_checks or []
    specs = [spec for definition in checks for spec in definition.check_specs]
    told = [
        (codes(name)[0], codes(asset)[0], is_blocking)
        for name, asset, is_blocking in table(DOCS / "checks.md", "Asset checks")
    ]
    assert sorted(told) == sorted((s.name, kind_of(s.asset_key).value, "yes" if s.blocking else "no") for s in specs)
    assert {name for name, asset, _ in told if asset == "changes"} == set(BLOCKING_CHECKS)


def test_the_page_of_errors_is_written_from_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run `make docs`, which writes it"


def test_every_error_code_has_a_row_and_a_name_of_its_own() -> None:
    found = error_codes()
    assert {row.code for row in error_rows()} == set(found)
    assert len({code.value for code in found}) == len(found)


def test_a_row_has_cause_and_next_step_in_whole_sentences() -> None:
    rows = error_rows()
    assert [row.cause for row in rows if not row.cause.endswith(".")] == []
    assert [row.next_step for row in rows if not row.next_step.endswith((".", "}"))] == []


def _facts(row: ErrorRow[MirrorError]) -> set[str]:
    """Return the names of the facts that the row's texts need."""
    fields = [field for text in (row.message, row.next_step) for _, field, _, _ in Formatter().parse(text)]
    return {field.partition(".")[0] for field in fields if field}


def test_every_error_is_made_with_the_facts_of_its_row() -> None:
    rows = {name: row for module in modules() for name, row in vars(module).items() if isinstance(row, ErrorRow)}
    wrong = list[str]()
    for path in _PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.IfExp):
                made = [rows[name.id] for name in ast.walk(call.func) if isinstance(name, ast.Name) and name.id in rows]
                given = {keyword.arg for keyword in call.keywords}
                wrong += [f"{path}:{call.lineno}" for row in made if _facts(row) - given or call.args]
    assert wrong == []


def test_every_check_has_a_section_with_its_condition_and_what_to_do() -> None:
    found = sections(DOCS / "checks.md")
    assert set(found) == set(CHECK_NAMES)
    told = re.compile(r"\n\*\*Passes when\*\* .+?\.\n\n\*\*If it fails\*\*: .+?\.\n\n```bash\n", re.DOTALL)
    assert [name for name, text in found.items() if not told.match(text)] == []


@pytest.mark.parametrize("page", ["errors.md", "checks.md"])
def test_every_section_has_a_command_that_the_command_line_accepts(page: str) -> None:
    for name, text in sections(DOCS / page).items():
        commands = [shlex.split(line, comments=True) for block in blocks(text, "bash") for line in block.splitlines()]
        statements = blocks(text, "sql")
        assert commands or statements, name
        for program, *arguments in commands:
            if program == "mirror-assets":
                _parse(app, arguments)


_SAID_COMMAND = re.compile(r"`mirror-assets ([^`]+)`")
_SAID_PAGE = re.compile(r"docs/[a-z][\w/-]*\.md")


def _said_strings() -> Iterator[tuple[str, str]]:
    """Yield each string of the package with its file and line; what it fills in is 1."""
    for path in _PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.JoinedStr(values=parts):
                    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in parts)
                case ast.Constant(value=str(text)):
                    text = re.sub(r"\{\w+\}", "1", text)
                case _:
                    continue
            yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def test_every_command_and_page_that_the_code_names_exists() -> None:
    commands, wrong = 0, list[str]()
    for place, text in _said_strings():
        for command in _SAID_COMMAND.findall(" ".join(text.split())):
            commands += 1
            arguments = shlex.split(command.replace("VERSION", "1").replace("COMMAND", "plan"))
            if arguments[0] in app.commands and not arguments[1:]:
                continue  # the sentence names the command, and completes it with other words
            try:
                _parse(app, arguments)
            except (click.ClickException, ValueError) as error:
                wrong.append(f"{place}: {command}: {error}")
        wrong += [f"{place}: {named}" for named in _SAID_PAGE.findall(text) if not (ROOT / named).exists()]
    assert wrong == []
    assert commands > 50


def _parse(command: click.Command, arguments: list[str], parent: click.Context | None = None) -> None:
    """Parse the arguments as the command line does. Raises click.ClickException."""
    context = command.make_context(command.name, list(arguments), parent=parent)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        _, found, arguments = command.resolve_command(context, rest)
        assert found is not None
        _parse(found, arguments, context)


def test_every_family_is_documented() -> None:
    told = {(codes(name)[0], codes(family)[0]) for name, family, *_ in table(DOCS / "errors.md", "Families")}
    assert told == {(family.family, family.__name__) for family in MirrorError.__subclasses__()}


# The questions of the first week.

_TASKS = sorted((DOCS / "tasks").glob("*.md"))
_SCREEN = 50


@pytest.mark.parametrize("page", _TASKS, ids=lambda page: page.stem)
def test_a_page_of_the_first_week_fits_on_a_screen_and_is_linked(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[0].endswith("?")
    assert sum(1 + len(line) // 120 for line in lines) <= _SCREEN
    assert f"- [{lines[0][2:]}](tasks/{page.name})" in (DOCS / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", _TASKS, ids=lambda page: page.stem)
def test_every_command_of_the_first_week_exists(page: Path) -> None:
    text = re.sub(r"^ +", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for language in ("bash", "text") for block in blocks(text, language) for line in block.splitlines()]
    spans = _SAID_COMMAND.findall(" ".join(text.split()))
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("mirror-assets ")]
    for arguments in (*commands, *map(shlex.split, spans)):
        _parse(app, arguments)
    assert commands or spans or page.stem == "upgrade"


# Links and references.


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_class_that_a_page_names_exists(page: Path) -> None:
    named = {code for code in codes(page.read_text(encoding="utf-8")) if _CLASS.fullmatch(code)}
    assert named - _words() == set()


@cache
def _words() -> frozenset[str]:
    """Return all names in the code, and those of classes of others that pages name."""
    texts = (file.read_text(encoding="utf-8") for folder in (_PACKAGE, _TESTS) for file in folder.rglob("*.py"))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text)) | {
        "ReloadCode",
        "SparkOutOfMemoryError",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_test_that_a_page_names_exists(page: Path) -> None:
    named = [code for code in codes(page.read_text(encoding="utf-8")) if _REFERENCE.fullmatch(code)]
    assert [reference for reference in named if not _exists(reference) and not _is_example(reference)] == []


def _exists(reference: str) -> bool:
    """Return whether the file exists and has the function; a path begins at the root, the package or the tests."""
    path, _, function = reference.partition("::")
    folders = (ROOT, _PACKAGE, _TESTS) if "/" in path else ()
    found = [folder / path for folder in folders] or [*_PACKAGE.rglob(path), *_TESTS.rglob(path)]
    return any(
        file.is_file() and (not function or f"def {function}(" in file.read_text(encoding="utf-8")) for file in found
    )


def test_a_reference_to_what_is_not_there_is_noticed() -> None:
    assert _exists("landing/test_publish.py::test_slice_that_is_covered_changes_nothing")
    assert not _exists("landing/test_publish.py::test_slice_that_is_covered")
    assert not _exists("landing/test_nothing.py")
    assert not _exists("test_nothing.py")


def _is_example(reference: str) -> bool:
    """Return whether the page asks its reader to write the file."""
    return reference in ("make_orders.py", "change_orders.py", "query.py")


def test_every_package_is_on_the_map() -> None:
    packages = {codes(package)[0] for package, *_ in table(_MAP, "Packages") if codes(package)}
    core, features = _PACKAGE.glob("*/__init__.py"), _PACKAGE.glob("features/*/__init__.py")
    folders = {init.parent for init in (*core, *features)}
    assert {_PACKAGE / package for package in packages} | {_PACKAGE / "features"} == folders
    files = {file.name for file in _PACKAGE.glob("*.py")} - {"__init__.py"}
    assert set(_layers()) == {package.partition("/")[0] for package in packages} | files


def _layers() -> list[str]:
    """Return packages and single files in the import order of the page; text after two spaces is a remark."""
    block = _MAP.read_text(encoding="utf-8").partition("## Import order\n")[2].split("```")[1]
    lines = block.removeprefix("text\n").splitlines()
    return [name for line in lines for name in line.partition("  ")[0].split(", ")]


def test_every_step_of_a_slice_is_where_the_map_says() -> None:
    for number, where, _ in table(_MAP, "The path of one slice"):
        place, *functions = codes(where)
        files = [_PACKAGE / place] if place.endswith(".py") else list((_PACKAGE / place).rglob("*.py"))
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        assert functions, number
        assert [name for name in functions if f"def {name}(" not in text] == [], number


# Settings and files.


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _defaults(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every setting of the model by its dotted path, with its default."""
    for attribute, field in model.model_fields.items():
        name, kind = field.alias or attribute, field.annotation
        kinds = get_args(kind) if get_origin(kind) in (UnionType, Union) else (kind,)
        models = list(filter(_is_model, kinds))
        if name in ("defaults", "settings") and kind is TableDefaults:
            yield name, None if field.is_required() else ()
        elif models:
            for one in models:
                yield from _defaults(one, f"{prefix}{name}.")
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


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("The whole file", Config),
        ("A receiver of alerts", ReceiverConfig),
        ("A store", StoreConfig),
        ("A catalog", CatalogConfig),
        ("A discovery rule", DiscoverRule),
        ("A table", TableConfig),
    ],
)
def test_every_setting_is_documented_with_its_default(heading: str, model: type[BaseModel]) -> None:
    known = dict(_defaults(model))
    told = {codes(name)[0]: default for name, default, _ in table(DOCS / "configuration.md", heading)}
    assert set(told) == set(known)
    for name, default in known.items():
        if isinstance(default, int | float) and not isinstance(default, bool):
            assert parse_size(codes(told[name])[0]) == default, name
        else:
            # The model lets keys be left out: that `changes: feed` needs them is a rule over two settings.
            assert told[name] == ("needed" if name == "keys" else _shown(default)), name


def test_the_manifest_and_the_receipt_are_documented_field_by_field() -> None:
    page = DOCS / "landing-folder.md"
    rows = table(page, "Manifest: `_mirror.json`")
    assert {name for names, _ in rows for name in codes(names)} == set(Manifest.model_fields)
    receipt = page.read_text(encoding="utf-8").partition("**receipt**")[2].partition(". It is JSON")[0]
    assert set(codes(receipt)) == set(Receipt.model_fields)


def test_every_failure_has_its_tests() -> None:
    rows = table(DOCS / "proofs.md", "Failures")
    assert [number for number, *_ in rows] == [str(number) for number in range(1, 42)]
    assert [number for number, *_, tests in rows if not _names_tests(tests)] == []


@pytest.mark.parametrize(
    ("heading", "proofs"),
    [("Followed operations", "Operations"), ("Breaks", "Breaks"), ("Refused sources", "Refused sources")],
)
def test_every_operation_has_its_tests(heading: str, proofs: str) -> None:
    rows = table(DOCS / "proofs.md", proofs)
    assert [operation for operation, tests in rows if not _names_tests(tests)] == []
    assert [operation for operation, _ in rows] == [row[0] for row in table(DOCS / "operations.md", heading)]


def _names_tests(cell: str) -> bool:
    return any("::" in name and _REFERENCE.fullmatch(name) for name in codes(cell))


def test_every_break_is_in_the_table() -> None:
    kinds = {code for _, kind in table(DOCS / "operations.md", "Breaks") for code in codes(kind)}
    assert {kind.value for kind in BreakKind} - kinds == set()
