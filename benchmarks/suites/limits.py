"""Dagster with as many tables and partitions as a large user has: how long definitions load and pages open.

Nothing is mirrored: the tables are names in mirror.yaml, with partitions and some events in Dagster's storage.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import dagster as dg

from benchmarks.bench import Bench
from benchmarks.browser import BrowserMissing, tab
from benchmarks.dev_server import PROJECT, DagsterHome, DevServer, Storage, dagster_home, webserver
from benchmarks.many import ManyTables
from benchmarks.postgres import PostgresMissing
from benchmarks.result import Goal, Outcome
from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration.mirror_assets import partitions_name
from mirror_assets.orchestration.translator import AssetKind, asset_key

_EVENTS = 200
_RELOAD = """mutation { reloadRepositoryLocation(repositoryLocationName: "mirror_assets") {
  ... on WorkspaceLocationEntry { loadStatus } } }"""


@dataclass(frozen=True)
class _Page:
    """A page, what it shows when it is there, and what it shows when its figures are."""

    path: str
    shows: str
    figures: str


def _pages(tables: int) -> Mapping[str, _Page]:
    """The pages that a person opens; the first begins with an empty cache of the browser."""
    first, last = "bench/t000_landing", f"bench/t{tables - 1:03}_landing"
    keys, of_first = "text=1.0-0", f"text=Materialized ({_EVENTS})"
    node, counted = "text=Latest event", r"text=/^[\d,]+ partitions$/"
    return {
        "overview, the first page": _Page("/overview", "text=Deployment", "text=Deployment"),
        "catalog": _Page("/assets", "text=t000", counted),
        "lineage": _Page("/asset-groups", node, counted),
        f"partitions of {first}": _Page(f"/assets/{first}?view=partitions", keys, of_first),
        f"partitions of {last}": _Page(f"/assets/{last}?view=partitions", keys, "text=Materialized (1)"),
        f"lineage of {last}": _Page(f"/assets/{last}?view=lineage", node, counted),
    }


def run(bench: Bench) -> Outcome:
    """Measure definitions, then pages with each storage."""
    tables, keys = bench.size(50, 500), bench.size(1_000, 10_000)
    lake = ManyTables.named(bench.folder / "lake", tables)
    lake.configure()
    notes = [f"  {tables} tables x {keys:,} partitions", *_building(lake.config)]
    goals = list[Goal]()
    for storage in Storage if bench.is_full else (Storage.SQLITE,):
        try:
            with dagster_home(bench.folder / storage.value, lake.config, storage) as home:
                filled = _seconds(lambda home=home: _fill(home, lake, keys))  # type: ignore[misc]
                notes.append(f"  {storage.value}, filled in {filled:.0f} s")
                goals += _served(home, storage, tables, bench.rounds, notes)
        except (PostgresMissing, BrowserMissing, TimeoutError) as error:
            notes.append(f"  {storage.value}: the rest was not measured: {error}")
    return Outcome("limits", (), goals, notes)


def _served(home: DagsterHome, storage: Storage, tables: int, rounds: int, notes: list[str]) -> Iterator[Goal]:
    """What is aimed at, of one storage."""
    yield Goal(f"{storage.value}: dg check defs", _seconds(lambda: _check_definitions(home)), 15, "s")
    with webserver(home) as server:
        notes.append(f"    the webserver starts and loads the code location in {server.loaded_seconds:.1f} s")
        reloaded = [_seconds(lambda: server.graphql(_RELOAD)) for _ in range(rounds)]
        yield Goal(f"{storage.value}: the code location loads again", median(reloaded), 10, "s")
        for name, (there, figures) in _opened(server, tables, rounds).items():
            notes.append(f"    {name}: there in {there:.1f} s, with its figures in {figures:.1f} s")
            yield Goal(f"{storage.value}: {name}", there, 3, "s")


def _check_definitions(home: DagsterHome) -> None:
    """`dg check defs`, in a process of its own. Raises RuntimeError with what it says."""
    command = [str(Path(sys.executable).parent / "dg"), "check", "defs"]
    ended = subprocess.run(command, cwd=PROJECT, env=home.environment, check=False, capture_output=True, text=True)
    if ended.returncode:
        message = f"dg check defs: {ended.stderr[-2000:]}"
        raise RuntimeError(message)


def _opened(server: DevServer, tables: int, rounds: int) -> Mapping[str, tuple[float, float]]:
    """Median seconds until each page is there, and until its figures are; each is loaded anew."""
    found = dict[str, tuple[float, float]]()
    with tab() as browser:
        for name, page in _pages(tables).items():
            opened = [browser.seconds_to_open(server.url + page.path, page.shows, page.figures) for _ in range(rounds)]
            found[name] = (median(one[0] for one in opened), median(one[1] for one in opened))
    return found


def _building(config: Path) -> Iterator[str]:
    """What loading the definitions consists of, in this process."""
    settings = load_config(config)
    began = time.process_time()
    definitions = build_definitions(settings)
    built = time.process_time()
    definitions.get_repository_def().load_all_definitions()
    resolved = time.process_time()
    yield f"  definitions: built in {built - began:.1f} CPU s, resolved by Dagster in {resolved - built:.1f} CPU s"


def _fill(home: DagsterHome, lake: ManyTables, partitions: int) -> None:
    """Register every table's slices; the first table has some landed, every other one."""
    keys = [str(SliceKey(1, version, version)) for version in range(partitions)]
    with dg.DagsterInstance.from_config(str(home.folder)) as instance:
        for name in lake.names:
            table = TableName("bench", name)
            instance.add_dynamic_partitions(partitions_name(asset_key(AssetKind.LANDING, table)), keys)
            for key in keys[: _EVENTS if name == lake.names[0] else 1]:
                landed = dg.AssetMaterialization(asset_key(AssetKind.LANDING, table), partition=key)
                instance.report_runless_asset_event(landed)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
