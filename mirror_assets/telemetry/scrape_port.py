"""Serves metrics for Prometheus on a port; a process that finds the port in use waits until it is free."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

_AGAIN_SECONDS = 2.0


@dataclass
class ScrapePort:
    """The address at which a registry is served; `warn` is called once if another process has the port."""

    registry: CollectorRegistry
    host: str
    port: int
    warn: Callable[[str], None]
    _over: threading.Event = field(default_factory=threading.Event, init=False)
    _server: WSGIServer | None = field(default=None, init=False)
    _waiting: threading.Thread | None = field(default=None, init=False)

    def open(self) -> None:
        """Serve, or retry in a background thread until the port is free."""
        why = self._try()
        if why is None:
            return
        self.warn(
            f"metrics are not served at {self.host}:{self.port} ({why}): another process may have the port; retrying "
            "until this process ends"
        )
        self._waiting = threading.Thread(target=self._wait, name="metrics-port", daemon=True)
        self._waiting.start()

    def close(self) -> None:
        """Release the port."""
        self._over.set()
        if self._waiting is not None:
            self._waiting.join()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _wait(self) -> None:
        while not self._over.wait(_AGAIN_SECONDS):
            if self._try() is None:
                return

    def _try(self) -> str | None:
        """Serve; return the reason if that fails."""
        try:
            self._server, _ = start_http_server(self.port, self.host, self.registry)
        except (OSError, OverflowError, ValueError) as error:  # the latter two for invalid ports and hosts
            return getattr(error, "strerror", None) or str(error)
        return None
