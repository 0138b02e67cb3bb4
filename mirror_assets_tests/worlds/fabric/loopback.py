"""A Fabric on this machine: the interface over TLS, for real tokens only, with faults and a log of requests."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from mirror_assets_tests.worlds.fabric.interface import Answer, Interface, Request
from mirror_assets_tests.worlds.onelake.entra import Entra
from mirror_assets_tests.worlds.onelake.tls import LoopbackServer

AUDIENCE = "https://api.fabric.microsoft.com"


@dataclass(frozen=True)
class Fault:
    """What happens to the next request of an operation: another answer, or none, before or after its effect."""

    operation: str
    answer: Answer | None = None
    after: bool = False


class LoopbackFabric(LoopbackServer):
    """The interface; `entra` knows the tokens that are good."""

    def __init__(self, folder: Path, entra: Entra) -> None:
        super().__init__(folder)
        self._entra = entra
        self.faults: list[Fault] = []
        self.log: list[Request] = []
        self.interface = Interface(self.url)

    def reset(self) -> None:
        """An empty workspace without faults, and an empty log."""
        self.faults.clear()
        self.log.clear()
        self.interface = Interface(self.url)

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_route("*", "/{path:.*}", self._handle)
        return made

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
        if not self._entra.accepts(authorization.removeprefix("Bearer "), AUDIENCE):
            challenge = {"WWW-Authenticate": f'Bearer authorization_uri="{AUDIENCE}"'}
            return Answer.refusal(401, "Unauthorized", "The token is not good here.", **challenge)
        return self.interface.perform(request)
