"""Discovers tables in a thread beside the sensor's ticks, and reloads the definitions (docs/decisions/0014)."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from functools import partial

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.orchestration.dagster_internals import CodeLocationOrigin, GrpcServerCodeLocationOrigin
from mirror_assets.orchestration.mirror_assets import MirrorAssets

# A tick waits this long for a scan; a later tick reads the result of a slower one.
_TICK_WAITS_SECONDS = 5.0
_NAMED = 5
_LOG = logging.getLogger(__name__)


@dataclass
class Rediscovery:
    """The tables that this process mirrors, which are those that it was loaded with, or that it has found since.

    When they change, runs end, because their mark is another (`code_mark`); the next ones load the definitions.
    """

    assets: MirrorAssets
    _due: float = 0.0
    _work: threading.Thread | None = None
    _found: Config | None = None
    _message: str = ""

    def tick(self, server: CodeLocationOrigin | None, reload_seconds: int, log: logging.Logger) -> None:
        """Apply the tables that were found, and scan again when it is time.

        `server` has loaded the definitions, which may take it `reload_seconds`; a test has none.
        """
        if not self.assets.config.discovered.rules or (self._work is not None and self._work.is_alive()):
            return
        if self._found is not None:  # the definitions were reloaded, and this process still runs
            self.assets, self._found = self.assets.with_config(self._found), None
        elif time.monotonic() >= self._due:
            self._due = time.monotonic() + self.assets.config.automation.discover_every_seconds
            scan = partial(self._scan, server, reload_seconds)
            self._work = threading.Thread(target=scan, name="rediscovery", daemon=True)
            self._work.start()
            self._work.join(_TICK_WAITS_SECONDS)
        if self._message:
            log.info(self._message)
            self._message = ""

    def _scan(self, server: CodeLocationOrigin | None, reload_seconds: int) -> None:
        before, found = self.assets.config.tables, with_found_tables(self.assets.config, When.REFRESH)
        if found.tables == before:
            return
        new, removed = (
            [name for name in found.tables if name not in before],
            [x for x in before if x not in found.tables],
        )
        changes = [f"{len(x)} {what} ({_some(x)})" for what, x in (("new", new), ("removed", removed)) if x]
        self._message = f"tables: {', '.join(changes) or 'same names, other places'}"
        try:
            load_config(found.file, when=When.NEVER)  # an invalid file would leave no code server
            reload_definitions(server, reload_seconds)
        except Exception as error:  # noqa: BLE001 whatever gRPC raises: the runs need no reload
            _LOG.warning("the definitions could not be reloaded; new tables are mirrored nevertheless (%s)", error)
        self._found = found


def reload_definitions(server: CodeLocationOrigin | None, seconds: int) -> None:
    """Reload the definitions, as a click on "Reload" does: another process replaces this one.

    A server that can't reload (`dagster api grpc`) ignores the request. A server that the daemon has started needs
    none: it is replaced every minute.
    """
    if isinstance(server, GrpcServerCodeLocationOrigin):
        server.create_client().reload_code(timeout=seconds)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
