"""A server on this machine, in a thread of the process that wants it."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web
from typing_extensions import Self

from mirror_assets_tests.worlds.onelake.certificates import Authority

_PATIENCE = 30
_GOODBYE = 0.05  # TLS connections need some turns of the loop to close
# From Python 3.11 on, a client that ends its connection without a word would keep the server's side open for 30 s.
_HANG_UP: dict[str, Any] = {"ssl_shutdown_timeout": _GOODBYE / 2} if sys.version_info >= (3, 11) else {}


class LoopbackServer(ABC):
    """Listens on a port of 127.0.0.1; `with` starts and stops it.

    `folder` gets the certificate that clients have to trust; without it, there is no TLS. Port 0 is any that is free.
    """

    def __init__(self, folder: Path | None = None, port: int = 0) -> None:
        self._sockets = [socket.create_server(("127.0.0.1", port))]
        self._certificates = None if folder is None else Authority(folder)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__, daemon=True)

    @abstractmethod
    def application(self) -> web.Application:
        """What answers."""

    @property
    def url(self) -> str:
        return self._url(self._sockets[0])

    def another_url(self) -> str:
        """Listen on another port, too, and return where: clients choose an identity by host and port."""
        self._sockets.append(socket.create_server(("127.0.0.1", 0)))
        asyncio.run_coroutine_threadsafe(self._listen(self._sockets[-1]), self._loop).result(_PATIENCE)
        return self._url(self._sockets[-1])

    @property
    def _authority(self) -> Authority:
        assert self._certificates is not None
        return self._certificates

    @property
    def ca(self) -> Path:
        return self._authority.ca

    @property
    def truststore(self) -> Path:
        """The certificate to trust, as a PKCS12 store for the JVM; made by keytool when first asked for."""
        return self._authority.truststore()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(_PATIENCE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()

    async def _serve(self) -> None:
        self._runner = web.AppRunner(self.application(), access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await self._listen(self._sockets[0])

    async def _listen(self, at: socket.socket) -> None:
        assert self._runner.server is not None  # it is there from the set-up on
        tls = {} if self._certificates is None else {"ssl": self._certificates.server_context(), **_HANG_UP}
        await self._loop.create_server(self._runner.server, sock=at, **tls)

    async def _end(self) -> None:
        for open_socket in self._sockets:
            open_socket.close()
        await self._runner.cleanup()
        await asyncio.sleep(_GOODBYE)

    def _url(self, listening: socket.socket) -> str:
        return f"http{'s' if self._certificates else ''}://127.0.0.1:{listening.getsockname()[1]}"
