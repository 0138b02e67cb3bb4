"""A Fabric on this machine: the interface over TLS, for real tokens only, with faults and a log of requests."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

from aiohttp import web

from mirror_assets.fabric.values import Workspace
from mirror_assets_tests.fabric.interface import Answer, Interface, Request
from mirror_assets_tests.onelake.certificates import Authority
from mirror_assets_tests.onelake.entra import Entra

AUDIENCE = "https://api.fabric.microsoft.com"
_PATIENCE = 30
_GOODBYE = 0.05  # TLS connections need turns of the loop to close
# From Python 3.11 on, a client that ends its connection without a word would keep the server's side open for 30 s.
_HANG_UP: dict[str, Any] = {"ssl_shutdown_timeout": _GOODBYE / 2} if sys.version_info >= (3, 11) else {}


@dataclass(frozen=True)
class Fault:
    """What happens to the next request of an operation: another answer, or none, before or after its effect."""

    operation: str
    answer: Answer | None = None
    after: bool = False


@dataclass
class LoopbackFabric:
    """Listens on a port of 127.0.0.1; `with` starts and stops it. `entra` knows the tokens that are good."""

    folder: Path
    entra: Entra
    faults: list[Fault] = field(default_factory=list)
    log: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._authority = Authority(self.folder)
        self.interface = Interface(self.url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopback Fabric", daemon=True)

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"https://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def ca(self) -> Path:
        """The certificate to trust, as a PEM file."""
        return self._authority.ca

    @property
    def place(self) -> Workspace:
        """The workspace, as the product's client wants it."""
        return Workspace(UUID(self.interface.workspace), self.url, self.ca)

    def reset(self) -> None:
        """An empty workspace without faults, and an empty log."""
        self.faults.clear()
        self.log.clear()
        self.interface = Interface(self.url)

    def __enter__(self) -> LoopbackFabric:
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
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        assert self._runner.server is not None  # it is there from the set-up on
        context = self._authority.server_context()
        await self._loop.create_server(self._runner.server, sock=self._socket, ssl=context, **_HANG_UP)

    async def _end(self) -> None:
        self._socket.close()
        await self._runner.cleanup()
        await asyncio.sleep(_GOODBYE)

    async def _handle(self, incoming: web.Request) -> web.StreamResponse:
        request = Request(incoming.method, incoming.path, dict(incoming.query), await incoming.read())
        self.log.append(request)
        fault = next((fault for fault in self.faults if fault.operation == request.operation), None)
        if fault is not None:
            self.faults.remove(fault)
        answer: Answer | None = None
        if fault is None or fault.after:
            # A test's tables may come from a replicator that reads files: not in the loop.
            answer = await asyncio.to_thread(self._answered, request, incoming.headers.get("Authorization", ""))
        answer = fault.answer if fault is not None else answer
        if answer is None:
            assert incoming.transport is not None
            incoming.transport.abort()
            return web.Response()
        body = None if answer.document is None else json.dumps(answer.document).encode()
        headers = {"Content-Type": "application/json", **answer.headers}
        return web.Response(status=answer.status, headers=headers, body=body)

    def _answered(self, request: Request, authorization: str) -> Answer:
        if not self.entra.accepts(authorization.removeprefix("Bearer "), AUDIENCE):
            challenge = {"WWW-Authenticate": f'Bearer authorization_uri="{AUDIENCE}"'}
            return Answer.refusal(401, "Unauthorized", "The token is not good here.", **challenge)
        return self.interface.perform(request)
