"""Requests that no SDK would send."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from urllib.parse import urlsplit

from mirror_assets_tests.worlds.onelake.entra import STORAGE
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake


@dataclass(frozen=True)
class RawAnswer:
    """What came back."""

    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Mapping[str, object]:
        """The body as a JSON object."""
        document: Mapping[str, object] = json.loads(self.body)
        return document

    @property
    def refused(self) -> tuple[int, str]:
        """The status and the service's code."""
        return self.status, self.headers.get("x-ms-error-code", "")


def connect(server: LoopbackOneLake) -> http.client.HTTPSConnection:
    """A connection of one's own."""
    context = ssl.create_default_context(cafile=str(server.ca))
    return http.client.HTTPSConnection(urlsplit(server.url).netloc, context=context, timeout=10)


def signed_in(server: LoopbackOneLake) -> dict[str, str]:
    """The header of a request by the principal."""
    return {"Authorization": f"Bearer {server.credential().get_token(f'{STORAGE}/.default').token}"}


def ask(
    server: LoopbackOneLake, method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> RawAnswer:
    """The answer to one request."""
    connection = connect(server)
    try:
        connection.request(method, target, body, dict(headers or {}))
        answer = connection.getresponse()
        return RawAnswer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()
