"""Serves azure-identity's tokens to Spark on this machine, for credentials that Hadoop doesn't support.

Hadoop's file system for Azure requests tokens from a managed identity's endpoint, and again before they expire. This
server answers for the credentials `default` and `certificate`. It listens on this machine only, and its address, which
is in the environment of the process and of its JVM, contains a secret.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mirror_assets.storage.credentials import CredentialKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.server import BaseHTTPRequestHandler

    from azure.core.credentials import AccessToken

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
