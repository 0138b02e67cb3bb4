"""A known table keeps its name and its source, in whatever order processes scan and other folders appear."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
from hypothesis import given, settings

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.config.model import Config
from mirror_assets_tests.worlds.disk_lake import DiskLake

_FOLDERS = st.sampled_from([f"{parent}/{name}" for parent in "abc" for name in ("orders", "Items")])
_PROCESSES = st.sampled_from([0, 1])
_STEPS = st.one_of(
    st.tuples(st.sampled_from(["add", "delete", "mount", "unmount"]), _FOLDERS),
    st.tuples(st.just("landing zone"), st.booleans()),
    st.tuples(st.sampled_from(["scan", "scan", "restart"]), _PROCESSES),
    st.tuples(st.just("scan"), st.just(0)),
)


@dataclass
class World:
    """A lake, a landing zone and two processes; `known` has the tables that the landing zone's readers must have."""

    lake: DiskLake
    processes: dict[int, Config] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    zone_is_up: bool = True

    def step(self, action: str, of: str | bool | int) -> None:
        """Change the world, or let a process scan or start again."""
        if isinstance(of, str):
            self._change(action, of)
        elif isinstance(of, bool):
            self._switch_zone(is_up=of)
        elif action == "restart" or of not in self.processes:
            self.processes[of] = self.lake.load()
        else:
            before, self.processes[of] = (
                self.processes[of],
                with_found_tables(self.processes[of], When.REFRESH),
            )
            if not self.zone_is_up:
                assert _sources(self.processes[of]) == _sources(before)
        if not isinstance(of, str | bool) and self.zone_is_up:
            sources = _sources(self.processes[of])
            assert self.known.items() <= sources.items()
            self.known = {name: source for name, source in sources.items() if source not in self.deleted}

    def _change(self, action: str, path: str) -> None:
        folder, parent = self.lake.lake / path, self.lake.lake / path[0]
        unmounted = self.lake.root / f"unmounted-{path[0]}"
        if action == "mount" and unmounted.exists() and not parent.exists():
            unmounted.rename(parent)
        elif action == "unmount" and parent.exists():
            parent.rename(unmounted)
        elif action == "add" and not folder.exists() and not unmounted.exists():
            self.lake.add(path)
            self.deleted.discard(str(folder))
        elif action == "delete" and folder.exists():
            shutil.rmtree(folder)
            self.deleted.add(str(folder))
            self.known = {name: source for name, source in self.known.items() if source != str(folder)}

    def _switch_zone(self, *, is_up: bool) -> None:
        zone, moved = self.lake.root / "landing", self.lake.root / "moved"
        if is_up is self.zone_is_up:
            return
        self.zone_is_up = is_up
        if is_up:
            zone.unlink()
            if moved.exists():
                moved.rename(zone)
        else:
            if zone.exists():
                zone.rename(moved)
            zone.write_text("a file, which can't be a landing zone")


def _sources(config: Config) -> dict[str, str]:
    return {str(table.name).casefold(): table.source for table in config.all_tables()}


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(_STEPS, min_size=10, max_size=40))
def test_a_known_table_keeps_its_name_and_source(steps: list[tuple[str, str | bool | int]]) -> None:
    with TemporaryDirectory() as folder:
        lake = DiskLake(Path(folder))
        lake.add("a/orders", "b/lines", "c/parts")
        lake.configure('{from: {store: lake, path: "*/*/"}, keys: {default: [id]}}')
        world = World(lake)
        for action, of in steps:
            world.step(action, of)
