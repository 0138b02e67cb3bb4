"""Serves metrics for Prometheus on a port that only one process has; another takes it over when it is free."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

_AGAIN_SECONDS = 2.0


@dataclass
class ScrapePort:
    """The address to serve a registry at; `warn` is told once if another process has the port."""

    registry: CollectorRegistry
    host: str
    port: int
    warn: Callable[[str], None]
    _over: threading.Event = field(default_factory=threading.Event, init=False)
    _server: WSGIServer | None = field(default=None, init=False)
    _waiting: threading.Thread | None = field(default=None, init=False)

    def open(self) -> None:
        """Serve, or wait in the background until the port is free: nothing waits for this."""
        why = self._try()
        if why is None:
            return
        self.warn(
            f"metrics are not served at {self.host}:{self.port} ({why}): another process may have the port; it is "
            "tried again until this one ends"
        )
        self._waiting = threading.Thread(target=self._wait, name="metrics-port", daemon=True)
        self._waiting.start()

    def close(self) -> None:
        """Let go of the port."""
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
        """Serve; return why that can't be, or None."""
        try:
            self._server, _ = start_http_server(self.port, self.host, self.registry)
        except (OSError, OverflowError, ValueError) as error:  # the latter for ports and hosts that can't be
            return getattr(error, "strerror", None) or str(error)
        return None
