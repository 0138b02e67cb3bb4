"""A OneLake on this machine, in a thread of the process that wants it."""

from __future__ import annotations

import asyncio
import itertools
import socket
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web
from azure.identity import ClientSecretCredential
from azure.storage.filedatalake import DataLakeServiceClient

from mirror_assets.storage.credentials import CredentialKind
from mirror_assets.storage.onelake.abfs import abfs_settings
from mirror_assets.storage.onelake.address import OneLakeAddress
from mirror_assets_tests.onelake.certificates import TRUSTSTORE_PASSWORD, Authority
from mirror_assets_tests.onelake.entra import Entra, Principal
from mirror_assets_tests.onelake.faults import Faults
from mirror_assets_tests.onelake.item import LoopbackItem
from mirror_assets_tests.onelake.listener import Listener
from mirror_assets_tests.onelake.log import RequestLog
from mirror_assets_tests.onelake.storage import Storage, nobody

_PATIENCE = 30
_GOODBYE = 0.05  # connections need some turns of the loop to close
# From Python 3.11 on, a client that ends its connection without a word would keep the server's side open for 30 s.
_HANG_UP: dict[str, Any] = {"ssl_shutdown_timeout": _GOODBYE / 2} if sys.version_info >= (3, 11) else {}


class LoopbackOneLake:
    """Storage and Entra on one port of 127.0.0.1, over TLS; `with` starts and stops it.

    `folder` gets the certificate that clients have to trust. Port 0 is any that is free. Data is in memory.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self._authority = Authority(folder)
        self._names = itertools.count(1)
        self.entra, self.faults, self.log = Entra(Principal()), Faults(), RequestLog()
        self.storage = Storage(self.entra, self.url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopback OneLake", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens: the endpoint of the storage, and the authority of its tokens."""
        return f"https://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def ca(self) -> Path:
        """The certificate to trust, as a PEM file."""
        return self._authority.ca

    @property
    def truststore(self) -> Path:
        """The certificate to trust, as a PKCS12 store for the JVM; made by keytool when first asked for."""
        return self._authority.truststore()

    @property
    def principal(self) -> Principal:
        """Who may sign in."""
        return self.entra.principal

    def credential(self, secret: str | None = None) -> ClientSecretCredential:
        """The real credential of azure-identity for the principal, by default with its right secret."""
        return ClientSecretCredential(
            self.principal.tenant,
            self.principal.client,
            secret or self.principal.secret,
            authority=self.url,
            disable_instance_discovery=True,
            connection_verify=str(self.ca),
        )

    def service(self, **options: object) -> DataLakeServiceClient:
        """The SDK's client, signed in as the principal; it retries nothing unless `options` say so."""
        settings: dict[str, Any] = {
            "credential": self.credential(),
            "connection_verify": str(self.ca),
            "retry_total": 0,
        }
        return DataLakeServiceClient(self.url, **{**settings, **options})

    def environment(self) -> dict[str, str]:
        """The environment variables from which azure-identity takes the principal."""
        return {
            "AZURE_TENANT_ID": self.principal.tenant,
            "AZURE_CLIENT_ID": self.principal.client,
            "AZURE_CLIENT_SECRET": self.principal.secret,
            "AZURE_AUTHORITY_HOST": self.url,
        }

    def spark_settings(self) -> dict[str, str]:
        """What a Spark session needs to use the server; its JVM has to start with `environment()`."""
        address = OneLakeAddress.parse(self.new_item().url)
        trust = {"": self.truststore, "Type": "PKCS12", "Password": TRUSTSTORE_PASSWORD}
        options = " ".join(f"-Djavax.net.ssl.trustStore{name}={value}" for name, value in trust.items())
        return abfs_settings(address, CredentialKind.CLIENT_SECRET) | {"spark.driver.extraJavaOptions": options}

    def new_item(self) -> LoopbackItem:
        """A new mirrored database, in a workspace of its own."""
        number = next(self._names)
        with self.storage.lock:
            workspace = self.storage.account.add_workspace(f"workspace-{number}")
            item = self.storage.account.add_item(workspace, f"mirror-{number}.MirroredDatabase")
        return LoopbackItem(self.storage, self.url, workspace, item)

    def reset(self) -> None:
        """Forget faults, log and watch, and go back to usual tokens and pages; items stay."""
        self.faults.clear()
        self.log.reset()
        self.entra.lifetime, self.storage.page_size, self.storage.watch = 3600.0, 5000, nobody

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(_PATIENCE)

    def stop(self) -> None:
        """End all connections, and the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()

    def __enter__(self) -> LoopbackOneLake:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _serve(self) -> None:
        listener = Listener(self.storage, self.entra, self.url, self.faults, self.log)
        self._runner = web.AppRunner(listener.application(), access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        assert self._runner.server is not None  # it is there from the set-up on
        context = self._authority.server_context()
        await self._loop.create_server(self._runner.server, sock=self._socket, ssl=context, **_HANG_UP)

    async def _end(self) -> None:
        self._socket.close()
        await self._runner.cleanup()
        await asyncio.sleep(_GOODBYE)
