"""Containers of Azure Storage, and workspaces of OneLake; tokens for Spark on this machine."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mirror_assets.lakes.azure_identity import (
    HADOOP_AZURE,
    CredentialKind,
    abfs_settings,
    credential_of,
    named,
    oauth_settings,
    onelake_settings,
    variable,
)
from mirror_assets.lakes.errors import CREDENTIAL_INCOMPLETE, token_refused
from mirror_assets.lakes.lake_store import LakeAddress, LakeStore, prefixed

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.server import BaseHTTPRequestHandler

    from azure.core.credentials import AccessToken, TokenCredential

SAS_TOKEN, STORAGE_TOKEN = "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_TOKEN"
_SOON_SECONDS = 600
_AUDIENCE = "https://storage.azure.com/.default"
# Hosts for which deltalake derives the endpoint from the name.
_KNOWN_HOSTS = (".core.windows.net", ".fabric.microsoft.com")
_ONELAKE = ".fabric.microsoft.com"

# Hadoop would try thirty times, for some ten minutes. A slice that fails is retried after a pause.
_PATIENCE = {"io.retry.max.retries": "5"}


class AzureCredential(str, Enum):
    """The identity that reads a container. `default` tries several ones: for development, not for production."""

    DEFAULT = "default"
    MANAGED_IDENTITY = "managed_identity"
    CLIENT_SECRET = "client_secret"  # noqa: S105 a kind
    WORKLOAD_IDENTITY = "workload_identity"
    CERTIFICATE = "certificate"
    SAS = "sas"


@dataclass(frozen=True)
class AzureStore(LakeStore):
    """A container of a storage account, a workspace of OneLake, or a folder of one.

    `endpoint` replaces the account's own address, such as a server of this machine. `env_prefix` is the prefix of the
    environment variables, for a second tenant.
    """

    credential: AzureCredential = AzureCredential.DEFAULT
    endpoint: str | None = None
    env_prefix: str = ""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)

    packages = (HADOOP_AZURE,)

    def delta_uri(self, address: LakeAddress) -> str:
        """Return the address; without the host if deltalake doesn't know it, because it then gets the endpoint."""
        if self._is_known:
            return address.uri
        return f"abfs://{address.container}/{address.path}"

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options, with a token that is valid now.

        One credential of the process fetches tokens: deltalake would fetch one for each table that it opens. Raises
        CREDENTIAL_INCOMPLETE, CREDENTIAL_UNFIT and token_refused.
        """
        endpoint = None if self._is_known else f"https://{self.root.host}"
        options = {
            "azure_storage_account_name": self.root.host.partition(".")[0],
            "azure_endpoint": self.endpoint or endpoint,
            **self._secret(),
        }
        return {name: value for name, value in options.items() if value}

    def hadoop_settings(self) -> dict[str, str]:
        """Return Hadoop's settings of this container's identity, and of its account."""
        host, container = self.root.host, self.root.container
        about = named(_PATIENCE, host) | (onelake_settings(host) if host.endswith(_ONELAKE) else {})
        if self.credential is AzureCredential.SAS:
            token = named({"sas.fixed.token": variable(self.env_prefix + SAS_TOKEN)}, f"{container}.{host}")
            return about | named({"account.auth.type": "SAS"}, host) | token
        kind = CredentialKind(self.credential.value)
        if kind in (CredentialKind.DEFAULT, CredentialKind.CERTIFICATE):
            endpoint = token_endpoint(kind, self.env_prefix)
            return about | oauth_settings(
                host, container, "MsiTokenProvider", {"msi.endpoint": endpoint, "msi.tenant": "any"}
            )
        return about | abfs_settings(host, kind, container, self.env_prefix)

    def with_keys(self, variables: Mapping[str, str]) -> AzureStore:
        """Return the store with a vended SAS."""
        known = {self.env_prefix + name: value for name, value in variables.items()}
        return replace(self, credential=AzureCredential.SAS, environment=known)

    def own_names(self) -> dict[str, str]:
        """Return the settings of the identity by account."""
        names = ("account.auth.type", "sas.token.provider.type", "account.hns.enabled")
        return {f"fs.azure.{name}": f"fs.azure.{name}.{self.root.host}" for name in names}

    @property
    def _is_known(self) -> bool:
        return self.root.host.endswith(_KNOWN_HOSTS)

    def _secret(self) -> dict[str, str]:
        if self.credential is AzureCredential.SAS:
            name = self.env_prefix + SAS_TOKEN
            if not self.environment.get(name):
                raise CREDENTIAL_INCOMPLETE(kind=self.credential.value, missing=(name,))
            return {"azure_storage_sas_key": self.environment[name]}
        from azure.core.exceptions import ClientAuthenticationError

        try:
            token = storage_token(CredentialKind(self.credential.value), self.env_prefix).token
        except ClientAuthenticationError as error:
            raise token_refused(self.root.uri, error.message) from error
        return {"azure_storage_token": token}


def storage_token(kind: CredentialKind, env_prefix: str) -> AccessToken:
    """Return a token for storage that is valid now; one credential of the process fetches and caches tokens.

    For `default`, a token in the environment comes first, such as that of a Fabric notebook. Raises
    CREDENTIAL_INCOMPLETE, CREDENTIAL_UNFIT and azure-identity's errors.
    """
    given = os.environ.get(STORAGE_TOKEN) if kind is CredentialKind.DEFAULT else None
    if given:
        from azure.core.credentials import AccessToken

        # Its expiry is unknown, so callers fetch it again soon.
        return AccessToken(given, int(time.time()) + _SOON_SECONDS)
    return _shared(kind, env_prefix).get_token(_AUDIENCE)


@cache
def _shared(kind: CredentialKind, env_prefix: str) -> TokenCredential:
    # The file of authorities that deltalake trusts also.
    trusted = os.environ.get("SSL_CERT_FILE")
    return credential_of(kind, Path(trusted) if trusted else None, prefixed(env_prefix, os.environ))


VARIABLE = "MIRROR_ASSETS_TOKENS"
_STARTING = threading.Lock()
_NO_PREFIX = "-"


def token_endpoint(kind: CredentialKind, env_prefix: str) -> str:
    """Return the endpoint of a credential as a Hadoop setting; the server's address is in the environment."""
    return f"${{env.{VARIABLE}}}/{kind.value}/{env_prefix or _NO_PREFIX}"


def start_token_server(token: Callable[[CredentialKind, str], AccessToken]) -> None:
    """Start the process's only server, before its JVM; `token` gets a token of a kind, with a prefix of variables."""
    with _STARTING:
        if VARIABLE in os.environ:
            return
        from http.server import ThreadingHTTPServer  # few processes need it

        secret = secrets.token_urlsafe(32)
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(secret, token))
        threading.Thread(target=server.serve_forever, name="tokens for Spark", daemon=True).start()
        os.environ[VARIABLE] = f"http://127.0.0.1:{server.server_port}/{secret}"


def _handler(secret: str, token: Callable[[CredentialKind, str], AccessToken]) -> type[BaseHTTPRequestHandler]:
    from http.server import BaseHTTPRequestHandler

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path).path.strip("/").split("/")
            if len(asked) != 3 or not secrets.compare_digest(asked[0].encode(), secret.encode()):
                self._answer(404, {"error": "unknown"})
                return
            try:
                got = token(CredentialKind(asked[1]), "" if asked[2] == _NO_PREFIX else asked[2])
            except Exception as error:  # noqa: BLE001 the client gets any error
                self._answer(400, {"error": type(error).__name__, "error_description": str(error)})
                return
            reply = {"access_token": got.token, "expires_on": str(got.expires_on), "token_type": "Bearer"}
            self._answer(200, reply)

        def _answer(self, status: int, reply: dict[str, str]) -> None:
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Log nothing: the path is secret."""

    return Handler
