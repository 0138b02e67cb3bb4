"""Looks for tables beside the ticks of a sensor, and has definitions load anew for others (docs/decisions/0014)."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import dagster as dg
from dagster._core.remote_origin import CodeLocationOrigin, GrpcServerCodeLocationOrigin

from mirror_assets.config import Config, When, load_config, with_found_tables

# A tick waits so long for a look; what takes longer is seen by a later one.
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
        """Ask it to load the definitions anew, as a click on "Reload" does: another process takes this one's place.

        One that can't (`dagster api grpc`) answers, too, and stays. One that the daemon has started is not asked: it is
        replaced every minute.
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
    _told: str = ""

    def tick(self, server: CodeServer, log: logging.Logger) -> None:
        """Go on with the tables that were found, and look again when it is time."""
        if not self.config.discover or self._is_working:
            return
        if self._found is not None:  # it was asked to load them, and this process is still there
            self._take()
        elif time.monotonic() >= self._due:
            self._due = time.monotonic() + self.config.automation.discover_every_seconds
            self._begin(partial(self._look, server))
        if self._told:
            log.info(self._told)
            self._told = ""

    @property
    def _is_working(self) -> bool:
        return self._work is not None and self._work.is_alive()

    def _begin(self, work: Callable[[], None]) -> None:
        self._work = threading.Thread(target=work, name="rediscovery", daemon=True)
        self._work.start()
        self._work.join(_TICK_WAITS_SECONDS)

    def _look(self, server: CodeServer) -> None:
        found = with_found_tables(self.config, When.REFRESH)
        if found.tables == self.config.tables:
            return
        self._told = _difference(self.config, found)
        try:
            load_config(found.file, when=When.NEVER)  # a file that is wrong now would leave no code server at all
            server.reload()
        except Exception as error:  # noqa: BLE001 whatever gRPC raises: the runs can do without
            _LOG.warning("the definitions don't load anew; found tables are mirrored all the same (%s)", error)
        self._found = found

    def _take(self) -> None:
        assert self._found is not None  # noqa: S101 its caller has looked
        self.config, self._found, self.code = self._found, None, uuid.uuid4().hex


def _difference(before: Config, after: Config) -> str:
    """Return which tables are new, gone, or found elsewhere."""
    new = [name for name in after.tables if name not in before.tables]
    gone = [name for name in before.tables if name not in after.tables]
    parts = [f"{len(names)} {what} ({_some(names)})" for what, names in (("new", new), ("gone", gone)) if names]
    return f"tables: {', '.join(parts) or 'others of the same names'}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
