"""The SDK's clients for one landing zone: one connection pool, one token cache, no retries by the SDK."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core.credentials import TokenCredential
from azure.core.pipeline import PipelineResponse
from azure.core.rest import HttpRequest, HttpResponse
from azure.storage.blob import BlobClient, ContainerClient
from azure.storage.filedatalake import DataLakeDirectoryClient, DataLakeFileClient, FileSystemClient

from mirror_assets.lakes.azure_identity import CredentialKind, credential_of
from mirror_assets.telemetry.record import count_request
from mirror_assets.zones.errors import API_VERSION_REFUSED
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets.zones.onelake.pasted_url import LANDING_ZONE

# A file of up to this size takes one request; ranges of larger ones are read in pieces of `_PIECE`.
SMALL = 1 << 20
_PIECE = 16 << 20
_SETTINGS = {"retry_total": 0, "user_agent": "mirror_assets", "connection_timeout": 20, "read_timeout": 60}


@dataclass(frozen=True)
class Clients:
    """The SDK's two clients of one landing zone: for files and folders (dfs), and for whole blobs (blob)."""

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

    def item_files(self) -> BlobClient:
        """The client of the item's `Files` folder, which exists as long as the item does."""
        return self.blobs.get_blob_client(f"{self.address.item}/{LANDING_ZONE.partition('/')[0]}")


@cache
def shared_clients(
    address: OneLakeAddress, kind: CredentialKind, api_version: str | None, ca_bundle: Path | None
) -> Clients:
    """Return this process's only clients for these settings. Raises CREDENTIAL_INCOMPLETE and API_VERSION_REFUSED."""
    return open_clients(address, credential_of(kind, ca_bundle), api_version, ca_bundle)


def open_clients(
    address: OneLakeAddress,
    credential: TokenCredential,
    api_version: str | None = None,
    ca_bundle: Path | None = None,
    hook: Callable[[PipelineResponse[HttpRequest, HttpResponse]], None] | None = None,
) -> Clients:
    """Return new clients, which always verify certificates, by `ca_bundle` if given. `hook` gets each answer."""

    def on_response(response: PipelineResponse[HttpRequest, HttpResponse]) -> None:
        # The metrics get host, method and status, but no URL, which names files.
        request, answer = response.http_request, response.http_response
        count_request(urlsplit(request.url).hostname or "", request.method, str(answer.status_code))
        if hook is not None:
            hook(response)

    settings: dict[str, Any] = {
        "credential": credential,
        "api_version": api_version,
        "connection_verify": str(ca_bundle) if ca_bundle else True,
        "raw_response_hook": on_response,
        **_SETTINGS,
    }
    try:
        files = FileSystemClient(address.endpoint, address.workspace, **settings)
        blobs = ContainerClient(
            address.blob_endpoint,
            address.workspace,
            max_single_get_size=SMALL,
            max_chunk_get_size=_PIECE,
            **settings,
        )
    except ValueError as error:
        raise API_VERSION_REFUSED(version=api_version or "", why=str(error).partition("\n")[0]) from error
    return Clients(address, files, blobs)


def unquoted(etag: str | None) -> str:
    """Return the ETag without quotes, as in listings and in our files."""
    return (etag or "").strip('"')


def quoted(etag: str) -> str:
    """Return the ETag in quotes, as in the conditions of a request."""
    return f'"{etag}"'
