"""Kill the processes of a deployment at random moments, each in the middle of work: `make kills-dagster KILLS=20`.

The daemon, the code server, the run that stays and Postgres are killed by -9, and two runs mirror at once. Whoever
supervises a deployment starts daemon, code server and database again; everything else has to go on by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.many import ManyTables
from benchmarks.postgres import Postgres, PostgresMissing, postgres
from mirror_assets.landing.lease import Lease, read_lease
from mirror_assets.landing.names import BATCH_LEASE, LEASES
from mirror_assets.pipeline.liveness import is_gone
from mirror_assets.storage import LocalStore
from mirror_assets_tests.dagster_processes import CODE_SERVER, DAEMON, DagsterProcesses
from mirror_assets_tests.kills.__main__ import tell

_PROJECT = Path(__file__).parents[2]
_LIMIT_SECONDS = 180.0
_TABLES = 6


@dataclass
class Deployment:
    """The processes of Dagster on a lake, as a supervisor keeps them; the webserver only shows."""

    lake: ManyTables
    random: Random
    processes: DagsterProcesses
    database: Postgres | None = None

    def supervise(self) -> None:
        """Start what does not run."""
        if self.database is not None:
            self.database.start()
        self.processes.supervise()

    def kill_run(self) -> None:
        """Kill the run that stays by -9, and its JVM with it, as the kernel does when memory runs out."""
        runner = _newest_lease(LocalStore(self.lake.folder / "landing"))
        if runner is None or is_gone(runner):
            return
        for pid in (*_children(runner.process.pid), runner.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """End everything."""
        self.processes.end()
        self.kill_run()


def _newest_lease(store: LocalStore) -> Lease | None:
    """The lease of the run that mirrors the tables, or None."""
    found = [read_lease(store, info.path) for info in store.list(LEASES) if info.name.startswith(BATCH_LEASE)]
    return max((lease for lease in found if lease), key=lambda lease: lease.since_ms, default=None)


def _children(pid: int) -> Iterator[int]:
    """The processes below this one."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _children(int(child))
                yield int(child)


@contextmanager
def _second_run(deployment: Deployment) -> Iterator[None]:
    """A run from elsewhere that follows the same tables."""
    program = Path(sys.executable).with_name("mirror-assets")
    environment = {name: value for name, value in deployment.processes.environment.items() if name != "DAGSTER_HOME"}
    with (deployment.processes.home / "second.log").open("ab") as log:
        second = subprocess.Popen(
            [program, "run", "--follow", "--config", deployment.lake.config], env=environment, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        for pid in (*_children(second.pid), second.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        second.wait()


def _landed(lake: ManyTables, version: int, limit: float, meanwhile: Callable[[], None]) -> float:
    """Seconds until all tables cover the version. Raises TimeoutError."""
    began = time.monotonic()
    while True:
        behind = [name for name in lake.names if _covered(lake, name) < version]
        if not behind:
            return time.monotonic() - began
        if time.monotonic() - began > limit:
            message = f"version {version} of {', '.join(behind)} has not landed in {limit:.0f} s"
            raise TimeoutError(message)
        meanwhile()
        time.sleep(0.1)


def _covered(lake: ManyTables, name: str) -> int:
    try:
        return int(json.loads(lake.manifest(name).read_bytes())["covered"])
    except FileNotFoundError:
        return -1


def _problems(lake: ManyTables) -> list[str]:
    """What is not as it should be at the end: the mirror beside its source, and every landing file."""
    program = Path(sys.executable).with_name("mirror-assets")
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    found = []
    for command in ("replicate", "reconcile", "check"):
        ended = subprocess.run(
            [program, command, "--config", lake.config], env=environment, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            found.append(f"{command}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    return found


def attack(deployment: Deployment, kills: int) -> list[float]:
    """Kill so many times; return the seconds from each kill until every commit had landed."""
    lake, draw = deployment.lake, deployment.random
    victims = ["run", CODE_SERVER, DAEMON, "two runs", *(["database"] if deployment.database else [])]
    told = list[float]()
    for turn in range(kills):
        victim = victims[turn % len(victims)]
        with ExitStack() as stack:
            if victim == "two runs":
                stack.enter_context(_second_run(deployment))
                time.sleep(20)  # its Spark has started
            version = lake.commit()
            time.sleep(draw.uniform(0.0, 4.0))
            _kill(deployment, victim)
            version = max(version, lake.commit())
            told.append(_landed(lake, version, _LIMIT_SECONDS, deployment.supervise))
        tell(f"{turn + 1}: {victim} killed; all had landed {told[-1]:.1f} s later")
    return told


def _kill(deployment: Deployment, victim: str) -> None:
    if victim in ("run", "two runs"):
        deployment.kill_run()
    elif victim == "database":
        assert deployment.database is not None
        deployment.database.end(signal.SIGKILL)
    else:
        deployment.processes.kill(victim)


def main() -> int:
    """Exit code 0 when everything has landed exactly once, within a minute of each kill."""
    parser = argparse.ArgumentParser(prog="python -m mirror_assets_tests.kills.under_dagster", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--tables", type=int, default=_TABLES, help=f"how many (default: {_TABLES})")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="of all that is random")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mirror-assets-kills-")))
        tell(f"{options.kills} kills, seed {options.seed}")
        lake, home = ManyTables.make(folder / "lake", options.tables), folder / "home"
        home.mkdir()
        settings, database = (_PROJECT / "dagster.yaml").read_text(), None
        try:
            database = stack.enter_context(postgres(dict(os.environ)))
            settings += f"\nstorage:\n  postgres:\n    postgres_url: {database.url}\n"
        except PostgresMissing as missing:
            tell(f"without Postgres: {missing}")
        (home / "dagster.yaml").write_text(settings)
        processes = DagsterProcesses(home, {"MIRROR_CONFIG": str(lake.config)})
        deployment = Deployment(lake, Random(options.seed), processes, database)
        stack.callback(deployment.end)
        deployment.supervise()
        tell(f"first load: {_landed(lake, 0, 300, deployment.supervise):.1f} s")
        told = attack(deployment, options.kills)
        deployment.end()
        problems = _problems(lake)
    tell(f"{len(told)} kills; landed within {max(told):.1f} s at most; problems: {problems or 'none'}")
    return 1 if problems or max(told) > 60 else 0


if __name__ == "__main__":
    sys.exit(main())
