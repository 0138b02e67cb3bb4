"""Discovers tables in a thread beside the sensor's ticks, and reloads the definitions (docs/decisions/0014)."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import dagster as dg

from mirror_assets.config import Config, When, load_config, with_found_tables
from mirror_assets.orchestration.dagster_internals import CodeLocationOrigin, GrpcServerCodeLocationOrigin

# A tick waits this long for a scan; a later tick reads the result of a slower one.
_TICK_WAITS_SECONDS = 5.0
_NAMED = 5
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class CodeServer:
    """The process that has loaded the definitions; `seconds` is how long that may take. A test has no `origin`."""

    origin: CodeLocationOrigin | None
    seconds: int

    @classmethod
    def of(cls, context: dg.SensorEvaluationContext) -> CodeServer:
        """Return the server that evaluates this tick."""
        return cls(context.code_location_origin, context.instance.code_server_reload_timeout)

    def reload(self) -> None:
        """Reload the definitions, as a click on "Reload" does: another process replaces this one.

        A server that can't reload (`dagster api grpc`) ignores the request. A server that the daemon has started needs
        none: it is replaced every minute.
        """
        if isinstance(self.origin, GrpcServerCodeLocationOrigin):
            self.origin.create_client().reload_code(timeout=self.seconds)


@dataclass
class Rediscovery:
    """The tables that this process mirrors, which are those that it was loaded with, or that it has found since.

    `code` changes with them: then the sensor replaces the runs, each of which loads the definitions for itself.
    """

    config: Config
    code: str = ""
    _due: float = 0.0
    _work: threading.Thread | None = None
    _found: Config | None = None
    _message: str = ""

    def tick(self, server: CodeServer, log: logging.Logger) -> None:
        """Apply the tables that were found, and scan again when it is time."""
        if not self.config.discover or (self._work is not None and self._work.is_alive()):
            return
        if self._found is not None:  # the definitions were reloaded, and this process still runs
            self.config, self._found, self.code = self._found, None, uuid.uuid4().hex
        elif time.monotonic() >= self._due:
            self._due = time.monotonic() + self.config.automation.discover_every_seconds
            self._begin(partial(self._scan, server))
        if self._message:
            log.info(self._message)
            self._message = ""

    def _begin(self, work: Callable[[], None]) -> None:
        self._work = threading.Thread(target=work, name="rediscovery", daemon=True)
        self._work.start()
        self._work.join(_TICK_WAITS_SECONDS)

    def _scan(self, server: CodeServer) -> None:
        found = with_found_tables(self.config, When.REFRESH)
        if found.tables == self.config.tables:
            return
        self._message = _difference(self.config, found)
        try:
            load_config(found.file, when=When.NEVER)  # an invalid file would leave no code server
            server.reload()
        except Exception as error:  # noqa: BLE001 whatever gRPC raises: the runs need no reload
            _LOG.warning("the definitions could not be reloaded; new tables are mirrored nevertheless (%s)", error)
        self._found = found


def _difference(before: Config, after: Config) -> str:
    """Return which tables are new, removed, or found elsewhere."""
    new = [name for name in after.tables if name not in before.tables]
    gone = [name for name in before.tables if name not in after.tables]
    parts = [f"{len(names)} {what} ({_some(names)})" for what, names in (("new", new), ("removed", gone)) if names]
    return f"tables: {', '.join(parts) or 'same names, other places'}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
