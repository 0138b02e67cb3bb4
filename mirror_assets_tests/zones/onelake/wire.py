"""The real SDK over a wire that is a function: what it sends goes in, what it shall receive comes out."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import ContainerClient
from azure.storage.filedatalake import FileSystemClient
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from mirror_assets.zones.onelake.clients import Clients
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets.zones.onelake.requests import RetryPolicy

ADDRESS = OneLakeAddress("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002")
TOKEN = "planted-token-that-nobody-may-see"  # noqa: S105 that is the point


class Clock:
    """A time that passes while somebody sleeps, and jumps when a test says so; `slept` is every pause."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def read(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        self.slept.append(seconds)
        self.now += seconds

    def policy(self, limit_seconds: float = 120.0) -> RetryPolicy:
        """RetryPolicy by this clock, without chance."""
        return RetryPolicy(limit_seconds, clock=self.read, sleep=self.sleep, jitter=lambda: 1.0)


@dataclass(frozen=True)
class Reply:
    """What comes back."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class _Answer:
    """As much of an answer as an error keeps."""

    reason = "reason"

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.status_code, self.headers = status, headers


def refused(status: int, code: str = "", headers: Mapping[str, str] | None = None) -> HttpResponseError:
    """The SDK's error over an answer."""
    answer = _Answer(status, {"x-ms-error-code": code, **(headers or {})})
    return HttpResponseError(response=answer)  # type: ignore[arg-type]  # it needs no more


Wire = Callable[[PreparedRequest], Reply]


class _Adapter(HTTPAdapter):
    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def send(self, request: PreparedRequest, *_: object, **__: object) -> Response:
        reply = self._wire(request)
        raw = HTTPResponse(io.BytesIO(reply.body), reply.headers, reply.status, preload_content=False)
        return self.build_response(request, raw)


class _Credential:
    def get_token(self, *_: str, **__: object) -> AccessToken:
        return AccessToken(TOKEN, 1 << 40)


def store_over(wire: Wire, policy: RetryPolicy | None = None) -> OneLakeStore:
    """The product's store, whose SDK talks to the wire."""
    session = Session()
    session.mount("https://", _Adapter(wire))
    settings: dict[str, Any] = {
        "credential": _Credential(),
        "retry_total": 0,
        "transport": RequestsTransport(session=session, session_owner=False),
    }
    files = FileSystemClient(ADDRESS.endpoint, ADDRESS.workspace, **settings)
    blobs = ContainerClient(ADDRESS.blob_endpoint, ADDRESS.workspace, **settings)
    return OneLakeStore(Clients(ADDRESS, files, blobs), policy or Clock().policy())
