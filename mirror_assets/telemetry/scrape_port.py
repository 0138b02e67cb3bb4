"""Serves metrics for Prometheus on a port; a process that finds the port in use waits until it is free."""

from __future__ import annotations

import threading
from collections.abc import Callable
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

_AGAIN_SECONDS = 2.0


def serve(registry: CollectorRegistry, host: str, port: int, warn: Callable[[str], None]) -> Callable[[], None]:
    """Serve the registry, and return a function that releases the port.

    If another process has the port, warns once and retries in a background thread until the port is free.
    """
    over, servers = threading.Event(), list[WSGIServer]()

    def start() -> str | None:
        """Start the server; return the reason if that fails."""
        try:
            servers.append(start_http_server(port, host, registry)[0])
        except (OSError, OverflowError, ValueError) as error:  # the latter two for invalid ports and hosts
            return getattr(error, "strerror", None) or str(error)
        return None

    def retry() -> None:
        while not over.wait(_AGAIN_SECONDS) and start() is not None:
            pass

    waiting = threading.Thread(target=retry, name="metrics-port", daemon=True)
    if (why := start()) is not None:
        warn(
            f"metrics are not served at {host}:{port} ({why}): another process may have the port; retrying until this "
            "process ends"
        )
        waiting.start()

    def close() -> None:
        over.set()
        if waiting.is_alive():
            waiting.join()
        for server in servers:
            server.shutdown()
            server.server_close()

    return close
