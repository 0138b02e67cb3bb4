"""A lake of two small tables, and a `mirror-assets run --follow` on it in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from mirror_assets_tests import quick_jvm
from mirror_assets_tests.worlds.kills.process import inherited

TABLES = ("shop.orders", "shop.lines")
_LIMIT = 120.0


@dataclass
class Follower:
    """The process and its files; `exports` is what mirror.yaml says below `metrics`."""

    root: Path
    exports: str
    environment: dict[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[str] | None = field(default=None, init=False)

    def create(self) -> None:
        """Write mirror.yaml, and both tables with three rows each."""
        tables = "".join(f"  {name}: {{source: ./lake/{name}, keys: [id]}}\n" for name in TABLES)
        (self.root / "mirror.yaml").write_text(
            f"landing_zone: {{path: ./landing}}\nmirror: {{path: ./mirror}}\nmetrics: {self.exports}\n"
            f"spark: {{settings: {self._event_log()}}}\ntables:\n{tables}"
        )
        for name in TABLES:
            self.append(name, [1, 2, 3])

    def _event_log(self) -> str:
        """Return the settings with which Spark writes down its jobs."""
        folder = self.root / "events"
        folder.mkdir()
        name = "spark.eventLog"
        return f'{{{name}.enabled: "true", {name}.compress: "false", {name}.dir: "file://{folder}"}}'

    def described_jobs(self) -> list[str]:
        """Return the descriptions of Spark's jobs; empty for a job without one."""
        logs = (self.root / "events").rglob("events_*")
        events = (json.loads(line) for path in logs for line in path.read_text().splitlines() if line)
        started = (event for event in events if event.get("Event") == "SparkListenerJobStart")
        return [event["Properties"].get("spark.job.description", "") for event in started]

    def append(self, table: str, ids: Sequence[int | None]) -> None:
        """Commit rows with these keys."""
        rows = pa.table({"id": pa.array(ids, pa.int64()), "text": [f"n{id_}" for id_ in ids]})
        path = str(self.root / "lake" / table)
        write_deltalake(path, rows, mode="append", configuration={"delta.enableChangeDataFeed": "true"})

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command to its end."""
        return subprocess.run(
            self._command(*arguments), env=self._variables, capture_output=True, text=True, check=False, timeout=_LIMIT
        )

    def start(self) -> None:
        """Begin to follow."""
        self._process = subprocess.Popen(
            self._command("--log", "json", "run", "--follow", "--every", "500ms"),
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> tuple[int, str, str]:
        """Interrupt it; return its exit code, its output and its messages."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        output, messages = self._process.communicate(timeout=_LIMIT)
        return self._process.returncode, output, messages

    def kill(self) -> None:
        """End it, however it is."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def _command(self, *arguments: str) -> list[str]:
        main = "import sys; from mirror_assets.cli import main; sys.exit(main())"
        return [sys.executable, "-c", main, *arguments]

    @property
    def _variables(self) -> dict[str, str]:
        here = {"MIRROR_CONFIG": str(self.root / "mirror.yaml")}
        return inherited() | quick_jvm.ENVIRONMENT | here | self.environment
