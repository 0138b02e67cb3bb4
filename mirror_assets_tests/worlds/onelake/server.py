"""A OneLake on this machine."""

from __future__ import annotations

import itertools
import uuid
from pathlib import Path
from typing import Any

from aiohttp import web
from azure.identity import ClientSecretCredential
from azure.storage.filedatalake import DataLakeServiceClient

from mirror_assets.lakes.azure_identity import CredentialKind, abfs_settings, onelake_settings
from mirror_assets_tests.worlds.onelake.certificates import TRUSTSTORE_PASSWORD
from mirror_assets_tests.worlds.onelake.entra import Entra, Principal
from mirror_assets_tests.worlds.onelake.faults import Faults
from mirror_assets_tests.worlds.onelake.item import LoopbackItem
from mirror_assets_tests.worlds.onelake.listener import Listener, RequestLog
from mirror_assets_tests.worlds.onelake.storage import Storage, no_watch
from mirror_assets_tests.worlds.onelake.tls import LoopbackServer


class LoopbackOneLake(LoopbackServer):
    """Storage and Entra on one port: its URL is the endpoint of the one and the authority of the other's tokens.

    Data is in memory.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(folder, port)
        self._names = itertools.count(1)
        self.entra, self.faults, self.log = Entra(Principal()), Faults(), RequestLog()
        self.storage = Storage(self.entra, self.url)

    def application(self) -> web.Application:
        return Listener(self.storage, self.entra, self.url, self.faults, self.log).application()

    @property
    def principal(self) -> Principal:
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
        host = self.url.removeprefix("https://")
        abfs = onelake_settings(host) | abfs_settings(host, CredentialKind.CLIENT_SECRET)
        trust = {"": self.truststore, "Type": "PKCS12", "Password": TRUSTSTORE_PASSWORD}
        options = " ".join(f"-Djavax.net.ssl.trustStore{name}={value}" for name, value in trust.items())
        return {f"spark.hadoop.{name}": value for name, value in abfs.items()} | {
            "spark.driver.extraJavaOptions": options
        }

    def shared_access_signature(self) -> str:
        """A signature that may read everything, taken until the next reset."""
        self.storage.signature = uuid.uuid4().hex
        return f"sv=2024-08-04&sr=d&sp=rl&se=2099-01-01T00%3A00%3A00Z&sig={self.storage.signature}"

    def new_item(self) -> LoopbackItem:
        """A new mirrored database, in a workspace of its own."""
        number = next(self._names)
        with self.storage.lock:
            workspace = self.storage.account.add_workspace(f"workspace-{number}")
            item = self.storage.account.add_item(workspace, f"mirror-{number}.MirroredDatabase")
        return LoopbackItem(self.storage, self.url, workspace, item)

    def item(self, workspace: str, guid: str) -> LoopbackItem:
        """An item that was made before."""
        place = self.storage.account.place(f"/{workspace}/{guid}")
        assert place.workspace is not None
        assert place.item is not None
        return LoopbackItem(self.storage, self.url, place.workspace, place.item)

    def reset(self) -> None:
        """Forget faults, log and watch, and go back to usual tokens and pages; items stay."""
        self.faults.clear()
        self.log.reset()
        self.entra.lifetime, self.storage.page_size, self.storage.watch = 3600.0, 5000, no_watch
        self.storage.signature = None
