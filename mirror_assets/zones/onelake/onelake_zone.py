"""A landing zone on OneLake: its address, a folder of a Fabric item by GUIDs, and its settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, model_validator
from typing_extensions import Self

from mirror_assets.lakes.azure_identity import (
    HADOOP_AZURE,
    CredentialKind,
    abfs_settings,
    credential_of,
    onelake_settings,
)
from mirror_assets.settings import Folder, Section, Text
from mirror_assets.zones.local import LocalStore
from mirror_assets.zones.onelake.pasted_url import ENDPOINT, GUID, LANDING_ZONE, read_url
from mirror_assets.zones.store import SparkReach, Store

if TYPE_CHECKING:
    from mirror_assets.zones.probe import ResponseRecorder

_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")
# How long `doctor` repeats a request: a person waits for it.
_PROBE_SECONDS = 20.0
# Hadoop's driver would read with the machine's managed identity instead.
_NOT_IN_HADOOP = (CredentialKind.DEFAULT, CredentialKind.CERTIFICATE)


@dataclass(frozen=True)
class OneLakeAddress:
    """A folder of an item. Workspace and item are GUIDs, because names break after a rename, or mixed with a GUID."""

    workspace: str
    item: str
    endpoint: str = ENDPOINT
    folder: str = LANDING_ZONE

    def __post_init__(self) -> None:
        """Require GUIDs and an https endpoint. Raises ValueError."""
        for what, text in (("workspace", self.workspace), ("item", self.item)):
            if not GUID.fullmatch(text):
                raise ValueError(f"expected the {what}'s GUID in small letters, got {text!r}")
        parts = urlsplit(self.endpoint)
        if parts.scheme != "https" or not _HOST.fullmatch(parts.netloc) or self.endpoint != f"https://{parts.netloc}":
            raise ValueError(f"expected an endpoint such as {ENDPOINT}, got {_shown(parts)!r}")

    @classmethod
    def parse(cls, url: str) -> OneLakeAddress:
        """Parse a URL as people paste it: see `read_url`. Raises ValueError with the URL to write."""
        endpoint, workspace, item = read_url(url)
        return cls(workspace, item, endpoint)

    @property
    def host(self) -> str:
        """The endpoint's host, with its port if it has one."""
        return urlsplit(self.endpoint).netloc

    @property
    def blob_endpoint(self) -> str:
        """The endpoint of the blob interface, which the SDK reads through; firewalls must admit both."""
        return f"https://{self.host.replace('.dfs.', '.blob.', 1)}"

    @property
    def url(self) -> str:
        """The folder's URL, for messages and links."""
        return f"https://{self.host}/{self.workspace}/{self.item}/{self.folder}"

    @property
    def abfss(self) -> str:
        """The folder as Spark names it."""
        return f"abfss://{self.workspace}@{self.host}/{self.item}/{self.folder}"

    def within_workspace(self, path: str) -> str:
        """Return a path below the folder, from the workspace on; "" is the folder itself."""
        return f"{self.item}/{self.folder}/{path}" if path else f"{self.item}/{self.folder}"

    def relative(self, found: str) -> str:
        """Return the path below the folder of a name in a listing."""
        return found.removeprefix(f"{self.item}/{self.folder}/")


def _shown(url: SplitResult) -> str:
    """Return the URL without parts that may be secret: a user before the host, a signature after the path."""
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()


class Staging(str, Enum):
    """The process that writes the staged parts: Spark itself, or this process, which uploads Spark's files."""

    DIRECT = "direct"
    UPLOAD = "upload"


class OneLakeIdentity(Section):
    """The identity and the CAs with which OneLake and Fabric's REST API are reached."""

    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description="How to obtain a token.")
    ca_bundle: Folder | None = Field(default=None, description="PEM bundle of CAs to trust; null: the default ones.")


class OneLakeConfig(OneLakeIdentity):
    """A landing zone on OneLake."""

    url: Text = Field(description="URL of the landing zone, or of its page in the portal.")
    staging: Staging = Field(default=Staging.UPLOAD, description="Which process writes the staged parts.")
    staging_path: Folder = Field(
        default=Path("./staging"), validate_default=True, description="Folder for `staging: upload`."
    )
    api_version: Text | None = Field(default=None, description="`x-ms-version` to send; null: the SDK's newest.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        reach = spark_reach(self.address, self.credential)  # raises ValueError for an invalid URL
        if self.staging is Staging.DIRECT and reach is None:
            raise ValueError(
                f"Spark can't use the credential `{self.credential.value}`; set client_secret, managed_identity or "
                "workload_identity, or `staging: upload`"
            )
        return self

    @property
    def address(self) -> OneLakeAddress:
        """The landing zone's address."""
        return OneLakeAddress.parse(self.url)

    @property
    def root(self) -> str:
        """The folder's URL."""
        return self.address.url

    @property
    def uri(self) -> str:
        """The folder's abfss URI."""
        return self.address.abfss

    @property
    def is_metered(self) -> bool:
        """True: requests use the capacity of the workspace."""
        return True

    @property
    def spark_reach(self) -> SparkReach | None:
        """The identity's settings for `staging: direct`."""
        return spark_reach(self.address, self.credential) if self.staging is Staging.DIRECT else None

    def open(self, recorder: ResponseRecorder | None = None, *, is_brief: bool = False) -> Store:
        """Return the folder's store; all stores of the process for these settings share their clients.

        It makes no request yet; `recorder` records the responses for `doctor`. Its requests, and with `is_brief` those
        of other commands for which a person waits, are repeated for less time. Raises SettingError for missing
        credentials, and for an API version that can't be used.
        """
        from mirror_assets.zones.onelake.clients import open_clients, shared_clients
        from mirror_assets.zones.onelake.onelake_store import OneLakeStore
        from mirror_assets.zones.onelake.requests import RetryPolicy

        if recorder is None:
            shared = shared_clients(self.address, self.credential, self.api_version, self.ca_bundle)
            return OneLakeStore(shared, RetryPolicy(_PROBE_SECONDS) if is_brief else None)
        credential = credential_of(self.credential, self.ca_bundle)
        clients = open_clients(self.address, credential, self.api_version, self.ca_bundle, recorder)
        return OneLakeStore(clients, RetryPolicy(_PROBE_SECONDS))

    def local_staging(self) -> LocalStore | None:
        """Return the folder for `staging: upload`.

        Each landing zone has its own: a publisher deletes outdated attempts by the manifests of its own zone.
        """
        return LocalStore(self.staging_path / self.address.item) if self.staging is Staging.UPLOAD else None


def spark_reach(address: OneLakeAddress, credential: CredentialKind) -> SparkReach | None:
    """Return how Spark reaches the folders of the address's workspace; None if it can't use this credential."""
    if credential in _NOT_IN_HADOOP:
        return None
    identity = abfs_settings(address.host, credential, address.workspace)
    return SparkReach(onelake_settings(address.host) | identity, (HADOOP_AZURE,))
