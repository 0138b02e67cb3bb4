"""Kill the processes of a deployment at random moments, each in the middle of work: `make kills-dagster KILLS=20`.

The daemon, the code server, the resident run and Postgres are killed by -9, and two runs mirror at once. A supervisor
starts daemon, code server and database again; everything else has to continue without help.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.postgres import Postgres, PostgresMissing, postgres
from mirror_assets_tests.worlds.dagster_processes import CODE_SERVER, DAEMON, DagsterProcesses
from mirror_assets_tests.worlds.kills.__main__ import print_line
from mirror_assets_tests.worlds.kills.zone import PROGRAM, Zone, made_home, until_landed

_LIMIT_SECONDS = 180.0


@dataclass
class Deployment:
    """The processes of Dagster on a lake, as a supervisor keeps them; the webserver only shows."""

    zone: Zone
    random: Random
    processes: DagsterProcesses
    database: Postgres | None = None

    def supervise(self) -> None:
        if self.database is not None:
            self.database.start()
        self.processes.supervise()

    def until_landed(self, limit: float = _LIMIT_SECONDS) -> float:
        """Supervise until everything has landed; return the seconds. Raises TimeoutError."""
        return until_landed([self.zone], limit, self.supervise)

    def kill(self, victim: str) -> None:
        """Kill the victim by -9; a run dies with its JVM."""
        if victim in ("run", "two runs"):
            self.zone.kill_residents(self.processes.home)
        elif victim == "database":
            assert self.database is not None
            self.database.end(signal.SIGKILL)
        else:
            self.processes.kill(victim)

    def end(self) -> None:
        self.processes.end()
        self.kill("run")

    @contextmanager
    def second_run(self) -> Iterator[None]:
        """A run from elsewhere that follows the same tables."""
        environment = {name: value for name, value in self.processes.environment.items() if name != "DAGSTER_HOME"}
        command = [str(PROGRAM), "run", "--follow", "--config", str(self.zone.config)]
        with (self.processes.home / "second.log").open("ab") as log:
            second = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            yield
        finally:
            os.killpg(second.pid, signal.SIGKILL)
            second.wait()


def attack(deployment: Deployment, kills: int) -> list[float]:
    """Kill this many times; return the seconds from each kill until every commit had landed."""
    victims = ["run", CODE_SERVER, DAEMON, "two runs", *(["database"] if deployment.database else [])]
    seconds = list[float]()
    for turn in range(kills):
        victim = victims[turn % len(victims)]
        with ExitStack() as stack:
            if victim == "two runs":
                stack.enter_context(deployment.second_run())
                time.sleep(20)  # its Spark has started
            deployment.zone.commit()
            time.sleep(deployment.random.uniform(0.0, 4.0))
            deployment.kill(victim)
            deployment.zone.commit()
            seconds.append(deployment.until_landed())
        print_line(f"{turn + 1}: {victim} killed; all had landed {seconds[-1]:.1f} s later")
    return seconds


def main() -> int:
    """Exit code 0 when everything has landed exactly once, within a minute of each kill."""
    parser = argparse.ArgumentParser(
        prog="python -m mirror_assets_tests.worlds.kills.under_dagster", description=__doc__
    )
    parser.add_argument("--kills", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="of all that is random")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mirror-assets-kills-")))
        print_line(f"{options.kills} kills, seed {options.seed}")
        zone, settings, database = Zone.make(folder / "zone"), "", None
        try:
            database = stack.enter_context(postgres(dict(os.environ)))
            settings = f"\nstorage:\n  postgres:\n    postgres_url: {database.url}\n"
        except PostgresMissing as missing:
            print_line(f"without Postgres: {missing}")
        home = made_home(folder / "home", settings)
        processes = DagsterProcesses(home, {"MIRROR_CONFIG": str(zone.config)})
        deployment = Deployment(zone, Random(options.seed), processes, database)
        stack.callback(deployment.end)
        deployment.supervise()
        print_line(f"first load: {deployment.until_landed(300):.1f} s")
        seconds = attack(deployment, options.kills)
        deployment.end()
        problems = zone.problems()
    print_line(f"{len(seconds)} kills; landed within {max(seconds):.1f} s at most; problems: {problems or 'none'}")
    return 1 if problems or max(seconds) > 60 else 0


if __name__ == "__main__":
    sys.exit(main())
