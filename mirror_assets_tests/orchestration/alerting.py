"""A deployment whose alerts a test reads: tables, a clock, and failures of every kind."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from mirror_assets.config.load import parse_config
from mirror_assets.errors import ErrorCode, RebuildError
from mirror_assets.landing.failures import record_failure
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.alert_checks import CheckReader
from mirror_assets.orchestration.alert_runs import RunReader
from mirror_assets.orchestration.alerts_sensor import Alerts
from mirror_assets.orchestration.asset_names import AssetKind, asset_key
from mirror_assets.orchestration.doctor_job import DOCTOR
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.run_tags import Location
from mirror_assets.storage import LocalStore
from mirror_assets_tests.alerts.web import WebReceiver

REPOSITORY, LOCATION = "__repository__", "here"
# What Dagster's launchers put on every run of a code location.
OURS = {".dagster/repository": f"{REPOSITORY}@{LOCATION}"}
_JOBS = frozenset({"nightly", "mirror_all", "history", DOCTOR, "checks"})
_CHECKS = ("lag", "retention", "not_held", "not_failing", "file_continuity", "layout")


@dataclass
class Deployment:
    """Tables with alerts, read by the sensor's own function; time goes on as the test says."""

    root: Path
    instance: dg.DagsterInstance
    tables: int = 9
    automation: str = ""
    rules: str = ""
    location: str = LOCATION
    prefix: str = "sales.t"
    at: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.names = [TableName.parse(f"{self.prefix}{n:03d}") for n in range(self.tables)]
        listed = "\n".join(f"  {name}: {{source: ./lake/{name.table}, keys: [id]}}" for name in self.names)
        text = (
            "landing_zone: {path: ./landing}\n"
            "alerts:\n"
            "  dagster_url: https://dagster.example\n"
            "  receivers: {hook: {url_variable: HOOK_URL, severity: info}}\n"
            f"{self.automation}{self.rules}"
            f"tables:\n{listed}\n"
        )
        self.config = parse_config(text.encode(), self.root / "mirror.yaml", {})
        self.store = LocalStore(self.root / "landing")
        self.restart()

    def restart(self) -> None:
        """Begin in a new process: nothing is remembered but what was saved."""
        zones = [asset_key(AssetKind.LANDING, name) for name in self.names]
        sources = [dg.AssetCheckKey(asset_key(AssetKind.SOURCE, name), "readable") for name in self.names]
        self.watch((*(dg.AssetCheckKey(zone, check) for zone in zones for check in _CHECKS), *sources))

    def watch(self, checks: Iterable[dg.AssetCheckKey]) -> None:
        """Watch these checks, in a new process."""
        runs = RunReader(_JOBS, frozenset({"history"}))
        self.alerts = Alerts(
            MirrorAssets(self.config), CheckReader(frozenset(checks)), runs, frozenset({"mirror", "history"})
        )

    def tick(self, seconds: float = 0.0) -> str:
        """Tick after so many seconds."""
        self.at += seconds
        zone = resources(MirrorAssets(self.config))["landing_zone"]
        location = Location(REPOSITORY, self.location)
        return self.alerts.tick(self.instance, zone, location, self.at)  # type: ignore[arg-type]

    def settle(self) -> None:
        """Tick until everything new has been reported, and what is gone has ended."""
        for seconds in (0, 31, 31, 61):
            self.tick(seconds)

    def later(self, minutes: float) -> None:
        """Tick every 15 seconds for so many minutes."""
        for _ in range(round(minutes * 4)):
            self.tick(15)

    def check(self, name: str, *, passed: bool, text: str = "", warn: bool = False, asset: str = "t000") -> None:
        """Record a check of a landing zone, as whatever runs it does."""
        key = asset_key(AssetKind.LANDING, TableName("sales", asset))
        severity = dg.AssetCheckSeverity.WARN if warn else dg.AssetCheckSeverity.ERROR
        self.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(key, name, passed=passed, severity=severity, description=text or None)
        )

    def fail(self, table: str, code: ErrorCode, text: str, times: int = 1, rebuild: str | None = None) -> None:
        """Record that runs of the table have failed."""
        for _ in range(times):
            record_failure(self.store, TableName("sales", table), code, text, int(self.at * 1000), None, rebuild)

    def repair(self) -> None:
        """Remove all failure records, as landing does."""
        for path in (self.root / "landing" / "_failures").iterdir():
            path.unlink()

    def run(self, job: str, why: str | None, tags: dict[str, str] | None = None) -> None:
        """Run a job of this code location, which fails for a reason."""

        @dg.op
        def work() -> None:
            if why is not None:
                raise dg.Failure(why)

        @dg.job(name=job)
        def made() -> None:
            work()

        label = {".dagster/repository": f"{REPOSITORY}@{self.location}"}
        made.execute_in_process(instance=self.instance, raise_on_error=False, tags=label | (tags or {}))


def kinds(receiver: WebReceiver) -> list[str]:
    """What Apprise calls the messages: `success` is that of an end."""
    return [body["type"] for body in receiver.bodies]


class BrokenSource(RebuildError):
    code = ErrorCode.SOURCE_BREAK

    def __init__(self, what: str) -> None:
        super().__init__(what, "rebuild it.")
