"""HTTP in front of the storage and of Entra: reads requests, lets faults happen, sends answers, keeps the log."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import parse_qsl
from xml.sax.saxutils import unescape

from aiohttp import web

from mirror_assets_tests.worlds.onelake.entra import Entra
from mirror_assets_tests.worlds.onelake.faults import (
    Call,
    CutBody,
    Delay,
    Drop,
    Fault,
    Faults,
    Garble,
    Held,
    Hold,
    Lag,
    Moment,
    Reply,
)
from mirror_assets_tests.worlds.onelake.messages import Answer, Operation, Refusal, Request, operation_of
from mirror_assets_tests.worlds.onelake.storage import Storage, common_headers

_Action = TypeVar("_Action")
_BODY_LIMIT = 1 << 40
_BLOB = re.compile(r"<Blob><Name>(.*?)</Name>.*?</Blob>")


@dataclass(frozen=True)
class Record:
    """One request; `status` is None when it got no answer, and `path` is the one below the item."""

    operation: Operation
    method: str
    path: str
    status: int | None
    bytes_in: int
    bytes_out: int
    faults: tuple[Fault, ...] = ()


class RequestLog:
    """Every request since the last reset, by the order of their ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: list[Record] = []

    def add(self, record: Record) -> None:
        with self._lock:
            self._records.append(record)

    def reset(self) -> None:
        with self._lock:
            self._records = []

    @property
    def records(self) -> tuple[Record, ...]:
        with self._lock:
            return tuple(self._records)

    @property
    def storage(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.operation.is_storage)

    def counts(self, path: str = "*") -> Counter[Operation]:
        """How many requests of each kind went to OneLake, for paths that the pattern fits."""
        return Counter(r.operation for r in self.storage if fnmatch.fnmatchcase(r.path, path))


class Listener:
    """The application that a server runs."""

    def __init__(self, storage: Storage, entra: Entra, base: str, faults: Faults, log: RequestLog) -> None:
        self._storage, self._entra, self._base = storage, entra, base
        self._faults, self._log = faults, log

    def application(self) -> web.Application:
        """The application, which takes any method and path."""
        made = web.Application(client_max_size=_BODY_LIMIT)
        made.router.add_route("*", "/{path:.*}", self._handle)
        return made

    async def _handle(self, incoming: web.Request) -> web.StreamResponse:
        request = self._request(incoming)
        try:
            request = replace(request, body=await incoming.read())
        except ConnectionError:  # the body was cut: its sender has disconnected
            self._log.add(_record(request, None))
            return _hang_up(incoming)
        faults = self._faults.meet(request)
        answer = await self._answer(request, faults)
        self._log.add(_record(request, answer, faults))
        if answer is None:
            return _hang_up(incoming)
        return await _send(incoming, answer, next(_of(CutBody, faults), None))

    def _request(self, incoming: web.Request) -> Request:
        method = incoming.headers.get("X-HTTP-Method-Override", incoming.method)
        url_path, query = incoming.rel_url.raw_path, dict(parse_qsl(incoming.rel_url.raw_query_string))
        operation = operation_of(method, url_path, query, incoming.headers)
        folder = f"/{query.get('directory', '')}" if operation is Operation.LIST else ""
        path = self._storage.path_of(url_path + folder) if operation.is_storage else ""
        return Request(method, url_path, query, incoming.headers, b"", operation, path)

    async def _answer(self, request: Request, faults: tuple[Fault, ...]) -> Answer | None:
        """The answer, or None when the connection shall end without one."""
        await _pause(request, faults, Moment.BEFORE)
        if any(_of(Hold, faults)):
            self._faults.hold(Held(request, self._late))
            return None
        ended, answer = _ending(request, faults, Moment.BEFORE)
        if ended:
            return answer
        answer = self._perform(request)
        await _pause(request, faults, Moment.AFTER)
        ended, instead = _ending(request, faults, Moment.AFTER)
        for lag in _of(Lag, faults):
            answer = replace(answer, body=_without_names(answer.body, lag.names))
        return instead if ended else _garbled(answer, next(_of(Garble, faults), None))

    def _perform(self, request: Request) -> Answer:
        if request.operation.is_storage:
            return self._storage.perform(request)
        return self._entra.perform(request, self._base)

    def _late(self, request: Request) -> Answer:
        answer = self._perform(request)
        self._log.add(_record(request, answer))
        return answer


def _of(kind: type[_Action], faults: Iterable[Fault]) -> Iterator[_Action]:
    return (fault.action for fault in faults if isinstance(fault.action, kind))


async def _pause(request: Request, faults: tuple[Fault, ...], moment: Moment) -> None:
    for fault in faults:
        action = fault.action
        if isinstance(action, Delay) and action.moment is moment:
            await asyncio.sleep(action.seconds)
        if isinstance(action, Call) and action.moment is moment:
            await asyncio.to_thread(action.function, request)


def _ending(request: Request, faults: tuple[Fault, ...], moment: Moment) -> tuple[bool, Answer | None]:
    """Whether a fault ends the request on this side of its effect, and the answer that it then gives."""
    for fault in faults:
        action = fault.action
        if isinstance(action, Drop) and action.moment is moment:
            return True, None
        if isinstance(action, Reply) and action.moment is moment:
            return True, _instead(request, action)
    return False, None


def _instead(request: Request, reply: Reply) -> Answer:
    if reply.status < 400:
        return Answer(reply.status, {**reply.headers, **common_headers(request)})
    headers = {**reply.headers, **common_headers(request)}
    return Refusal(reply.status, reply.code, "The test wants it so.", headers).answer(request)


def _garbled(answer: Answer, garble: Garble | None) -> Answer:
    if garble is None:
        return answer
    body = answer.body if garble.body is None else garble.body
    return Answer(answer.status, {**answer.headers, **garble.headers}, body)


def _record(request: Request, answer: Answer | None, faults: tuple[Fault, ...] = ()) -> Record:
    status, sent = (answer.status, len(answer.body)) if answer else (None, 0)
    return Record(request.operation, request.method, request.path, status, len(request.body), sent, faults)


def _hang_up(incoming: web.Request) -> web.Response:
    if incoming.transport is not None:
        incoming.transport.abort()
    return web.Response()


async def _send(incoming: web.Request, answer: Answer, cut: CutBody | None) -> web.StreamResponse:
    if cut is None or not answer.body:
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body or None)
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_length = len(answer.body)
    await response.prepare(incoming)
    await response.write(answer.body[: int(len(answer.body) * cut.share)])
    if incoming.transport is not None:
        incoming.transport.close()  # not abort, which may take back what was sent
    return response


def _without_names(body: bytes, pattern: str) -> bytes:
    """Return the answer's body without the paths that the pattern fits."""
    text = body.decode()
    if not text.startswith("{"):
        return _BLOB.sub(lambda blob: "" if fnmatch.fnmatchcase(unescape(blob[1]), pattern) else blob[0], text).encode()
    listed = json.loads(text)
    kept = [path for path in listed["paths"] if not fnmatch.fnmatchcase(path["name"], pattern)]
    return json.dumps({**listed, "paths": kept}).encode()
