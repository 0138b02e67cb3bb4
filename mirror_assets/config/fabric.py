"""A mirrored database in Microsoft Fabric, as mirror.yaml writes it."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mirror_assets.config.onelake import OneLakeConfig
from mirror_assets.config.values import Folder
from mirror_assets.fabric.database import PUBLIC_ENDPOINT, Workspace
from mirror_assets.storage.credentials import CredentialKind
from mirror_assets.storage.onelake.address import OneLakeAddress

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
