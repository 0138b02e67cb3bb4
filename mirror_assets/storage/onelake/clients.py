"""The SDK's clients for one landing zone: one connection pool, one token cache, no retries of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from azure.core.credentials import TokenCredential
from azure.core.pipeline import PipelineResponse
from azure.core.rest import HttpRequest, HttpResponse
from azure.storage.blob import BlobClient, ContainerClient
from azure.storage.filedatalake import DataLakeDirectoryClient, DataLakeFileClient, FileSystemClient

from mirror_assets.storage.credentials import CredentialKind, credential_of
from mirror_assets.storage.errors import api_version_refused
from mirror_assets.storage.onelake.address import OneLakeAddress

# A file up to here comes with the first request for it; ranges of larger ones come in pieces of `_PIECE`.
SMALL = 1 << 20
_PIECE = 16 << 20
_SETTINGS: Final[dict[str, Any]] = {
    "retry_total": 0,
    "user_agent": "mirror_assets",
    "connection_timeout": 20,
    "read_timeout": 60,
}


@dataclass(frozen=True)
class Clients:
    """The two halves of the SDK: files and folders, and whole blobs, of which a landing zone's path names either."""

    address: OneLakeAddress
    files: FileSystemClient
    blobs: ContainerClient

    def file(self, path: str) -> DataLakeFileClient:
        """The client of a file."""
        return self.files.get_file_client(self.address.within_workspace(path))

    def folder(self, path: str) -> DataLakeDirectoryClient:
        """The client of a folder."""
        return self.files.get_directory_client(self.address.within_workspace(path))

    def blob(self, path: str) -> BlobClient:
        """The client of a file as a blob."""
        return self.blobs.get_blob_client(self.address.within_workspace(path))


@cache
def shared_clients(
    address: OneLakeAddress, kind: CredentialKind, api_version: str | None, ca_bundle: Path | None
) -> Clients:
    """The process's only clients for these settings. Raises CredentialIncomplete and api_version_refused."""
    return open_clients(address, credential_of(kind, ca_bundle), api_version, ca_bundle)


def open_clients(
    address: OneLakeAddress,
    credential: TokenCredential,
    api_version: str | None = None,
    ca_bundle: Path | None = None,
    hook: Callable[[PipelineResponse[HttpRequest, HttpResponse]], None] | None = None,
) -> Clients:
    """New clients. Certificates are always verified, against `ca_bundle` where there is one of one's own.

    `hook` sees every answer.
    """
    verify: str | bool = str(ca_bundle) if ca_bundle else True
    try:
        files = FileSystemClient(
            address.endpoint,
            address.workspace,
            credential,
            api_version=api_version,
            connection_verify=verify,
            raw_response_hook=hook,
            **_SETTINGS,
        )
        blobs = ContainerClient(
            address.blob_endpoint,
            address.workspace,
            credential,
            api_version=api_version,
            connection_verify=verify,
            max_single_get_size=SMALL,
            max_chunk_get_size=_PIECE,
            raw_response_hook=hook,
            **_SETTINGS,
        )
    except ValueError as error:
        raise api_version_refused(api_version or "", str(error)) from error
    return Clients(address, files, blobs)


def bare(etag: str | None) -> str:
    """The ETag as we keep it."""
    return (etag or "").strip('"')


def quoted(etag: str) -> str:
    """The ETag as a condition names it."""
    return f'"{etag}"'


_WAITING = ("Retry-After", "x-ms-retry-after-ms", "RateLimit-Remaining", "x-ms-ratelimit-remaining")


class ResponseRecorder:
    """Collects the answers of clients that have it as their hook."""

    def __init__(self) -> None:
        self._heard: list[str] = []
        self.versions: set[str] = set()

    def __call__(self, response: PipelineResponse[HttpRequest, HttpResponse]) -> None:
        """Keep what the answer says; nothing of it is secret."""
        answer, request = response.http_response, response.http_request
        code = answer.headers.get("x-ms-error-code", "")
        waiting = [f"{name}: {answer.headers[name]}" for name in _WAITING if name in answer.headers]
        self._heard.append(" ".join([request.method, str(answer.status_code), code, *waiting]).strip())
        if version := answer.headers.get("x-ms-version"):
            self.versions.add(version)

    def heard(self) -> str:
        """The answers since the last call, one after another."""
        told, self._heard = self._heard, []
        return ", ".join(told)
