"""Kill mirrors that share a Dagster instance, a landing zone or a host name: `make kills-scopes MINUTES=10`.

Three Dagster instances mirror three landing zones:

- `pair` has two code locations, `first` and `second`, each with its own mirror.yaml and zone. The code server of
  `second` is a container with the host's name: a separate pid namespace, which ends with all its processes when killed.
- `desk`, `rack` and `box` mirror one zone. `box` is a container, too. `rack` and `box` start when `desk` has loaded
  the tables, and have to wait. After a third and a half of the time, the instance that mirrors the zone is killed for
  good.

Processes are killed by -9 while commits come. What each code location saw is printed at the end.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import dagster as dg
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG

from mirror_assets.landing.names import BATCH_LEASE, LEASES, heartbeat_path
from mirror_assets.landing.run_records import Lease, read_lease
from mirror_assets.orchestration.sensors import MIRROR_SENSOR
from mirror_assets.pipeline.liveness import SILENT_SECONDS
from mirror_assets_tests.worlds.dagster_processes import CODE_SERVER, DAEMON, DagsterProcesses
from mirror_assets_tests.worlds.kills.__main__ import print_line
from mirror_assets_tests.worlds.kills.zone import Zone, made_home, until_landed

_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
# Dagster ends a tick after a minute.
_TICK_SECONDS = 60.0
_FIRST_LOAD_SECONDS = 900.0
# A container's heartbeat has to be missing for a while, and the next run starts its Spark.
_LANDED_SECONDS = SILENT_SECONDS + 300.0
_RUN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
# A message that begins with a run says that it is the mirror's own.
_OWN_RUN = re.compile(rf"^run ({_RUN_ID.pattern})")


@dataclass
class Location:
    """A code location of an instance, with the processes that it shares or has alone; `is_off`: none should run."""

    name: str
    zone: Zone
    processes: DagsterProcesses
    is_off: bool = False
    kills: Counter[str] = field(default_factory=Counter)

    @property
    def has_run(self) -> bool:
        return bool(self.zone.residents(self.processes.home))

    def kill(self, victim: str) -> None:
        """Kill the victim by -9."""
        if victim == "run":
            self.zone.kill_residents(self.processes.home)
        else:
            self.processes.kill(victim)
        self.kills[victim] += 1

    def die(self) -> None:
        self.is_off = True
        self.processes.end()
        self.zone.kill_residents(self.processes.home)
        self.kills["for good"] += 1


@dataclass
class Scopes:
    """All mirrors; `began` and `renewed` say when each run began and last beat, in seconds since 1970."""

    locations: Mapping[str, Location]
    random: Random
    began: dict[str, float] = field(default_factory=dict)
    renewed: dict[str, float] = field(default_factory=dict)
    zone_of: dict[str, set[Path]] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path, random: Random) -> Scopes:
        """Make the lakes and the instances' homes, and start all processes."""
        first, second, shared = (Zone.make(folder / name) for name in ("first", "second", "shared"))

        guest = _processes(folder / "pair", second, "second", _CONTAINER)
        host = dataclasses.replace(_processes(folder / "pair", first, "first"), beside=(guest,))
        made = [Location("pair/first", first, host), Location("pair/second", second, guest)]
        for name in ("desk", "rack", "box"):
            prefix = _CONTAINER if name == "box" else ()
            processes = _processes(folder / name, shared, "mirror_assets", prefix)
            made.append(Location(name, shared, processes, is_off=name != "desk"))
        return cls({one.name: one for one in made}, random)

    def watch(self, seconds: float) -> None:
        """Supervise the processes and read the leases for this long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for one in self.locations.values():
                if not one.is_off and one.name != "pair/second":
                    one.processes.supervise()
                heartbeats = {info.path: info.modified for info in one.zone.store.list(LEASES)}
                for lease in _leases(one.zone):
                    self.began[lease.run] = lease.since_ms / 1000
                    if beat := heartbeats.get(heartbeat_path(lease.run)):
                        self.renewed[lease.run] = beat
                    self.zone_of.setdefault(lease.run, set()).add(one.zone.folder)
            time.sleep(0.5)

    def until_landed(self, limit: float) -> float:
        """Watch until everything has landed; return the seconds. Raises TimeoutError."""
        return until_landed({one.zone for one in self.locations.values()}, limit, lambda: self.watch(2.0))

    def attack(self, seconds: float) -> None:
        """Commit and kill at random for this long; a third and a half through, end the mirror of the shared zone."""
        began = time.monotonic()
        ends = [began + seconds / 3, began + seconds / 2]
        while time.monotonic() < began + seconds:
            for zone in {one.zone for one in self.locations.values()}:
                zone.lake.update(self.random.choice(zone.tables).table)
            if ends and time.monotonic() >= ends[0]:
                ends.pop(0)
                for name in ("desk", "rack"):
                    if self.locations[name].has_run and not self.locations[name].is_off:
                        self.locations[name].die()
                        print_line(f"{time.monotonic() - began:.0f} s: {name} killed for good")
                        break
            living = [one for one in self.locations.values() if not one.is_off]
            victim = self.random.choice(living)
            kinds = [CODE_SERVER, DAEMON, "run"]
            if victim.processes.prefix:  # its run dies with its container, and the lease has to expire: once is enough
                is_due = not victim.kills[CODE_SERVER] and (victim.name == "box" or victim.has_run)
                kinds = [CODE_SERVER] if is_due else [DAEMON] if victim.name == "box" else []
            if kinds:
                kind = self.random.choice(kinds)
                victim.kill(kind)
                print_line(f"{time.monotonic() - began:.0f} s: {kind} of {victim.name} killed")
            self.watch(self.random.uniform(8.0, 25.0))

    def end(self) -> None:
        for one in self.locations.values():
            one.processes.end()
            one.kill("run")


def _leases(zone: Zone) -> Iterator[Lease]:
    for info in zone.store.list(LEASES):
        lease = read_lease(zone.store, info.path) if info.name.startswith(BATCH_LEASE) else None
        if lease is not None:
            yield lease


def _problems(scopes: Scopes, location: Location) -> Iterator[str]:
    """Yield what a code location should not have done or seen, as Dagster's instance shows afterwards.

    A second run is one that was requested while a run of another mirror of the zone was alive. A tick that has read the
    leases before may still request one, so it counts from the length of a tick after that run has taken its lease.
    """
    label, zone = f"__repository__@{location.processes.location}", location.zone.folder
    with dg.DagsterInstance.from_config(str(location.processes.home)) as instance:
        runs = {
            record.dagster_run.run_id: record
            for record in instance.get_run_records(dg.RunsFilter(job_name="mirror_all"))
            if record.dagster_run.tags_for_storage().get(REPOSITORY_LABEL_TAG) == label
        }
        messages = Counter(_ticks(instance, location.processes.location))
    print_line(f"{location.name}: killed {dict(location.kills)}; {len(runs)} runs")
    for text, count in messages.most_common():
        print_line(f"    {count} x {text}")
    for run, record in runs.items():
        failed = record.dagster_run.status is dg.DagsterRunStatus.FAILURE
        if failed and scopes.renewed.get(run, 0.0) > (record.end_time or 0.0) + 10.0:
            yield f"{location.name}: the living run {run} was marked as failed"
        if scopes.zone_of.get(run, set()) - {zone}:
            yield f"{location.name}: its run {run} mirrored another zone"
        for other in scopes.renewed.keys() - runs.keys():
            late = record.create_timestamp.timestamp() - scopes.began[other]
            lived = scopes.renewed[other] - 10 - scopes.began[other]
            if zone in scopes.zone_of[other] and _TICK_SECONDS < late < lived:
                yield f"{location.name}: {run} was requested {late:.0f} s after {other} of another mirror had begun"
    for run in {run for text in messages for run in _OWN_RUN.findall(text)} - runs.keys():
        yield f"{location.name}: it took {run} of another mirror for its own"


def _ticks(instance: dg.DagsterInstance, location: str) -> Iterator[str]:
    """Yield what each tick of the location's sensor `mirror` came to."""
    for state in instance.all_instigator_state():
        origin = state.origin.repository_origin.code_location_origin
        if state.instigator_name == MIRROR_SENSOR and origin.location_name == location:
            for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id):
                if tick.error is not None:
                    yield f"error: {tick.error.message.strip().splitlines()[0][:160]}"
                else:
                    yield tick.skip_reason or f"requested {len(tick.run_ids)} runs"


def _processes(home: Path, zone: Zone, location: str, prefix: tuple[str, ...] = ()) -> DagsterProcesses:
    return DagsterProcesses(made_home(home), {"MIRROR_CONFIG": str(zone.config)}, location=location, prefix=prefix)


def main() -> int:
    """Exit code 0 when all tables equal their sources and no mirror has touched another's runs."""
    parser = argparse.ArgumentParser(prog="python -m mirror_assets_tests.worlds.kills.scopes", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of kills (default: 10)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="of all that is random")
    parser.add_argument("--folder", type=Path, help="a new folder, which is kept (default: one that is not)")
    options = parser.parse_args()
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="mirror-assets-scopes-")
        folder = options.folder or Path(stack.enter_context(temporary))
        folder.mkdir(exist_ok=True)
        print_line(f"{options.minutes:g} minutes, seed {options.seed}")
        scopes = Scopes.make(folder.resolve(), Random(options.seed))
        stack.callback(scopes.end)
        print_line(f"first load: {scopes.until_landed(_FIRST_LOAD_SECONDS):.0f} s")
        for name in ("rack", "box"):
            scopes.locations[name].is_off = False
        scopes.watch(1.0)
        scopes.attack(options.minutes * 60)
        print_line(f"everything has landed {scopes.until_landed(_LANDED_SECONDS):.0f} s after the last commit")
        scopes.watch(30.0)
        kills = {name: Counter(one.kills) for name, one in scopes.locations.items()}
        scopes.end()
        problems = [found for zone in {one.zone for one in scopes.locations.values()} if (found := zone.problems())]
        for name, one in scopes.locations.items():
            one.kills = kills[name]
            problems += _problems(scopes, one)
    print_line("\n".join(problems) or "all tables equal their sources, and no mirror has touched another's runs")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
