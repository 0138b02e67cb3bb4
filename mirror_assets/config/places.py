"""Where the landing zone and the mirrored tables are, as mirror.yaml writes it."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import Self

from mirror_assets.config.setting_values import Folder, Text
from mirror_assets.fabric.values import PUBLIC_ENDPOINT, Workspace
from mirror_assets.storage.credentials import CredentialKind
from mirror_assets.storage.onelake.address import ENDPOINT, OneLakeAddress

_NEEDS_NAME = (
    "Spark can't use the credential `default`; name one (client_secret, managed_identity or workload_identity), "
    "or write `staging: upload`"
)


class Staging(str, Enum):
    """Who writes the staged parts: Spark itself, or this process, which uploads what Spark wrote elsewhere."""

    DIRECT = "direct"
    UPLOAD = "upload"


class OneLakeConfig(BaseModel):
    """Where the landing zone is on OneLake, who we are there, and how parts get there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Text | None = Field(default=None, description="The landing zone's URL, as the portal shows it.")
    workspace: Text | None = Field(default=None, description="The workspace's GUID, in place of `url`.")
    item: Text | None = Field(default=None, description="The mirrored database's GUID, in place of `url`.")
    endpoint: Text = Field(default=ENDPOINT, description="Another endpoint, such as a region's, beside the GUIDs.")
    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description="How a token is got.")
    staging: Staging = Field(default=Staging.UPLOAD, description="Who writes the staged parts.")
    staging_path: Folder = Field(default=Path("staging"), description="Folder for `staging: upload`.")
    api_version: Text | None = Field(default=None, description="x-ms-version, if not the SDK's newest.")
    ca_bundle: Folder | None = Field(default=None, description="PEM file of authorities to trust, if not the usual.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        named = (self.workspace is not None, self.item is not None)
        if named != (self.url is None, self.url is None):
            raise ValueError("give either `url`, or `workspace` and `item`")
        if self.staging is Staging.DIRECT and self.credential is CredentialKind.DEFAULT:
            raise ValueError(_NEEDS_NAME)
        _ = self.address  # raises ValueError for what is no address
        return self

    @property
    def address(self) -> OneLakeAddress:
        """Where the landing zone is."""
        if self.url is not None:
            return OneLakeAddress.parse(self.url)
        return OneLakeAddress((self.workspace or "").lower(), (self.item or "").lower(), self.endpoint.rstrip("/"))


_GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")
_TABLES = "Tables"


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


class FabricWorkspace(BaseModel):
    """What is known before there is a mirrored database: where Fabric is asked, and as whom."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace: Guid = Field(description="The workspace's GUID.")
    endpoint: Endpoint = Field(default=PUBLIC_ENDPOINT, description="Where Fabric's REST interface is.")
    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description="How a token is got.")
    ca_bundle: Folder | None = Field(default=None, description="PEM file of authorities to trust, if not the usual.")

    @property
    def place(self) -> Workspace:
        """The workspace as Fabric's client wants it."""
        return Workspace(self.workspace, self.endpoint, self.ca_bundle)


class FabricConfig(FabricWorkspace):
    """The mirrored database that applies the landing files."""

    item: Guid = Field(description="The mirrored database's GUID; `mirror-assets fabric create` makes one.")

    def misplaced(self, zone: OneLakeConfig | None) -> str | None:
        """Why this item can't mirror that landing zone, or None."""
        if zone is None:
            return (
                "Fabric mirrors a landing zone on OneLake; write landing_zone.onelake, or mirror.path for the stand-in"
            )
        if (zone.address.workspace, zone.address.item) != (str(self.workspace), str(self.item)):
            return f"the landing zone is another item's: {zone.address.url}"
        return None

    def tables(self, zone: OneLakeConfig | None) -> OneLakeAddress:
        """Where OneLake has the mirrored tables: at the landing zone's endpoint, which may be a region's."""
        endpoint = {"endpoint": zone.address.endpoint} if zone else {}
        return OneLakeAddress(str(self.workspace), str(self.item), folder=_TABLES, **endpoint)
