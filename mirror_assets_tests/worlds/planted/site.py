"""What a mirror of a small lake has in reality: OneLake, Fabric, Dagster's processes, and a receiver of alerts."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES

from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import Store
from mirror_assets_tests.end_to_end.disks import Disk, disk
from mirror_assets_tests.telemetry.scrape import Series, free_port, scrape
from mirror_assets_tests.web import WebReceiver, web_receiver
from mirror_assets_tests.worlds.dagster_processes import DagsterProcesses
from mirror_assets_tests.worlds.fabric.databases import Json, LoopbackDatabase, replicating
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.worlds.planted.lake import FEED, Lake
from mirror_assets_tests.worlds.unity.server import TOKEN, Answer, LoopbackUnity

_PROJECT = Path(__file__).parents[3]
_STAGING_SIZE = "64m"
_TOKEN_SECONDS = 60.0
# Only what has to differ from the defaults is set: the times are those that people get.
_CONFIG = """\
landing_zone:
  onelake: {{url: "{url}", credential: client_secret, ca_bundle: ca.pem, staging_path: ./staging}}
mirror:
  fabric: {{endpoint: "{fabric}"}}
alerts:
  receivers: {{hook: {{url_variable: HOOK_URL, severity: info}}}}
metrics: {{prometheus: {{port: {port}}}}}
automation: {{reconcile_every_hours: null}}  # the loopback OneLake has no tables of a mirror
catalogs: {{main: {{type: unity, url: "{unity}", token_variable: UC_TOKEN}}}}
stores: {{mounted: {{root: ./mounted}}}}
discover:
  - {{from: {{store: mounted, path: "*/"}}, schema: mounted, keys: {{default: [id]}}}}
  - {{from: {{catalog: main, schema: granted}}, keys: {{default: [id]}}}}
tables:
"""
# Tables that are discovered, by their schemas in the mirror.
_DISCOVERED = {"mounted": ("invoices", "receipts", "refunds"), "granted": ("leases", "tenants")}
_REVOKED = Answer.refusal(403, "PERMISSION_DENIED", "User does not have USE SCHEMA on Schema 'main.granted'.")
_HALF_A_DAY, _PATIENCE_SECONDS = 43_200, 120.0


@dataclass
class Site:
    """The place where faults are planted.

    `tables` are all that are mirrored. `failed` are those that Fabric shows as failed, `reported` is its last report.
    `half_days` is how far the clock of the daemon and of all that it starts is advanced.
    """

    folder: Path
    lake: Lake
    onelake: LoopbackOneLake
    database: LoopbackDatabase
    staging: Disk
    hook: WebReceiver
    processes: DagsterProcesses
    metrics_port: int
    tables: tuple[str, ...]
    landing: Store
    unity: LoopbackUnity
    half_days: int = 0
    failed: set[str] = field(default_factory=set)
    reported: list[Json] = field(default_factory=list)

    @property
    def config(self) -> Path:
        return self.folder / "mirror.yaml"

    def command(self, *arguments: str) -> None:
        """Run `mirror-assets`, as a person does. Raises CalledProcessError."""
        program = Path(sys.executable).with_name("mirror-assets")
        environment = {k: v for k, v in self.processes.environment.items() if k != "DAGSTER_HOME"}
        with (self.folder / "commands.log").open("ab") as log:
            subprocess.run([program, *arguments], env=environment, stdout=log, stderr=log, check=True)

    def refuse_secret(self, refused: bool) -> None:
        """Let the secret of the mirror's identity expire, and its tokens soon after; or let it be right again."""
        entra, right = self.onelake.entra, self.processes.variables["AZURE_CLIENT_SECRET"]
        entra.principal = dataclasses.replace(entra.principal, secret="another" if refused else right)

    def metrics(self) -> Series:
        """What the run that stays exports; nothing while there is none."""
        return scrape(self.metrics_port)

    def set_mounted(self, mounted: bool) -> None:
        """Mount the place of the tables in the schema `mounted`, or leave the empty folder below it."""
        place = self.folder / "mounted"
        command = ["mount", "--bind", str(_backing(self.folder))] if mounted else ["umount", "-l"]
        subprocess.run([*command, str(place)], check=True)

    def lose_most(self, lost: bool) -> None:
        """Move two of the three tables of the schema `mounted` out of their place, or back."""
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        for table in _DISCOVERED["mounted"][:2]:
            folders = _backing(self.folder) / table, elsewhere / table
            source, target = folders if lost else reversed(folders)
            source.rename(target)

    def revoke_grant(self, revoked: bool) -> None:
        self.unity.faults = [_REVOKED] * 1_000_000 if revoked else []

    def epoch(self, table: str) -> int:
        """The epoch of a table in the landing zone: 1 if it was never rebuilt; 0 if it is not there."""
        current = drive(read_manifest(TableName.parse(table)), self.landing)
        return current.manifest.epoch if current else 0

    def advance_clock(self) -> None:
        """Advance the clock of the daemon, and of all Python processes that it starts, by half a day.

        Dagster ends runs that take longer than they may, such as five minutes to start. So this waits until the only
        run in progress is the resident one, and that has started.
        """
        deadline, resident = time.monotonic() + _PATIENCE_SECONDS, [(MIRROR_ALL, dg.DagsterRunStatus.STARTED)]
        in_progress = dg.RunsFilter(statuses=IN_PROGRESS_RUN_STATUSES)
        with dg.DagsterInstance.from_config(str(self.processes.home)) as instance:
            while time.monotonic() < deadline and resident != [
                (run.job_name, run.status) for run in instance.get_runs(in_progress)
            ]:
                time.sleep(0.5)
        self.half_days += 1
        _set_clock(self.folder, self.half_days)

    def fabric_tables(self, replicator: LocalReplicator) -> list[Json]:
        with suppress(MirrorError):  # it has the same identity: while that is refused, the last report stands
            self.reported = replicating(replicator)()
        return [_failed(one) if one["sourceTableName"] in self.failed else one for one in self.reported]


def _backing(folder: Path) -> Path:
    return folder / "backing"


def _clock(folder: Path) -> Path:
    return folder / "clock"


def _set_clock(folder: Path, half_days: int) -> None:
    new = folder / "clock.new"
    new.write_text(f"{half_days * _HALF_A_DAY}\n", encoding="utf-8")
    new.rename(_clock(folder))


def _failed(reported: Json) -> Json:
    error = {"errorCode": "InvalidRowMarker", "message": "The file has a row marker that is not known."}
    return {**reported, "status": "Failed", "error": error}


@contextmanager
def site(folder: Path, tables: Sequence[str], held: Sequence[str]) -> Iterator[Site]:
    """Set up a site that mirrors the tables; of those in `held`, a person decides about rebuilds."""
    with ExitStack() as stack:
        onelake = stack.enter_context(LoopbackOneLake(_made(folder / "onelake")))
        fabric = stack.enter_context(LoopbackFabric(_made(folder / "fabric"), onelake.entra))
        item = onelake.new_item()
        fabric.interface.workspace = item.workspace
        onelake.entra.lifetime = _TOKEN_SECONDS
        unity = stack.enter_context(LoopbackUnity())
        (folder / "ca.pem").write_bytes(onelake.ca.read_bytes() + fabric.ca.read_bytes())
        port, lake = free_port(), Lake(folder / "lake")
        values = {"url": item.url, "fabric": fabric.url, "port": port}
        head = _CONFIG.format(**values, unity=unity.url)
        for table in tables:
            lake.make(table)
            on_break = ", on_break: hold" if table in held else ""
            head += f"  shop.{table}: {{source: ./lake/{table}, keys: [id]{on_break}}}\n"
        (folder / "mirror.yaml").write_text(head, encoding="utf-8")
        for table in _DISCOVERED["mounted"]:
            Lake(_backing(folder)).make(table)
        for table in _DISCOVERED["granted"]:
            Lake(folder / "granted").make(table)
            unity.add(f"main.granted.{table}", str(folder / "granted" / table), FEED)
        home, hook = _made(folder / "home"), stack.enter_context(web_receiver())
        shutil.copy(_PROJECT / "dagster.yaml", home)
        variables = {**onelake.environment(), "MIRROR_CONFIG": str(folder / "mirror.yaml"), "HOOK_URL": hook.url}
        variables |= {"UC_TOKEN": TOKEN, "XDG_CACHE_HOME": str(folder / "cache")}
        _set_clock(folder, 0)
        python_path = f"{Path(__file__).parent / 'clock'}:{_PROJECT}"
        variables |= {"CLOCK_FILE": str(_clock(folder)), "PYTHONPATH": python_path}
        small = stack.enter_context(disk(folder / "staging", _STAGING_SIZE))
        processes = DagsterProcesses(home, variables)
        database = fabric.interface.add(LoopbackDatabase("shop", id=item.guid, state="Running"))
        discovered = [f"{schema}.{table}" for schema, names in _DISCOVERED.items() for table in names]
        all_tables = (*(f"shop.{table}" for table in tables), *discovered)
        landing = loopback_store(onelake, item)
        made = Site(folder, lake, onelake, database, small, hook, processes, port, all_tables, landing, unity)
        _made(folder / "mounted")
        made.set_mounted(True)
        stack.callback(subprocess.run, ["umount", "-l", str(folder / "mounted")], check=False)
        replicator = LocalReplicator(landing, folder / "mirrored")
        database.tables = lambda: made.fabric_tables(replicator)
        with dg.DagsterInstance.from_config(str(home)) as instance:
            instance.get_runs_count()  # two processes that make the same SQLite files at once get into each other's way
        stack.callback(_end, made)
        processes.supervise()
        yield made


def _end(made: Site) -> None:
    """End all processes; runs are children of the code server, and end behind it."""
    made.processes.end()
    deadline = time.monotonic() + 20
    while _runs(made) and time.monotonic() < deadline:
        for pid in _runs(made):
            os.kill(pid, 9)
        time.sleep(0.5)


def _runs(made: Site) -> list[int]:
    """The processes that have the site's mirror.yaml in their environment."""
    mark = f"MIRROR_CONFIG={made.config}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
