"""A deployment whose alerts a test reads: tables that are logs alone, and runs of the job `checks`."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import dagster as dg

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.names import TableName
from mirror_assets.landing.problems import ProblemFile, ProblemStore
from mirror_assets.landing.run_records import clear_failure, record_failure
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.check_jobs import CHECK_OP, CHECKS, CheckTables
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.pipeline.paper import COLUMNS, FEED, SCHEMA
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    commit_file,
    file_action,
    info,
    metadata_action,
    write_commit,
)
from mirror_assets_tests.web import WebReceiver

_DAYS = 8


@dataclass
class Deployment:
    """Tables of which everything has landed, with a receiver of alerts; `settings` are more lines of mirror.yaml."""

    root: Path
    instance: dg.DagsterInstance
    tables: int = 3
    settings: str = ""
    first: int = 0
    at: float = field(default_factory=time.time)
    _built: tuple[list[TableName], dg.Definitions] | None = None

    def __post_init__(self) -> None:
        self.store = LocalStore(self.root / "landing")
        self.names = [TableName("sales", f"t{n:03d}") for n in range(self.first, self.first + self.tables)]
        for name in self.names:
            if not self._lake(name).exists():
                self._create(name)

    @property
    def config(self) -> Config:
        """Its settings."""
        listed = "".join(f"  {name}: {{source: ./lake/{name.table}, keys: [id]}}\n" for name in self.names)
        text = (
            "landing_zone: {path: ./landing}\n"
            "mirror: {path: ./mirror}\n"
            "alerts:\n"
            "  dagster_url: https://dagster.example\n"
            "  receivers: {hook: {url_variable: HOOK_URL, severity: info}}\n"
            "automation: {checks_every_minutes: 5}\n"
            f"{self.settings}tables:{' {}' if not listed else ''}\n{listed}"
        )
        return with_found_tables(parse_config(text.encode(), self.root / "mirror.yaml", {}), When.NEVER)

    @property
    def problems(self) -> ProblemFile:
        """The problems in the landing zone."""
        return ProblemStore(self.store).read()

    def checks(
        self, minutes: float = 0.0, only: CheckTables | None = None, job: str = CHECKS
    ) -> dg.ExecuteInProcessResult:
        """Run the job `checks`, or some of its checks, after these minutes."""
        self.at += minutes * 60
        if self._built is None or self._built[0] != self.names or "discover:" in self.settings:
            self._built = [*self.names], build_definitions(self.config)
        found = self._built[1].resolve_job_def(job)
        run_config = None if only is None else dg.RunConfig(ops={CHECK_OP: only})
        with mock.patch("time.time", return_value=self.at):
            return found.execute_in_process(instance=self.instance, run_config=run_config, raise_on_error=False)

    def reload(self) -> None:
        """Load the definitions again, as after a change of the code."""
        self._built = None

    def later(self, minutes: int) -> list[bool]:
        """Run `checks` every five minutes; return which runs succeeded."""
        return [self.checks(5).success for _ in range(minutes // 5)]

    def commit(self, table: str, hours_ago: float) -> None:
        """Commit one version that has not landed, this long ago."""
        name = TableName("sales", table)
        version = DeltaLog(str(self._lake(name))).newest() + 1
        made = self.at - hours_ago * 3600
        self._write(name, version, made, file_action("add", f"{version}.parquet"))
        (self._lake(name) / f"{version}.parquet").touch()

    def land(self, table: str) -> None:
        """Have everything of the table landed."""
        name = TableName("sales", table)
        (self.root / "landing" / name.manifest).unlink()
        self._cover(name)

    def fail(self, table: str, code: ErrorCode, text: str, times: int = 1, rebuild: str | None = None) -> None:
        """Record that runs of the table have failed at a commit that waits."""
        name = TableName("sales", table)
        current = drive(read_manifest(name), self.store)
        if current is None or current.manifest.covered == DeltaLog(str(self._lake(name))).newest():
            self.commit(table, 0.0)
        for _ in range(times):
            record_failure(self.store, name, code, text, int(self.at * 1000), None, rebuild)

    def fix(self, table: str) -> None:
        """Forget the failures and land what waits, as the next run does."""
        clear_failure(self.store, TableName("sales", table))
        self.land(table)

    def _lake(self, name: TableName) -> Path:
        return self.root / "lake" / name.table

    def _create(self, name: TableName) -> None:
        self._write(name, 0, self.at - _DAYS * 86_400, PROTOCOL, metadata_action(SCHEMA, **FEED))
        self.store.create(name.metadata, metadata_bytes(("id",)))
        self._cover(name)

    def _write(self, name: TableName, version: int, made: float, *actions: Action) -> None:
        lake = self._lake(name)
        write_commit(lake, version, [info("WRITE", timestamp=int(made * 1000)), *actions])
        os.utime(commit_file(lake, version), (made, made))

    def _cover(self, name: TableName) -> None:
        log = DeltaLog(str(self._lake(name)))
        state = log.state()
        cover(self.store, name, state.version, state.table_id, state.schema_string, COLUMNS)


def kinds(receiver: WebReceiver) -> list[str]:
    """What Apprise calls the messages: `success` is that of an end."""
    return [body["type"] for body in receiver.bodies]
