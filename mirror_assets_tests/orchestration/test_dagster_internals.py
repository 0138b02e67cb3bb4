"""Only one module depends on Dagster's internals, and each that a new Dagster has changed is named with its users."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest
from dagster._annotations import is_public
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from sqlalchemy import Engine, create_engine, text

_PACKAGE = Path(__file__).parents[2] / "mirror_assets"
_MODULE = _PACKAGE / "orchestration/dagster_internals.py"
_INTERNAL = re.compile(r"^\s*(?:from|import) dagster(?:\.|_\w+\.)_", re.MULTILINE)
_TAG = re.compile(r"\.?dagster/")
# Names of metadata in Dagster's documentation, and what people may not set.
_DOCUMENTED = {f"dagster/{name}" for name in ("uri", "table_name", "column_schema", "column_lineage", "row_count")}
_DOCUMENTED |= {"dagster/partition_row_count"}
_INSTANCE = "DagsterInstance"


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _files() -> list[Path]:
    return sorted(_PACKAGE.rglob("*.py"))


def _imported() -> Iterator[tuple[str, str]]:
    """Yield the internals, by module and name, from the source: with one of them gone, the module can't be imported."""
    for node in ast.walk(_tree(_MODULE)):
        if isinstance(node, ast.ImportFrom) and "._" in (node.module or ""):
            yield from ((node.module or "", alias.name) for alias in node.names)


def _members() -> dict[str, tuple[str, ...]]:
    """Return the undocumented members in use, by the name of their class, from the source as well."""
    (table,) = [
        node.value
        for node in _tree(_MODULE).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "UNDOCUMENTED_MEMBERS"
    ]
    found: dict[str, tuple[str, ...]] = ast.literal_eval(table)
    return found


@cache
def _nodes() -> dict[str, list[tuple[str, ast.AST]]]:
    """Return where each name is used in the package, as `orchestration/sensors.py:12`, with the node."""
    found: dict[str, list[tuple[str, ast.AST]]] = {}
    for file in _files():
        for node in ast.walk(_tree(file)):
            name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None)
            if name and isinstance(node, ast.Attribute | ast.Name | ast.FunctionDef):
                found.setdefault(name, []).append((f"{file.relative_to(_PACKAGE)}:{node.lineno}", node))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found.setdefault(f"{node.func.attr}()", []).append(("", node))
    return found


def _users(name: str) -> str:
    return ", ".join(place for place, _ in _nodes().get(name, ()))


def problem_of_import(module: str, name: str) -> str:
    """Return what has changed, or an empty text."""
    try:
        found: ModuleType | None = import_module(module)
    except ImportError:
        found = None
    if found is not None and hasattr(found, name):
        return ""
    what = f"no {name} in {module}" if found else f"no module {module}, of which {name} was imported"
    return f"Dagster {dg.__version__} has {what}. Used by: {_users(name)}"


def problem_of_member(kind: type, name: str) -> str:
    """Return what has changed of a member: it is gone, or a parameter is that calls name."""
    if not hasattr(kind, name):
        return f"Dagster {dg.__version__} has no {kind.__name__}.{name}. Used by: {_users(name)}"
    member = inspect.getattr_static(kind, name)
    if not inspect.isfunction(member):
        return ""
    parameters = inspect.signature(member).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return ""
    lost = {word for call in _calls(name) for word in call if word not in parameters}
    return f"Dagster {dg.__version__}: {kind.__name__}.{name} has no parameter {lost}. Used by: {_users(name)}" * bool(
        lost
    )


def _calls(name: str) -> Iterator[list[str]]:
    """Yield the keywords of each call of a method with this name."""
    for _, node in _nodes().get(f"{name}()", ()):
        if isinstance(node, ast.Call):
            yield [word.arg for word in node.keywords if word.arg]


@pytest.mark.parametrize(("module", "name"), sorted(_imported()))
def test_dagster_still_has(module: str, name: str) -> None:
    problem = problem_of_import(module, name)
    assert not problem, problem


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in _members().items() for name in names])
def test_a_class_of_dagster_still_has(kind: str, name: str) -> None:
    problem = problem_of_member(getattr(dg, kind), name)
    assert not problem, problem


def test_a_change_is_named_with_its_users() -> None:
    class Instance:
        def get_runs(self, filters: object) -> None: ...

    gone = problem_of_member(dg.DagsterInstance, "get_gone")
    assert "has no DagsterInstance.get_gone." in gone
    renamed = problem_of_member(Instance, "get_runs")
    assert re.search(r"get_runs has no parameter .*limit.* Used by: .*sensors\.py:\d", renamed)
    moved = problem_of_import("dagster._check", "PRIORITY_TAG")
    assert re.search(r"no PRIORITY_TAG in dagster\._check\. Used by: .*sensors\.py:\d", moved)
    assert "no module dagster._gone" in problem_of_import("dagster._gone", "CheckError")


def test_no_other_module_imports_internals() -> None:
    assert {file for file in _files() if _INTERNAL.search(file.read_text(encoding="utf-8"))} == {_MODULE}


def test_no_module_writes_the_name_of_a_tag_of_dagster() -> None:
    written = {
        (file.name, node.value)
        for file in _files()
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _TAG.match(node.value)
    }
    assert {found for found in written if found[1] not in _DOCUMENTED} == set()


def test_every_undocumented_member_of_the_instance_is_listed() -> None:
    used = {
        node.attr
        for file in _files()
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).rpartition(".")[2] in ("instance", "_instance")
    }
    members = {name: inspect.getattr_static(dg.DagsterInstance, name, None) for name in used}
    undocumented = {name for name, member in members.items() if member is not None and not is_public(member)}
    assert undocumented - set(_members()[_INSTANCE]) == set()


def test_the_module_has_nothing_that_dagster_exports_and_nothing_unused() -> None:
    from mirror_assets.orchestration import dagster_internals

    assert [name for name in dagster_internals.__all__ if hasattr(dg, name)] == []
    assert [name for names in _members().values() for name in names if not _users(name)] == []


def test_threads_record_in_an_instance_in_memory_at_once() -> None:
    from dagster._core.utils import make_new_run_id

    from mirror_assets.orchestration import dagster_internals

    with dagster_internals.ephemeral_instance() as instance:

        def record(number: int) -> None:
            run = instance.add_run(dg.DagsterRun(job_name="job", run_id=make_new_run_id()))
            instance.add_run_tags(run.run_id, {"number": str(number)})

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(record, range(200)))
        assert sorted(int(run.tags["number"]) for run in instance.get_runs()) == list(range(200))


def test_kept_connections_record_what_others_read_also_when_the_file_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster._core.storage.event_log.sqlite import sqlite_event_log

    from mirror_assets.orchestration import dagster_internals

    opened = list[str]()

    def counted(url: str, **options: object) -> Engine:
        opened.append(url)
        return create_engine(url, **options)

    monkeypatch.setattr(sqlite_event_log, "create_engine", counted)
    asset = dg.AssetKey("orders")
    with (
        dg.instance_for_test(temp_dir=str(tmp_path)) as instance,
        dg.DagsterInstance.from_ref(instance.get_ref()) as other,
    ):
        dagster_internals.keep_connections(instance)
        dagster_internals.keep_connections(instance)
        instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition="0"))
        opened.clear()

        def record(number: int) -> None:
            instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=str(number)))

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(record, range(1, 50)))
        assert opened == []
        assert other.get_materialized_partitions(asset) == {str(number) for number in range(50)}

        # A migration while the run goes on makes tables that were not there.
        storage = instance.event_log_storage
        assert isinstance(storage, SqliteEventLogStorage)
        assert not storage.has_table("later")
        with storage.index_connection() as connection:
            connection.execute(text("CREATE TABLE later (id INT)"))
        assert storage.has_table("later")

        # Another file in its place, as after a restore: a connection to the old one would record into nothing.
        index = tmp_path / "history" / "runs" / "index.db"
        index.with_name("copy.db").write_bytes(index.read_bytes())
        index.with_name("copy.db").replace(index)
        record(50)
        assert "50" in other.get_materialized_partitions(asset)
