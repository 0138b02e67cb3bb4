"""Where the landing zone, the mirrored tables and the histories are."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import BeforeValidator, Field, field_validator, model_validator
from typing_extensions import Self

from mirror_assets.config.setting_values import Address, Folder, SchemaName, Section, Text
from mirror_assets.fabric.database import DEFAULT_SCHEMA, PUBLIC_ENDPOINT, Workspace
from mirror_assets.storage.credentials import CredentialKind
from mirror_assets.storage.lake.address import Scheme
from mirror_assets.storage.onelake.address import OneLakeAddress

MIRROR_PATH, HISTORY_PATH, STAGING_PATH = "./mirror", "./history", "./staging"

_GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")
_ONE_DRIVER = (
    "on S3, Spark keeps commits apart only within one driver: two runs could replace each other's; write a folder of "
    "this machine, or an address abfss://, gs:// or hdfs://"
)
_CREDENTIAL_NEEDED = (
    "Spark can't use the credential `default`; name one (client_secret, managed_identity or workload_identity), "
    "or write `staging: upload`"
)


class Staging(str, Enum):
    """Who writes the staged parts: Spark itself, or this process, which uploads what Spark wrote elsewhere."""

    DIRECT = "direct"
    UPLOAD = "upload"


def _guid(value: object) -> object:
    if not isinstance(value, str) or not _GUID.fullmatch(value):
        raise ValueError(f"expected a GUID, as in the address of the item's page in the portal, got {value!r}")
    return value


def _endpoint(value: object) -> object:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme != "https" or not _HOST.fullmatch(parts.netloc) or parts.path.strip("/"):
        raise ValueError(f"expected an endpoint such as {PUBLIC_ENDPOINT}, got {value!r}")
    return f"https://{parts.netloc}"


Guid = Annotated[UUID, BeforeValidator(_guid)]
Endpoint = Annotated[str, BeforeValidator(_endpoint)]


class OneLakeConfig(Section):
    """A landing zone on OneLake: its address, the credential, and how parts are staged there."""

    url: Text = Field(description="The landing zone's URL, as the portal shows it.")
    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description="How a token is got.")
    staging: Staging = Field(default=Staging.UPLOAD, description="Who writes the staged parts.")
    staging_path: Folder = Field(default=Path(STAGING_PATH), description="Folder for `staging: upload`.")
    api_version: Text | None = Field(default=None, description="x-ms-version, if not the SDK's newest.")
    ca_bundle: Folder | None = Field(default=None, description="PEM file of authorities to trust, if not the usual.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.staging is Staging.DIRECT and self.credential is CredentialKind.DEFAULT:
            raise ValueError(_CREDENTIAL_NEEDED)
        _ = self.address  # raises ValueError for what is no address
        return self

    @property
    def address(self) -> OneLakeAddress:
        """The landing zone's address."""
        return OneLakeAddress.parse(self.url)


class LandingZoneConfig(Section):
    """The landing zone: a folder on this machine, or a mirrored database's folder on OneLake."""

    path: Folder | None = Field(default=None, description="Folder of the landing zone on this machine.")
    onelake: OneLakeConfig | None = Field(default=None, description="The landing zone on OneLake.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.onelake is None):
            raise ValueError("give either `path` or `onelake`")
        return self


class FabricWorkspace(Section):
    """The workspace, how to reach it, and the default schema: the settings that `fabric create` needs."""

    workspace: Guid = Field(description="The workspace's GUID.")
    endpoint: Endpoint = Field(default=PUBLIC_ENDPOINT, description="Where Fabric's REST interface is.")
    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description="How a token is got.")
    ca_bundle: Folder | None = Field(default=None, description="PEM file of authorities to trust, if not the usual.")
    default_schema: SchemaName = Field(default=DEFAULT_SCHEMA, description="Schema of tables without one.")

    @property
    def place(self) -> Workspace:
        """The workspace as Fabric's client takes it."""
        return Workspace(self.workspace, self.endpoint, self.ca_bundle)


class FabricConfig(FabricWorkspace):
    """The mirrored database that applies the landing files."""

    item: Guid = Field(description="The mirrored database's GUID; `mirror-assets fabric create` makes one.")

    def misplaced(self, zone: OneLakeConfig | None) -> str | None:
        """Return why this mirrored database can't read that landing zone, or None if it can."""
        if zone is None:
            return (
                "Fabric mirrors a landing zone on OneLake; write landing_zone.onelake, or mirror.path for the stand-in"
            )
        if (zone.address.workspace, zone.address.item) != (str(self.workspace), str(self.item)):
            return f"the landing zone is another item's: {zone.address.url}; name the same workspace and item twice"
        return None

    def tables(self, zone: OneLakeConfig | None) -> OneLakeAddress:
        """Return the OneLake folder of the mirrored tables, at the landing zone's endpoint, which may be a region's."""
        endpoint = {"endpoint": zone.address.endpoint} if zone else {}
        return OneLakeAddress(str(self.workspace), str(self.item), folder="Tables", **endpoint)


class MirrorConfig(Section):
    """The mirrored tables: those of the local stand-in for Fabric's replicator, or of a mirrored database in Fabric."""

    path: Folder = Field(default=Path(MIRROR_PATH), description="Folder of the stand-in's Delta tables.")
    fabric: FabricConfig | None = Field(default=None, description="The mirrored database, in place of the stand-in.")

    @model_validator(mode="after")
    def _one_mirror(self) -> Self:
        if self.fabric is not None and "path" in self.model_fields_set:
            raise ValueError("give either `path` or `fabric`")
        return self


class HistoryConfig(Section):
    """Where the change data feeds of tables with `history` are kept."""

    path: Address = Field(default=HISTORY_PATH, description="Folder of the histories' Delta tables, or its address.")

    @field_validator("path")
    @classmethod
    def _one_writer(cls, path: str) -> str:
        if path.startswith(f"{Scheme.S3.value}://"):
            raise ValueError(_ONE_DRIVER)
        return path
