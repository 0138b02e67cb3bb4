"""A way to a server that drops all its connections when it is told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Way:
    """Passes on what comes to `port`; `drop` ends all connections, and later ones work again."""

    def __init__(self, server: int) -> None:
        self._server, self._open = server, list[socket.socket]()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.dropped = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self) -> bool:
        """End all connections; return whether there was one."""
        ended, self._open = self._open, []
        for one in ended:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self.dropped += bool(ended)
        return bool(ended)

    def close(self) -> None:
        """Take no more connections, and end all."""
        self._listening.close()
        self.drop()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._server))
                except OSError:
                    client.close()
                    continue
                self._open += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def dropping(server: int) -> Iterator[Way]:
    """A way to the server's port on this machine."""
    way = Way(server)
    try:
        yield way
    finally:
        way.close()
